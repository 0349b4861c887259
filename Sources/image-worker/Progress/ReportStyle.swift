/// How a run reports its results.
struct ReportStyle: Sendable, Equatable {
  /// The output for each result on standard output.
  enum Results: Sendable, Equatable {
    case lines, json, none
  }

  var results: Results
  /// Whether a progress line is shown on standard error, and failures are kept for the end.
  var showsProgress: Bool
  /// Whether only failures are reported.
  var isQuiet: Bool

  /// The style that suits the output streams.
  ///
  /// A progress line is shown only if nothing else can write to the terminal: neither the results themselves nor the
  /// reader of a pipe.
  /// - `showsDetails`: whether lines were requested that contain more than the result.
  init(
    json: Bool, quiet: Bool, showsDetails: Bool, imageCount: Int, output: StreamKind, errors: StreamKind
  ) {
    isQuiet = quiet
    let isVisible: Bool
    switch output {
    case .terminal: isVisible = !json && !showsDetails
    case .file: isVisible = true
    case .pipe: isVisible = false
    }
    showsProgress = !quiet && errors == .terminal && isVisible && imageCount > 1
    results = json ? .json : showsProgress && output == .terminal ? .none : .lines
  }
}

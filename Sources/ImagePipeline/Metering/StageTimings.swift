/// The spans in which the work of stages is counted; a trace contains at most one of each for an image or rendition.
enum StageSpan: Int, CaseIterable {
  case decode, resize, filter, encode, rewrite

  /// The name of the span in traces.
  var name: String {
    switch self {
    case .decode: "decode"
    case .resize: "resize"
    case .filter: "filter"
    case .encode: "encode"
    case .rewrite: "rewrite"
    }
  }
}

/// The busy time of each stage of one image, without the time spent waiting for bytes or for a CPU.
package struct StageTimings: Sendable, Hashable {
  /// The time spent waiting for admission.
  package var queued: Duration = .zero
  /// The busy time of decoding.
  package var decode: Duration = .zero
  /// The busy time of resizing.
  package var resize: Duration = .zero
  /// The busy time of the requested filters.
  package var filter: Duration = .zero
  /// The busy time of color conversion, orientation and compression; of rewriting for an image that is passed through.
  package var encode: Duration = .zero
  /// The time from the first input byte to the last output byte, including all waiting.
  package var total: Duration = .zero

  package init() {}

  /// Accesses the time of a span; rewriting counts as encoding.
  subscript(span: StageSpan) -> Duration {
    get { self[keyPath: Self.field(span)] }
    set { self[keyPath: Self.field(span)] = newValue }
  }

  private static func field(_ span: StageSpan) -> WritableKeyPath<StageTimings, Duration> {
    switch span {
    case .decode: \.decode
    case .resize: \.resize
    case .filter: \.filter
    case .encode, .rewrite: \.encode
    }
  }
}

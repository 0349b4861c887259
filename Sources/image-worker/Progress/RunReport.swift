internal import ImagePipeline
internal import ImageWorkerClient
internal import Synchronization
internal import SystemPackage
internal import WorkerTelemetry

/// Reports the results of a run: as lines or JSON on standard output, or as a progress line on standard error.
final class RunReport: Sendable {
  private struct State {
    var tally: RunTally
    var skippedLinkCount = 0
    /// Returns the state of each worker; `nil` without workers.
    var workers: (@Sendable () -> [WorkerStatus])?
    var failures = ShortList(title: "failed", maxEntryCount: 20)
    var warnings = ShortList(title: "with warnings", maxEntryCount: 5)
  }

  private static let interval = Duration.milliseconds(100)

  private let style: ReportStyle
  /// Where lines, JSON and the summary go.
  private let output: FileDescriptor
  private let began = ContinuousClock.now
  private let state: Mutex<State>

  /// - `place`: where the results go; those on standard output move the report to standard error.
  init(imageCount: Int, json: Bool, quiet: Bool, showsDetails: Bool = false, place: ResultPlace) {
    switch place {
    case .directory, .file: output = .standardOutput
    case .standardOutput: output = .standardError
    }
    style = ReportStyle(
      json: json, quiet: quiet, showsDetails: showsDetails, imageCount: imageCount,
      output: StreamKind(of: output), errors: StreamKind(of: .standardError))
    state = Mutex(State(tally: RunTally(total: imageCount)))
  }

  /// The number of images that failed so far.
  var failedCount: Int { state.withLock { $0.tally[.failed] } }

  /// Shows the progress while `body` runs, then the failures and the summary.
  /// - `isInterrupted`: whether a signal ended the run early.
  /// - Throws: what `body` throws, after the summary; `FileError` if standard output cannot be written.
  func run(isInterrupted: () -> Bool = { false }, _ body: () async throws -> Void) async throws {
    do {
      if style.showsProgress {
        try await showingProgress(body)
      } else {
        try await body()
      }
    } catch {
      // What has ended is of use, whatever ended the run; standard output may be what failed.
      let tally = state.withLock { $0.tally }
      if tally.completed > 0 { try? conclude(isInterrupted: tally.completed < tally.total) }
      throw error
    }
    try conclude(isInterrupted: isInterrupted())
  }

  /// Prints the failures and the summary.
  private func conclude(isInterrupted: Bool) throws {
    let (tally, lists, linkCount) = state.withLock { ($0.tally, [$0.warnings, $0.failures], $0.skippedLinkCount) }
    for text in lists.compactMap({ $0.text(columnCount: Terminal.columnCount) }) { FileSystem.printError(text) }
    if linkCount > 0, style.isQuiet || style.results != .json {
      FileSystem.printError(
        "symbolic links not followed: \(linkCount), which lead nowhere or back to a folder above them")
    }
    if style.isQuiet { return }
    let summary = RunSummary(
      tally, elapsed: began.duration(to: .now), isInterrupted: isInterrupted, skippedLinkCount: linkCount)
    try write(style.results == .json ? JSONText.line(["summary": summary]) : ReadableText.printable(summary.text))
  }

  /// Reports links that were not followed with the summary.
  func noteSkippedLinks(_ count: Int) { state.withLock { $0.skippedLinkCount = count } }

  /// Prints a warning, unless the progress line shows the problem.
  func warn(_ text: String) {
    if !style.showsProgress { FileSystem.printError(text) }
  }

  /// Shows the state of workers on the progress line.
  func observe(_ workers: @escaping @Sendable () -> [WorkerStatus]) { state.withLock { $0.workers = workers } }

  /// Reports the outcomes of all results of one image.
  /// - Throws: `FileError` if standard output cannot be written.
  func note(_ lines: [ResultLine]) throws {
    let (style, showsLines) = (style, style.results == .lines)
    state.withLock { state in
      state.tally.add(lines)
      guard style.showsProgress, style.results != .json else { return }
      for line in lines where line.status == .failed { state.failures.add(line.text) }
      // Lines contain their warnings.
      for line in lines where !showsLines {
        for warning in line.warnings ?? [] { state.warnings.add("\(line.name): \(warning)") }
      }
    }
    for line in lines {
      if style.isQuiet, line.status != .failed {
        for warning in line.warningDetails ?? [] where warning.code != .qualityReduced {
          FileSystem.printError("\(line.name): warning: \(warning.message)".singleLine)
        }
        continue
      }
      switch (style.results, line.status) {
      case (.json, _): try write(JSONText.line(line))
      case (.lines, .failed): if !style.showsProgress { FileSystem.printError(line.text) }
      case (.lines, .done), (.lines, .skipped), (.lines, .ignored): try write(ReadableText.printable(line.text))
      case (.none, _): break
      }
    }
  }

  /// Only one task draws, so that nothing is drawn after the line has been cleared.
  private func showingProgress(_ body: () async throws -> Void) async throws {
    let usesColor = Terminal.usesColor()
    defer { Terminal.write("\r" + String(repeating: " ", count: Terminal.columnCount - 1) + "\r") }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        repeat {
          let (tally, workers) = state.withLock { ($0.tally, $0.workers) }
          let line = ProgressLine(tally: tally, elapsed: began.duration(to: .now), workers: workers?() ?? [])
          Terminal.write("\r" + line.text(columnCount: Terminal.columnCount, usesColor: usesColor))
          try? await Task.sleep(for: Self.interval)
        } while !Task.isCancelled
      }
      defer { group.cancelAll() }
      try await body()
    }
  }

  private func write(_ line: String) throws { try FileSystem.printLine(line, to: output) }
}

/// The first entries of a list, and the number of the others.
struct ShortList: Sendable {
  /// The title, which all entries have in common.
  let title: String
  let maxEntryCount: Int
  private(set) var entries: [String] = []
  private(set) var count = 0

  mutating func add(_ entry: String) {
    count += 1
    if count <= maxEntryCount { entries.append(entry) }
  }

  /// The title and the indented entries, wrapped at a width, without a line end behind the last; `nil` for an empty
  /// list.
  func text(columnCount: Int) -> String? {
    if count == 0 { return nil }
    let lines = entries.flatMap { ReadableText.wrapped($0, columnCount: columnCount, indent: 2) }
    let rest = count > entries.count ? ["  and \(count - entries.count) more; --json lists all"] : []
    return (["\(count) \(title):"] + lines + rest).joined(separator: "\n")
  }
}

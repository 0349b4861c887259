/// The progress of a run over many images.
struct RunTally: Sendable, Equatable {
  let total: Int
  /// Bytes of the images with results.
  private(set) var inputBytes: UInt64 = 0
  private(set) var outputBytes: UInt64 = 0
  private var counts: [ResultLine.Status: Int] = [:]

  init(total: Int) { self.total = total }

  subscript(_ status: ResultLine.Status) -> Int { counts[status] ?? 0 }

  /// The number of images that have ended, in whatever way.
  var completed: Int { counts.values.reduce(0, +) }

  /// The number of images that were worked on, neither skipped nor ignored.
  var processed: Int { self[.done] + self[.failed] }

  /// Images that were worked on per second; 0 before any time has passed.
  func rate(over elapsed: Duration) -> Double {
    elapsed > .zero ? Double(processed) / (elapsed / .seconds(1)) : 0
  }

  /// Adds an image, which counts as failed if one of its results did.
  ///
  /// - `lines`: the outcomes of all its results.
  mutating func add(_ lines: [ResultLine]) {
    let statuses = lines.map(\.status)
    let status = [.failed, .done, .skipped].first { statuses.contains($0) } ?? .ignored
    counts[status, default: 0] += 1
    inputBytes += lines.compactMap(\.inputBytes).max() ?? 0
    outputBytes += lines.compactMap(\.outputBytes).reduce(0, +)
  }
}

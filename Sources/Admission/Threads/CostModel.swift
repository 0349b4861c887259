package import FoundationEssentials
package import ImagePipeline
internal import Synchronization

/// The properties that the cost of an image depends on, as far as they are known before its header is read.
struct CostKind: Hashable, Sendable {
  private let inputFormat: String
  private let inputBits: Int
  private let outputFormats: [OutputFormat?]
  private let outputBits: [Int]

  /// Describes the image whose encoded bytes are given.
  init(_ bytes: RawSpan, _ configurations: [ProcessingConfiguration]) {
    inputFormat = ImageReader.formatName(bytes) ?? ""
    inputBits = Self.bits(bytes.byteCount)
    outputFormats = configurations.map(\.preferredFormat)
    outputBits = configurations.map { Self.bits(($0.maxWidth ?? 1 << 14) &* ($0.maxHeight ?? 1 << 14)) }
  }

  private static func bits(_ count: Int) -> Int { Int.bitWidth - count.leadingZeroBitCount }
}

/// The estimated cost of an image.
package struct ImageCost: Sendable {
  /// The time that an image thread works on it.
  package let duration: Duration
  /// Whether the time is that of images of its kind, and not a guess.
  var isLearned = false
  /// Its kind; `nil` if it is not known yet.
  fileprivate(set) var kind: CostKind?
  /// The number of its encoded bytes.
  fileprivate var byteCount = 0

  init(_ duration: Duration, isLearned: Bool = false) {
    self.duration = duration
    self.isLearned = isLearned
  }
}

/// Estimates the time that an image takes from what images of its kind took.
package final class CostModel: Sendable {
  private struct State {
    var averages: [CostKind: Duration] = [:]
    /// Nanoseconds for each byte of images of any kind, at most `maxPerByte`.
    var perByte = 20.0
  }

  private static let maxKindCount = 1024
  /// The maximum estimate for an image of a kind that was not seen yet, in nanoseconds for each byte.
  ///
  /// Few bytes can describe a large image; they say nothing about what other images cost.
  private static let maxPerByte = 200.0
  /// The weight of a new measurement; the last ten or so decide.
  private static let weight = 0.2

  private let state = Mutex(State())

  /// Estimates the time of an image from its bytes, or of an upload, whose bytes are not known yet.
  package func estimate(of image: Data?, _ configurations: [ProcessingConfiguration]) -> ImageCost {
    guard let image else { return ImageCost(.milliseconds(5)) }
    let kind = CostKind(image.bytes, configurations)
    let (average, perByte) = state.withLock { ($0.averages[kind], $0.perByte) }
    var cost = ImageCost(
      average ?? .milliseconds(1) + .nanoseconds(Int64(Double(image.count) * perByte)), isLearned: average != nil)
    (cost.kind, cost.byteCount) = (kind, image.count)
    return cost
  }

  /// Whether images of an image's kind still take at most `ThreadQueue.maxExpressCost` on average.
  func isStillSmall(_ cost: ImageCost) -> Bool {
    guard let kind = cost.kind else { return true }
    return state.withLock { ($0.averages[kind] ?? .zero) <= ThreadQueue.maxExpressCost }
  }

  /// Records the time that an image took; none if its results came from the cache, which says nothing about the cost.
  package func learn(_ duration: Duration, for cost: ImageCost) {
    guard duration > .zero, let kind = cost.kind else { return }
    state.withLock { state in
      if state.averages.count >= Self.maxKindCount, state.averages[kind] == nil { state.averages.removeAll() }
      let average = state.averages[kind] ?? duration
      state.averages[kind] = average + (duration - average) * Self.weight
      let perByte = min(duration / .nanoseconds(max(1, cost.byteCount)), Self.maxPerByte)
      state.perByte += (perByte - state.perByte) * Self.weight / 10
    }
  }
}

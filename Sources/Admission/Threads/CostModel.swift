package import ImagePipeline
internal import Synchronization
internal import WorkThreads

/// The properties of an image's file that its cost depends on, as its first bytes state them.
package struct ImageClaim: Sendable {
  let byteCount: Int
  let formatName: String?
  /// The number of pixels to decode; `nil` if it is not known.
  let pixelCount: Int?

  /// Reads the first bytes of a whole file.
  package init(_ file: RawSpan) {
    byteCount = file.byteCount
    formatName = ImageReader.formatName(file)
    pixelCount = ImageReader.decodingPixelCount(file)
  }
}

/// The properties that the cost of an image depends on, as far as they are known before it is decoded.
struct CostKind: Hashable, Sendable {
  private let inputFormat: String
  /// The logarithm of the number of pixels to decode, as the header states it, or of the number of bytes; 0 for an upload.
  private let inputBits: Int
  private let hasPixelCount: Bool
  private let outputFormats: [OutputFormat?]
  private let outputBits: [Int]

  /// Describes an image by its file, or an upload, whose bytes are not known yet.
  init(_ image: ImageClaim?, pixelCount: Int?, _ configurations: [ProcessingConfiguration]) {
    inputFormat = image?.formatName ?? ""
    inputBits = Self.bits(pixelCount ?? image?.byteCount ?? 0)
    hasPixelCount = pixelCount != nil
    outputFormats = configurations.map(\.preferredFormat)
    outputBits = configurations.map { Self.bits($0.maxPixelCount) }
  }

  private static func bits(_ count: Int) -> Int { Int.bitWidth - count.leadingZeroBitCount }
}

/// The estimated cost of an image.
package struct ImageCost: Sendable {
  /// The CPU time that it takes.
  package let duration: Duration
  /// Whether the time follows from the image's header, or was learned from such images.
  var isKnown = false
  /// Its kind; `nil` if nothing is learned from it.
  fileprivate(set) var kind: CostKind?
  fileprivate var caller = ""

  init(_ duration: Duration, isKnown: Bool = false) {
    self.duration = duration
    self.isKnown = isKnown
  }
}

/// Estimates the CPU time that an image takes from what its header states, and from what its caller's images of the kind took.
///
/// Not the time on the clock: where other processes want the processors, images take as much CPU time as ever, and `WorkRate`
/// measures how much of it the threads get in a second. Both in time on the clock would count the lack of processors twice.
///
/// No caller changes what the images of another are estimated at: those of a caller that has sent none of a kind are
/// estimated at the median of the callers that have, of which the estimate from the header is one.
package final class CostModel: Sendable {
  private struct Average {
    let caller: String
    var duration: Duration
  }

  private static let maxKindCount = 1024
  private static let maxCallerCount = 16
  /// The weight of a new measurement; the last ten or so decide.
  private static let weight = 0.2

  /// The pixel count from which on an image is refused when its header is read, which takes no time.
  private let maxPixelCount: Int
  /// For each kind, those who sent images of it last.
  private let averages = Mutex<[CostKind: [Average]]>([:])

  /// - `maxPixelCount`: the maximum number of pixels of an image.
  init(maxPixelCount: Int) { self.maxPixelCount = maxPixelCount }

  /// Estimates the CPU time of a caller's image from its file, or of an upload, whose bytes are not known yet.
  package func estimate(
    of image: ImageClaim?, _ configurations: [ProcessingConfiguration], for caller: String
  ) -> ImageCost {
    let pixelCount = image?.pixelCount.flatMap { $0 <= maxPixelCount ? $0 : nil }
    let kind = CostKind(image, pixelCount: pixelCount, configurations)
    let averages = averages.withLock { $0[kind] ?? [] }
    let own = averages.first { $0.caller == caller }?.duration
    var cost: ImageCost
    if let own {
      cost = ImageCost(own, isKnown: image != nil)
    } else {
      let first = Self.firstEstimate(of: image, pixelCount, configurations)
      let all = (averages.map(\.duration) + [first]).sorted()
      cost = ImageCost(all[(all.count - 1) / 2], isKnown: pixelCount != nil)
    }
    (cost.kind, cost.caller) = (kind, caller)
    return cost
  }

  /// Estimates the CPU time of an image of which nothing was learned; typical of one core.
  private static func firstEstimate(
    of image: ImageClaim?, _ pixelCount: Int?, _ configurations: [ProcessingConfiguration]
  ) -> Duration {
    guard let image else { return .milliseconds(5) }
    guard let pixelCount else { return .milliseconds(1) + .nanoseconds(image.byteCount * 20) }
    let count = configurations.reduce(Double(pixelCount)) { $0 + Double(min(pixelCount, $1.maxPixelCount)) }
    return .microseconds(500) + .nanoseconds(10) * count
  }

  /// Records the CPU time that an image took; none if its results came from the cache, which says nothing about the cost.
  package func learn(_ duration: Duration, for cost: ImageCost) {
    guard duration > .zero, let kind = cost.kind else { return }
    averages.withLock { averages in
      if averages.count >= Self.maxKindCount, averages[kind] == nil { averages.removeAll() }
      var callers = averages[kind] ?? []
      var average = callers.removeFirst { $0.caller == cost.caller } ?? Average(caller: cost.caller, duration: duration)
      average.duration += (duration - average.duration) * Self.weight
      if callers.count == Self.maxCallerCount { callers.removeFirst() }
      averages[kind] = callers + [average]
    }
  }
}

extension ProcessingConfiguration {
  /// The maximum number of pixels of a result.
  fileprivate var maxPixelCount: Int {
    let maxSide = 1 << 14
    return max(0, min(maxWidth ?? maxSide, maxSide)) * max(0, min(maxHeight ?? maxSide, maxSide))
  }
}

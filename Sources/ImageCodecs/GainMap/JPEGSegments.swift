/// Collects the application segments before the image data of a JPEG that concern gain maps, from bytes that arrive in
/// portions.
///
/// Lengths in the file are only followed, and what is collected is limited, so that hostile bytes cost no more than
/// reading them. Source: ITU-T T.81, annex B.
struct JPEGSegments {
  /// A segment, from its marker on.
  struct Segment: Sendable, Hashable {
    var kind: Kind
    /// The position of its marker in the file.
    var offset: UInt64
    var bytes: [UInt8]

    /// The content, without the marker and the length.
    var body: ArraySlice<UInt8> { bytes.dropFirst(4) }
  }

  /// The content of a segment, by the name at its beginning.
  enum Kind: Sendable, Hashable, CaseIterable {
    case exif, xmp, iso, multiPicture, profile

    var marker: UInt8 {
      switch self {
      case .exif, .xmp: 0xE1
      case .iso, .multiPicture, .profile: 0xE2
      }
    }

    private static let names: [Kind: [UInt8]] = [
      .exif: "Exif", .xmp: "http://ns.adobe.com/xap/1.0/", .iso: "urn:iso:std:iso:ts:21496:-1",
      .multiPicture: "MPF", .profile: "ICC_PROFILE",
    ].mapValues { Array($0.utf8) + [0] }

    /// The name, with the zero that ends it.
    var name: [UInt8] { Self.names[self] ?? [] }
  }

  private enum Step {
    case marker, length, name, body, skipped, done
  }

  /// The maximum size in bytes of all segments that are collected, and their maximum number.
  static let maxByteCount = 3 * 65_537
  private static let maxCount = 64
  private static let maxNameByteCount = Kind.allCases.map(\.name.count).max() ?? 0

  private let wanted: Set<Kind>
  private var step = Step.marker
  /// The bytes of the segment so far, from its marker on.
  private var pending: [UInt8] = []
  private var length = 0
  /// The number of skipped bytes of the body.
  private var skipped = 0
  private var position: UInt64 = 0
  /// The position of the segment's marker.
  private var start: UInt64 = 0
  /// The segments, in their order.
  private(set) var segments: [Segment] = []
  private(set) var byteCount = 0
  /// The position of the first segment that is neither APP0 nor APP1; `nil` until it is reached.
  private(set) var metadataEnd: UInt64?

  /// Whether the application segments have ended.
  var isDone: Bool { step == .done }

  /// - `wanted`: the segments to collect.
  init(_ wanted: Set<Kind>) { self.wanted = wanted }

  /// The number of bytes of the body that were read.
  private var consumedByteCount: Int { pending.count - 4 + skipped }

  /// Reads the next bytes of the file.
  mutating func push(_ bytes: RawSpan) {
    var next = 0
    while next < bytes.byteCount, step != .done {
      let count = take(bytes.extracting(droppingFirst: next))
      next += count
      position += UInt64(count)
    }
  }

  /// Reads some of `bytes`, and returns their number, at least 1.
  private mutating func take(_ bytes: RawSpan) -> Int {
    switch step {
    case .marker, .length:
      if pending.isEmpty { start = position }
      pending.append(bytes.unsafeLoad(fromByteOffset: 0, as: UInt8.self))
      if step == .marker { readMarker() } else { readLength() }
      return 1
    case .name, .body, .skipped:
      let end = step == .name ? min(length, Self.maxNameByteCount) : length
      let count = min(bytes.byteCount, end - consumedByteCount)
      if step == .skipped { skipped += count } else { pending.append(bytes.extracting(first: count)) }
      if consumedByteCount == end { step == .name ? readName() : endSegment() }
      return count
    case .done: return bytes.byteCount
    }
  }

  private mutating func readMarker() {
    guard pending[0] == 0xFF else { return step = .done }
    guard pending.count == 2 else { return }
    if metadataEnd == nil, ![0xFF, 0xD8, 0xE0, 0xE1].contains(pending[1]) { metadataEnd = start }
    switch pending[1] {
    case 0xFF:  // a fill byte
      pending.removeLast()
      start += 1
    case 0xD8: pending = []
    case 0xE0...0xEF, 0xFE, 0xC0...0xCF, 0xDB, 0xDD: step = .length
    default: step = .done  // the scan, the end, or what is no segment
    }
  }

  private mutating func readLength() {
    guard pending.count == 4 else { return }
    length = (Int(pending[2]) << 8 | Int(pending[3])) - 2
    guard length >= 0 else { return step = .done }
    (step, skipped) = (.name, 0)
    if length == 0 { endSegment() }
  }

  private mutating func readName() {
    let isWanted = kind.map { wanted.contains($0) } ?? false
    let hasRoom = segments.count < Self.maxCount && byteCount + length + 4 <= Self.maxByteCount
    step = isWanted && hasRoom ? .body : .skipped
    if consumedByteCount == length { endSegment() }
  }

  private var kind: Kind? {
    return Kind.allCases.first { pending[1] == $0.marker && pending.dropFirst(4).starts(with: $0.name) }
  }

  private mutating func endSegment() {
    if step == .body, let kind {
      byteCount += pending.count
      segments.append(Segment(kind: kind, offset: start, bytes: pending))
    }
    pending.removeAll(keepingCapacity: true)
    step = .marker
  }
}

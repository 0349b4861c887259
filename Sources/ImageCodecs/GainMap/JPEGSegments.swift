/// Collects the application segments before the image data of a JPEG that concern gain maps, and finds its size and the
/// end of the image, from bytes that arrive in portions.
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
    case marker, length, name, body, skipped, scan, done
  }

  /// The maximum size in bytes of all segments that are collected, and their maximum number.
  static let maxByteCount = 3 * 65_537
  private static let maxCount = 64
  private static let maxNameByteCount = Kind.allCases.map(\.name.count).max() ?? 0

  private let wanted: Set<Kind>
  private let followsScans: Bool
  private var step = Step.marker
  /// The bytes of the segment so far, from its marker on.
  private var pending: [UInt8] = []
  private var length = 0
  /// The number of skipped bytes of the body.
  private var skipped = 0
  /// The number of bytes that were read, up to the end of the image.
  private(set) var position: UInt64 = 0
  /// The position of the segment's marker.
  private var start: UInt64 = 0
  /// The segments, in their order.
  private(set) var segments: [Segment] = []
  private(set) var byteCount = 0
  /// The position of the first segment that is neither APP0 nor APP1; `nil` until it is reached.
  private(set) var metadataEnd: UInt64?
  /// The size in pixels that the frame header states; `nil` until it is reached.
  private(set) var frameSize: (width: Int, height: Int)?

  private var hasScan = false
  /// The position behind the end marker of the image; `nil` until it is reached.
  private(set) var imageEnd: UInt64?

  /// Whether the application segments have ended.
  var isDone: Bool { hasScan || step == .done }
  /// Whether the image has ended, or its end cannot be found.
  var isOver: Bool { step == .done }

  /// - `wanted`: the segments to collect.
  /// - `followsScans`: whether to read on behind them, up to the end of the image.
  init(_ wanted: Set<Kind>, followsScans: Bool = false) { (self.wanted, self.followsScans) = (wanted, followsScans) }

  /// The number of bytes of the body that were read.
  private var consumedByteCount: Int { pending.count - 4 + skipped }

  /// Reads the next bytes of the file.
  mutating func push(_ bytes: RawSpan) { push(bytes) { _ in } }

  /// Reads the next bytes of the file.
  /// - `charge`: is called with the size of a segment before that is stored.
  mutating func push<Failure: Error>(_ bytes: RawSpan, charge: (Int) throws(Failure) -> Void) throws(Failure) {
    var next = 0
    while next < bytes.byteCount, step != .done {
      let count = try take(bytes.extracting(droppingFirst: next), charge)
      next += count
      position += UInt64(count)
    }
  }

  /// Reads some of `bytes`, and returns their number, at least 1.
  private mutating func take<Failure: Error>(
    _ bytes: RawSpan, _ charge: (Int) throws(Failure) -> Void
  ) throws(Failure) -> Int {
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
      if consumedByteCount == end {
        if step == .name { try readName(charge) } else { endSegment() }
      }
      return count
    case .scan: return takeScan(bytes)
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
    case 0xD8 where !hasScan: pending = []
    case 0xE0...0xEF, 0xFE, 0xC0...0xCF, 0xDB...0xDD: step = .length
    case 0xDA where followsScans: (step, hasScan) = (.length, true)
    default:  // the scan, the end, or what is no segment
      if hasScan, pending[1] == 0xD9 { imageEnd = start + 2 }
      step = .done
    }
  }

  /// Reads the data of a scan up to the next marker, and returns the number of bytes that were read.
  private mutating func takeScan(_ bytes: RawSpan) -> Int {
    guard !pending.isEmpty else {
      guard let place = bytes.firstMarkerByte else { return bytes.byteCount }
      pending.append(0xFF)
      start = position + UInt64(place)
      return place + 1
    }
    pending.append(bytes.unsafeLoad(fromByteOffset: 0, as: UInt8.self))
    switch pending[1] {
    case 0, 0xD0...0xD7: pending.removeAll(keepingCapacity: true)  // a byte of the data, or a restart
    case 0xFF:  // a fill byte
      pending.removeLast()
      start += 1
    default:
      step = .marker
      readMarker()
    }
    return 1
  }

  private mutating func readLength() {
    guard pending.count == 4 else { return }
    length = (Int(pending[2]) << 8 | Int(pending[3])) - 2
    guard length >= 0 else { return step = .done }
    (step, skipped) = (.name, 0)
    if length == 0 { endSegment() }
  }

  private mutating func readName<Failure: Error>(_ charge: (Int) throws(Failure) -> Void) throws(Failure) {
    let isFrame = (0xC0...0xCF).contains(pending[1]) && ![0xC4, 0xC8, 0xCC].contains(pending[1])
    if isFrame, frameSize == nil, pending.count >= 9 {
      frameSize = (Int(pending[7]) << 8 | Int(pending[8]), Int(pending[5]) << 8 | Int(pending[6]))
    }
    let isWanted = !hasScan && (kind.map { wanted.contains($0) } ?? false)
    let hasRoom = segments.count < Self.maxCount && byteCount + length + 4 <= Self.maxByteCount
    step = isWanted && hasRoom ? .body : .skipped
    if step == .body { try charge(length + 4) }
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
    let isScan = !pending.isEmpty && pending[1] == 0xDA
    pending.removeAll(keepingCapacity: true)
    step = isScan ? .scan : .marker
  }
}

extension RawSpan {
  /// The offset of the first byte with which a marker may begin: 0xFF without the zero that follows it in data.
  fileprivate var firstMarkerByte: Int? {
    var place = 0
    while let found = firstByte(from: place) {
      guard found + 1 < byteCount, unsafeLoad(fromByteOffset: found + 1, as: UInt8.self) == 0 else { return found }
      place = found + 2
    }
    return nil
  }

  /// Returns the offset of the first 0xFF at `start` or behind it.
  private func firstByte(from start: Int) -> Int? {
    let (ones, highBits) = (0x0101_0101_0101_0101 as UInt64, 0x8080_8080_8080_8080 as UInt64)
    var place = start
    while place + 8 <= byteCount {
      let word = UInt64(littleEndian: unsafeLoadUnaligned(fromByteOffset: place, as: UInt64.self))
      let found = (~word &- ones) & word & highBits
      if found != 0 { return place + found.trailingZeroBitCount / 8 }
      place += 8
    }
    return (place..<byteCount).first { unsafeLoad(fromByteOffset: $0, as: UInt8.self) == 0xFF }
  }
}

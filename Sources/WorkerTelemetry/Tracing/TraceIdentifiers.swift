internal import FoundationEssentials
internal import Synchronization

/// The identifier shared by all spans of a trace: 16 bytes, not all zero.
package struct TraceID: Hashable, Sendable, CustomStringConvertible {
  let high: UInt64
  let low: UInt64
}

extension TraceID {
  /// Parses 32 lower-case hexadecimal digits; `nil` if malformed or zero.
  init?(hexadecimal: Substring.UTF8View) {
    guard hexadecimal.count == 32, let high = UInt64(hexadecimal: hexadecimal.prefix(16)),
      let low = UInt64(hexadecimal: hexadecimal.suffix(16)), high | low != 0
    else { return nil }
    self.init(high: high, low: low)
  }

  static func random() -> TraceID { TraceID(high: RandomNumbers.high.next(), low: RandomNumbers.low.next()) }

  var bytes: Data { high.bytes + low.bytes }

  /// The identifier as 32 hexadecimal digits.
  package var description: String {
    String(unsafeUninitializedCapacity: 32) { high.write(to: $0, at: 0) + low.write(to: $0, at: 16) }
  }
}

/// The identifier of a span within its trace: 8 bytes, not all zero.
package struct SpanID: Hashable, Sendable, CustomStringConvertible {
  let value: UInt64

  init(_ value: UInt64) {
    self.value = value
  }

  /// Parses 16 lower-case hexadecimal digits; `nil` if malformed or zero.
  init?(hexadecimal: Substring.UTF8View) {
    guard hexadecimal.count == 16, let value = UInt64(hexadecimal: hexadecimal), value != 0 else { return nil }
    self.value = value
  }

  static func random() -> SpanID { SpanID(RandomNumbers.spans.next()) }

  var bytes: Data { value.bytes }

  /// The identifier as 16 hexadecimal digits.
  package var description: String { value.hexadecimal }
}

/// A generator of random numbers for identifiers, which must be unique and evenly distributed but need not be secret.
///
/// A call needs seven numbers; requesting each from the system would be a considerable part of the cost of its spans.
///
/// Source: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): no number repeats
/// before all others have occurred.
struct RandomNumbers: ~Copyable, Sendable {
  static let high = RandomNumbers()
  static let low = RandomNumbers()
  static let spans = RandomNumbers()

  private let state = Atomic<UInt64>(.random(in: .min ... .max))

  /// Returns the next number, never zero.
  func next() -> UInt64 {
    while true {
      var value = state.wrappingAdd(0x9e37_79b9_7f4a_7c15, ordering: .relaxed).newValue
      value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
      value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
      value ^= value >> 31
      if value != 0 { return value }
    }
  }
}

extension UInt8 {
  /// Parses 2 lower-case hexadecimal digits.
  init?(hexadecimal: Substring.UTF8View) {
    guard hexadecimal.count == 2, let value = UInt64(hexadecimal: hexadecimal) else { return nil }
    self = UInt8(value)
  }
}

extension UInt64 {
  /// Parses at most 16 hexadecimal digits, lower case only, as Trace Context requires.
  fileprivate init?(hexadecimal: Substring.UTF8View) {
    var value: UInt64 = 0
    for digit in hexadecimal {
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
      default: return nil
      }
    }
    self = value
  }

  fileprivate var hexadecimal: String { String(unsafeUninitializedCapacity: 16) { write(to: $0, at: 0) } }

  /// Writes 16 digits at `start` and returns their number.
  fileprivate func write(to digits: UnsafeMutableBufferPointer<UInt8>, at start: Int) -> Int {
    for index in 0..<16 {
      let digit = UInt8(truncatingIfNeeded: self >> UInt64(60 - 4 * index) & 15)
      digits[start + index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
    }
    return 16
  }

  fileprivate var bytes: Data { withUnsafeBytes(of: bigEndian) { Data($0) } }
}

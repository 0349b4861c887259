internal import FoundationEssentials
internal import Synchronization

/// The 16 bytes that all spans of a trace share; not all zero.
package struct TraceID: Hashable, Sendable, CustomStringConvertible {
  let high: UInt64
  let low: UInt64

  init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// - `hexadecimal`: 32 digits, small letters.
  init?(hexadecimal: Substring.UTF8View) {
    guard hexadecimal.count == 32, let high = UInt64(hexadecimal: hexadecimal.prefix(16)),
      let low = UInt64(hexadecimal: hexadecimal.suffix(16)), high | low != 0
    else { return nil }
    self.init(high: high, low: low)
  }

  static func random() -> TraceID { TraceID(high: RandomNumbers.high.next(), low: RandomNumbers.low.next()) }

  var bytes: Data { high.bytes + low.bytes }

  /// 32 hexadecimal digits.
  package var description: String {
    String(unsafeUninitializedCapacity: 32) { high.write(to: $0, at: 0) + low.write(to: $0, at: 16) }
  }
}

/// The 8 bytes that name a span within its trace; not all zero.
package struct SpanID: Hashable, Sendable, CustomStringConvertible {
  let value: UInt64

  init(_ value: UInt64) {
    self.value = value
  }

  /// - `hexadecimal`: 16 digits, small letters.
  init?(hexadecimal: Substring.UTF8View) {
    guard hexadecimal.count == 16, let value = UInt64(hexadecimal: hexadecimal), value != 0 else { return nil }
    self.value = value
  }

  static func random() -> SpanID { SpanID(RandomNumbers.spans.next()) }

  var bytes: Data { value.bytes }

  /// 16 hexadecimal digits.
  package var description: String { value.hexadecimal }
}

/// Numbers for identifiers, which must differ and look random, but are no secret: asking the system for each of the
/// seven of a call is a good part of what its spans cost.
///
/// Source: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): a number comes again
/// only after all others have come.
struct RandomNumbers: ~Copyable, Sendable {
  static let high = RandomNumbers()
  static let low = RandomNumbers()
  static let spans = RandomNumbers()

  private let state = Atomic<UInt64>(.random(in: .min ... .max))

  /// Not zero.
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
  /// - `hexadecimal`: 2 digits, small letters.
  init?(hexadecimal: Substring.UTF8View) {
    guard hexadecimal.count == 2, let value = UInt64(hexadecimal: hexadecimal) else { return nil }
    self = UInt8(value)
  }

  var hexadecimal: String { String(UInt64(self).hexadecimal.suffix(2)) }
}

extension UInt64 {
  /// At most 16 digits, small letters alone, as the trace context wants them.
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

  /// Writes 16 digits, and returns how many that are.
  fileprivate func write(to digits: UnsafeMutableBufferPointer<UInt8>, at start: Int) -> Int {
    for index in 0..<16 {
      let digit = UInt8(truncatingIfNeeded: self >> UInt64(60 - 4 * index) & 15)
      digits[start + index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
    }
    return 16
  }

  fileprivate var bytes: Data { withUnsafeBytes(of: bigEndian) { Data($0) } }
}

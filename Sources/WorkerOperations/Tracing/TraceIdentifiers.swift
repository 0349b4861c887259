internal import FoundationEssentials

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

  static func random() -> TraceID { TraceID(high: .random(in: .min ... .max), low: .random(in: 1 ... .max)) }

  var bytes: Data { high.bytes + low.bytes }

  /// 32 hexadecimal digits.
  package var description: String { high.hexadecimal + low.hexadecimal }
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

  static func random() -> SpanID { SpanID(.random(in: 1 ... .max)) }

  var bytes: Data { value.bytes }

  /// 16 hexadecimal digits.
  package var description: String { value.hexadecimal }
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

  fileprivate var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(unsafeUninitializedCapacity: 16) { buffer in
      for index in 0..<16 { buffer[index] = digits[Int(self >> UInt64(60 - 4 * index) & 15)] }
      return 16
    }
  }

  fileprivate var bytes: Data { withUnsafeBytes(of: bigEndian) { Data($0) } }
}

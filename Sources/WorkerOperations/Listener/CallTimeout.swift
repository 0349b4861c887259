internal import NIOCore

/// The value of `grpc-timeout`: 1 to 8 digits and a unit.
///
/// Source: gRPC over HTTP/2, "Timeout".
struct CallTimeout: Equatable {
  static let key = "grpc-timeout"

  private static let units: [(letter: UInt8, nanoseconds: UInt64)] = [
    (UInt8(ascii: "n"), 1), (UInt8(ascii: "u"), 1000), (UInt8(ascii: "m"), 1_000_000),
    (UInt8(ascii: "S"), 1_000_000_000), (UInt8(ascii: "M"), 60_000_000_000), (UInt8(ascii: "H"), 3_600_000_000_000),
  ]

  private let amount: UInt64
  /// Index in `units`.
  private let unit: Int

  init?(_ value: String) {
    let digits = value.utf8.dropLast()
    guard let letter = value.utf8.last, let unit = Self.units.firstIndex(where: { $0.letter == letter }),
      (1...8).contains(digits.count), digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    amount = digits.reduce(0) { $0 * 10 + UInt64($1 - UInt8(ascii: "0")) }
    self.unit = unit
  }

  var nanoseconds: UInt64 {
    let (product, overflows) = amount.multipliedReportingOverflow(by: Self.units[unit].nanoseconds)
    return overflows ? .max : product
  }

  /// The same, rounded up to what grpc-swift-2 reads: it ignores eight digits.
  var readableValue: String {
    var (amount, unit) = (amount, unit)
    while amount > 9_999_999, unit + 1 < Self.units.count {
      let factor = Self.units[unit + 1].nanoseconds / Self.units[unit].nanoseconds
      amount = (amount + factor - 1) / factor
      unit += 1
    }
    return "\(min(amount, 9_999_999))\(Character(Unicode.Scalar(Self.units[unit].letter)))"
  }
}

/// When a call's client stops waiting, kept in its metadata from the moment at which the call arrives.
struct CallDeadline: Equatable {
  /// Never taken from a client.
  static let key = "image-worker-deadline"

  private let instant: UInt64
  /// A client whose own clock ends the call does so a little earlier: C-core rounds its timeouts up by as much as this.
  private let tolerance: UInt64

  init(_ timeout: CallTimeout, from now: NIODeadline) {
    let nanoseconds = timeout.nanoseconds
    instant =
      now.uptimeNanoseconds.addingReportingOverflow(nanoseconds).overflow ? .max : now.uptimeNanoseconds + nanoseconds
    tolerance = min(nanoseconds / 50 + 5_000_000, nanoseconds)
  }

  /// - `value`: what `value` was.
  init?(value: String) {
    let parts = value.split(separator: " ").compactMap { UInt64($0) }
    guard parts.count == 2 else { return nil }
    (instant, tolerance) = (parts[0], parts[1])
  }

  var value: String { "\(instant) \(tolerance)" }

  func hasPassed(at now: NIODeadline = .now()) -> Bool { now.uptimeNanoseconds >= instant - min(tolerance, instant) }
}

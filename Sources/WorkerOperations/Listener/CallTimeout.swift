internal import NIOCore

/// The value of `grpc-timeout`: 1 to 8 digits and a unit.
///
/// Source: gRPC over HTTP/2, "Timeout".
///
/// Needed with grpc-swift-2 2.4.3.
struct CallTimeout: Equatable {
  static let key = "grpc-timeout"

  private static let units: [(letter: UInt8, nanoseconds: UInt64)] = [
    (UInt8(ascii: "n"), 1), (UInt8(ascii: "u"), 1000), (UInt8(ascii: "m"), 1_000_000),
    (UInt8(ascii: "S"), 1_000_000_000), (UInt8(ascii: "M"), 60_000_000_000), (UInt8(ascii: "H"), 3_600_000_000_000),
  ]

  private let amount: UInt64
  /// Index into `units`.
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
}

/// The time at which a call's client stops waiting.
struct CallDeadline {
  static let message = "the deadline passed before the call was complete; set a longer one"

  /// Nanoseconds of the clock of `NIODeadline`; `UInt64.max` if the deadline is beyond its range.
  private let instant: UInt64
  /// Nanoseconds by which a client may end the call early, because C-core rounds its timeouts up by that much.
  private let tolerance: UInt64

  init(_ timeout: CallTimeout, from now: NIODeadline) {
    let nanoseconds = timeout.nanoseconds
    instant =
      now.uptimeNanoseconds.addingReportingOverflow(nanoseconds).overflow ? .max : now.uptimeNanoseconds + nanoseconds
    tolerance = min(nanoseconds / 50 + 5_000_000, nanoseconds)
  }

  /// The time at which the call ends; `nil` if it is too far away to be scheduled.
  var end: NIODeadline? { instant <= UInt64(Int64.max) ? .uptimeNanoseconds(instant) : nil }

  /// The deadline by the clock that does not stop while the machine sleeps.
  var clockInstant: ContinuousClock.Instant {
    let now = NIODeadline.now().uptimeNanoseconds
    return .now + .nanoseconds(Int64(clamping: instant) - Int64(clamping: now))
  }

  func hasPassed(at now: NIODeadline = .now()) -> Bool { now.uptimeNanoseconds >= instant - min(tolerance, instant) }
}

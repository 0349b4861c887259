/// The policy that decides which traces are recorded.
///
/// Source: OpenTelemetry specification, Tracing SDK, section "Sampling".
package indirect enum Sampler: Sendable, Hashable {
  case alwaysOn
  case alwaysOff
  /// Records this fraction of the traces, 0 to 1, selected by the trace identifier, so that every process selects the
  /// same ones.
  case traceIDRatio(Double)
  /// Follows the caller's decision, or `root` if there is no caller.
  case parentBased(root: Sampler)

  func isSampled(_ traceID: TraceID, parent: SpanContext?) -> Bool {
    switch self {
    case .alwaysOn: true
    case .alwaysOff: false
    case .traceIDRatio(let ratio):
      // The top bit is excluded as in other implementations, whose arithmetic is signed.
      ratio >= 1 || Double(traceID.low & (.max >> 1)) < ratio * 0x1p63
    case .parentBased(let root): parent?.isSampled ?? root.isSampled(traceID, parent: nil)
    }
  }
}

extension Sampler {
  /// Parses the environment's settings.
  ///
  /// - Parameters:
  ///   - name: The value of `OTEL_TRACES_SAMPLER`.
  ///   - argument: The value of `OTEL_TRACES_SAMPLER_ARG`.
  ///   - warn: Called for an invalid value, with the variable and the replacement.
  init(name: String?, argument: String?, warn: (String) -> Void) {
    let fallback = Sampler.parentBased(root: .alwaysOn)
    switch name {
    case nil, "parentbased_always_on": self = fallback
    case "always_on": self = .alwaysOn
    case "always_off": self = .alwaysOff
    case "traceidratio": self = .traceIDRatio(Self.ratio(argument, warn))
    case "parentbased_always_off": self = .parentBased(root: .alwaysOff)
    case "parentbased_traceidratio": self = .parentBased(root: .traceIDRatio(Self.ratio(argument, warn)))
    case let name?:
      warn("OTEL_TRACES_SAMPLER is \"\(name)\", which is unknown; using parentbased_always_on")
      self = fallback
    }
  }

  private static func ratio(_ argument: String?, _ warn: (String) -> Void) -> Double {
    guard let argument else { return 1 }
    guard let ratio = Double(argument), (0...1).contains(ratio) else {
      warn("OTEL_TRACES_SAMPLER_ARG is \"\(argument)\"; it must be between 0 and 1; using 1")
      return 1
    }
    return ratio
  }
}

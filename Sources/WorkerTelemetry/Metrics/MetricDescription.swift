/// What a metric is, as both exports tell it.
package struct MetricDescription: Sendable, Hashable {
  /// How its values add up.
  package enum Kind: Sendable, Hashable {
    /// Only grows.
    case counter
    case gauge
    /// Counts values up to each of these bounds, and above the last.
    case histogram(bounds: [Double])
  }

  /// As OpenTelemetry spells it, with dots.
  package var name: String
  /// In UCUM: `s`, `By`, or what is counted in braces.
  package var unit: String
  package var kind: Kind
  /// One sentence without its full stop.
  package var help: String

  package init(_ name: String, unit: String, kind: Kind, help: String) {
    self.name = name
    self.unit = unit
    self.kind = kind
    self.help = help
  }

  /// As Prometheus spells it.
  ///
  /// Source: OpenTelemetry specification, "Prometheus and OpenMetrics Compatibility".
  package var prometheusName: String {
    let base = name.prometheusIdentifier
    let suffix =
      switch unit {
      case "s": "_seconds"
      case "By": "_bytes"
      default: ""
      }
    return base + (base.hasSuffix(suffix) ? "" : suffix) + (kind == .counter ? "_total" : "")
  }
}

extension String {
  /// With an underscore for what Prometheus does not allow in names.
  var prometheusIdentifier: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.map { scalar in
          let isAllowed = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
          return isAllowed ? scalar : "_"
        }))
  }
}

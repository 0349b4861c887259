/// The description of a metric, used by both the Prometheus and the OTLP export.
package struct MetricDescription: Sendable, Hashable {
  /// How the values of a metric are aggregated.
  package enum Kind: Sendable, Hashable {
    /// A sum that only increases.
    case counter
    case gauge
    /// Counts of values up to each of these bounds, and above the last.
    case histogram(bounds: [Double])
  }

  /// OpenTelemetry name, with dots.
  package var name: String
  /// UCUM unit: `s`, `By`, or the counted things in braces.
  package var unit: String
  /// How values are aggregated.
  package var kind: Kind
  /// One sentence without its full stop.
  package var help: String

  /// The Prometheus name of the metric.
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

extension MetricDescription {
  static func counter(_ name: String, _ unit: String, _ help: String) -> Self {
    Self(name: name, unit: unit, kind: .counter, help: help)
  }

  static func gauge(_ name: String, _ unit: String, _ help: String) -> Self {
    Self(name: name, unit: unit, kind: .gauge, help: help)
  }

  static func histogram(_ name: String, _ unit: String, _ bounds: [Double], _ help: String) -> Self {
    Self(name: name, unit: unit, kind: .histogram(bounds: bounds), help: help)
  }
}

extension String {
  /// The string with an underscore for each character that Prometheus does not allow in names.
  var prometheusIdentifier: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.map { scalar in
          let isAllowed = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
          return isAllowed ? scalar : "_"
        }))
  }
}

/// Formats metrics for Prometheus.
///
/// Source: Prometheus, "Exposition formats", text format 0.0.4; OpenMetrics 1.0.0.
package struct PrometheusText {
  /// A format of scrapes.
  package enum Format: Sendable, CaseIterable {
    case text
    /// The only one with exemplars.
    case openMetrics

    /// The media type.
    package var contentType: String {
      switch self {
      case .text: "text/plain; version=0.0.4; charset=utf-8"
      case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
      }
    }

    /// Returns the format that a client prefers.
    ///
    /// - `accept`: the values of its Accept headers.
    package init(accept: [String]) {
      var best = (quality: 0.0, format: Format.text)
      for range in accept.flatMap({ $0.split(separator: ",") }) {
        let parts = range.split(separator: ";").map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
        guard let format = Format(mediaRange: parts) else { continue }
        let quality = parts.first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
        if quality > best.quality { best = (quality, format) }
      }
      self = best.format
    }

    /// Returns the format of a media type with its parameters; `nil` for another one or another version.
    private init?(mediaRange parts: [String]) {
      let version = parts.first { $0.hasPrefix("version=") }?.dropFirst("version=".count)
      switch parts.first {
      case "application/openmetrics-text" where [nil, "1.0.0", "0.0.1"].contains(version): self = .openMetrics
      case "text/plain", "text/*", "*/*": self = .text
      default: return nil
      }
    }
  }

  private let format: Format
  private var text = ""

  /// Returns the complete text of a scrape.
  package static func format(_ families: [MetricRegistry.Family], as format: Format = .text) -> String {
    var result = Self(format: format)
    for family in families { result.append(family) }
    return format == .openMetrics ? result.text + "# EOF\n" : result.text
  }

  private init(format: Format) { self.format = format }

  private mutating func append(_ family: MetricRegistry.Family) {
    let name = family.description.prometheusName
    let type =
      switch family.description.kind {
      case .counter: "counter"
      case .gauge: "gauge"
      case .histogram: "histogram"
      }
    // OpenMetrics names the family of a counter without the suffix of its samples.
    let isOpen = format == .openMetrics
    let familyName = isOpen && family.description.kind == .counter ? String(name.dropLast("_total".count)) : name
    let help = Self.escape(family.description.help, quotes: isOpen)
    text += "# HELP \(familyName) \(help).\n# TYPE \(familyName) \(type)\n"
    for (dimensions, value) in family.series {
      let labels = dimensions.map { "\($0.name.prometheusIdentifier)=\"\(Self.escape($0.value, quotes: true))\"" }
      switch value {
      case .counter(let value), .gauge(let value): append(name, labels, value)
      case .histogram(let histogram): append(histogram, name, labels)
      }
    }
  }

  private mutating func append(_ histogram: HistogramValue, _ name: String, _ labels: [String]) {
    var total: UInt64 = 0
    for (index, count) in histogram.counts.enumerated() {
      total += count
      let bound = index < histogram.bounds.count ? self.bound(histogram.bounds[index]) : "+Inf"
      let exemplar = index < histogram.exemplars.count ? histogram.exemplars[index] : nil
      append("\(name)_bucket", labels + ["le=\"\(bound)\""], Double(total), exemplar)
    }
    append("\(name)_sum", labels, histogram.sum)
    append("\(name)_count", labels, Double(total))
  }

  private mutating func append(_ name: String, _ labels: [String], _ value: Double, _ exemplar: Exemplar? = nil) {
    text += "\(name)\(labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}") \(Self.number(value))"
    if format == .openMetrics, let exemplar {
      let milliseconds = exemplar.time / 1_000_000
      let fraction = String(milliseconds % 1000 + 1000).dropFirst()
      text += " # {trace_id=\"\(exemplar.traceID)\",span_id=\"\(exemplar.spanID)\"} \(Self.number(exemplar.value))"
      text += " \(milliseconds / 1000).\(fraction)"
    }
    text += "\n"
  }

  /// The bound of a bucket, which in OpenMetrics always has a decimal point.
  private func bound(_ value: Double) -> String { format == .openMetrics ? "\(value)" : Self.number(value) }

  /// Whole numbers have no decimal point, which is shorter and equally exact.
  private static func number(_ value: Double) -> String {
    if let whole = Int(exactly: value) { return String(whole) }
    if value.isNaN { return "NaN" }
    return value.isInfinite ? (value < 0 ? "-Inf" : "+Inf") : "\(value)"
  }

  private static func escape(_ text: String, quotes: Bool) -> String {
    var result = ""
    for character in text.unicodeScalars {
      switch character {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(character)
      }
    }
    return result
  }
}

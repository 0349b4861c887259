/// Formats metrics in Prometheus's text format.
///
/// Source: Prometheus, "Exposition formats", text format 0.0.4.
package enum PrometheusText {
  /// The media type of `format`'s result.
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// Returns the complete text of a scrape.
  package static func format(_ families: [MetricRegistry.Family]) -> String {
    var text = ""
    for family in families { append(family, to: &text) }
    return text
  }

  private static func append(_ family: MetricRegistry.Family, to text: inout String) {
    let name = family.description.prometheusName
    let type =
      switch family.description.kind {
      case .counter: "counter"
      case .gauge: "gauge"
      case .histogram: "histogram"
      }
    text += "# HELP \(name) \(escape(family.description.help, quotes: false)).\n# TYPE \(name) \(type)\n"
    for (dimensions, value) in family.series {
      let labels = dimensions.map { "\($0.name.prometheusIdentifier)=\"\(escape($0.value, quotes: true))\"" }
      switch value {
      case .counter(let value), .gauge(let value): text += sample(name, labels, value)
      case .histogram(let histogram): append(histogram, name, labels, to: &text)
      }
    }
  }

  private static func append(_ histogram: HistogramValue, _ name: String, _ labels: [String], to text: inout String) {
    var total: UInt64 = 0
    for (index, count) in histogram.counts.enumerated() {
      total += count
      let bound = index < histogram.bounds.count ? number(histogram.bounds[index]) : "+Inf"
      text += sample("\(name)_bucket", labels + ["le=\"\(bound)\""], Double(total))
    }
    text += sample("\(name)_sum", labels, histogram.sum)
    text += sample("\(name)_count", labels, Double(total))
  }

  private static func sample(_ name: String, _ labels: [String], _ value: Double) -> String {
    "\(name)\(labels.isEmpty ? "" : "{\(labels.joined(separator: ","))}") \(number(value))\n"
  }

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

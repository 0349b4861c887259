internal import LibC
internal import WorkerTelemetry

/// Numbers and texts as people read them.
enum ReadableText {
  /// Lines without anything but their ends that a terminal would obey, and with all bytes of names.
  static func printable(_ lines: String) -> String {
    PathText.readable(lines).split(separator: "\n", omittingEmptySubsequences: false).map { String($0).singleLine }
      .joined(separator: "\n")
  }

  /// A number with a fixed count of decimal digits, rounded; as Swift writes it if it has more than 18 digits.
  static func number(_ value: Double, digits: Int) -> String {
    let scale = (0..<digits).reduce(1) { scale, _ in scale * 10 }
    guard let scaled = Int(exactly: (value.magnitude * Double(scale)).rounded()) else { return "\(value)" }
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard digits > 0 else { return "\(sign)\(scaled)" }
    let fraction = "\(scaled % scale)"
    return "\(sign)\(scaled / scale)." + String(repeating: "0", count: digits - fraction.count) + fraction
  }

  /// A size with a binary unit, as in `12.3 MiB`.
  static func byteCount(_ count: UInt64) -> String {
    if count < 1024 { return "\(count) B" }
    var value = Double(count) / 1024
    var units = ["KiB", "MiB", "GiB", "TiB"][...]
    // What would be rounded to 1024.0 belongs to the next unit.
    while value >= 1023.95, units.count > 1 {
      value /= 1024
      units.removeFirst()
    }
    return "\(number(value, digits: 1)) \(units[units.startIndex])"
  }

  /// A time as minutes and seconds, as in `0:09`, or with hours in front, as in `1:02:09`.
  static func clock(_ duration: Duration) -> String {
    let seconds = Int(max(0, duration / .seconds(1)).rounded(.up))
    let padded = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
    return (hours > 0 ? "\(hours):\(padded(minutes))" : "\(minutes)") + ":\(padded(seconds % 60))"
  }

  /// A text with spaces up to a width, behind it or in front of it.
  static func padded(_ text: String, _ width: Int, atEnd: Bool = true) -> String {
    let space = String(repeating: " ", count: max(0, width - text.count))
    return atEnd ? text + space : space + text
  }

  /// Rows of as many cells each as lines with aligned columns, without a line end behind the last.
  static func table(_ rows: [[String]]) -> String {
    let columns = (0..<(rows.first?.count ?? 0)).dropLast()
    let widths = columns.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      row.enumerated().map { $0 < widths.count ? padded($1, widths[$0]) : $1 }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  /// The lines of a text that are at most as long as a terminal is wide, unless a word is longer; the first line is
  /// indented, and those that follow it twice as much.
  static func wrapped(_ text: String, columnCount: Int, indent: Int) -> [String] {
    var lines: [String] = []
    var line = String(repeating: " ", count: indent)
    var isEmpty = true
    for word in text.split(separator: " ") {
      if !isEmpty, line.count + 1 + word.count > columnCount {
        lines.append(line)
        (line, isEmpty) = (String(repeating: " ", count: 2 * indent), true)
      }
      line += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines + [line]
  }
}

/// Comma-separated values, as RFC 4180 has them.
enum CSV {
  struct Record: Equatable {
    /// The line that it begins at, from 1.
    var line: Int
    var fields: [String]
  }

  /// The records of a text; empty lines are left out.
  /// - `failingLine`: the line of the error.
  /// - Throws: `ManifestProblem` for a quoted field that does not end.
  static func records(_ text: String, failingLine: inout Int) throws(ManifestProblem) -> [Record] {
    var records: [Record] = []
    var record = Record(line: 1, fields: [])
    var (field, line, isQuoted, wasQuoted) = ("", 1, false, false)
    func isEmpty() -> Bool { record.fields.isEmpty && field.isEmpty && !wasQuoted }
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      if scalar == "\n" { line += 1 }
      if isQuoted {
        if scalar != "\"" {
          field.unicodeScalars.append(scalar)
        } else if rest.first == "\"" {
          field.unicodeScalars.append(scalar)
          rest.removeFirst()
        } else {
          isQuoted = false
        }
        continue
      }
      switch scalar {
      case "\"" where field.isEmpty: (isQuoted, wasQuoted) = (true, true)
      case ",":
        record.fields.append(field)
        (field, wasQuoted) = ("", false)
      case "\r" where rest.first == "\n" || rest.isEmpty: break
      case "\n":
        if !isEmpty() { records.append(Record(line: record.line, fields: record.fields + [field])) }
        record = Record(line: line, fields: [])
        (field, wasQuoted) = ("", false)
      default: field.unicodeScalars.append(scalar)
      }
    }
    if isQuoted {
      failingLine = record.line
      throw ManifestProblem("a quoted field has no end")
    }
    if !isEmpty() { records.append(Record(line: record.line, fields: record.fields + [field])) }
    return records
  }
}

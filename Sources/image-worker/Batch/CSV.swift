/// Comma-separated values, as RFC 4180 has them.
enum CSV {
  struct Record: Equatable {
    /// The line that it begins at, from 1.
    var line: Int
    var fields: [String]
  }

  /// The records of a text; empty lines are left out.
  /// - `maxByteCount`: the maximum size of a record.
  /// - `failingLine`: the line of the error.
  /// - Throws: `ManifestProblem` for a quoted field that does not end, or a record that is too long.
  static func records(
    _ text: String, maxByteCount: Int, failingLine: inout Int
  ) throws(ManifestProblem) -> [Record] {
    var records: [Record] = []
    var record = Record(line: 1, fields: [])
    var (field, line, isQuoted, wasQuoted) = ("", 1, false, false)
    func isEmpty() -> Bool { record.fields.isEmpty && field.isEmpty && !wasQuoted }
    var rest = text.unicodeScalars[...]
    var byteCount = 0
    while let scalar = rest.popFirst() {
      byteCount += UTF8.width(scalar)
      if byteCount > maxByteCount {
        failingLine = record.line
        throw ManifestProblem("is longer than \(maxByteCount) bytes" + (isQuoted ? "; a quoted field has no end" : ""))
      }
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
        (field, wasQuoted, byteCount) = ("", false, 0)
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

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
    var (rest, line) = (text.unicodeScalars[...], 1)
    while !rest.isEmpty {
      let start = line
      do throws(ManifestProblem) {
        let fields = try fields(&rest, &line, maxByteCount: maxByteCount)
        if !fields.isEmpty { records.append(Record(line: start, fields: fields)) }
      } catch {
        failingLine = start
        throw error
      }
    }
    return records
  }

  /// Reads a record up to the end of its last line.
  /// - Returns: The fields; none of an empty line.
  private static func fields(
    _ rest: inout Substring.UnicodeScalarView, _ line: inout Int, maxByteCount: Int
  ) throws(ManifestProblem) -> [String] {
    var fields: [String] = []
    var (field, isQuoted, wasQuoted, byteCount) = ("", false, false, 0)
    record: while let scalar = rest.popFirst() {
      byteCount += UTF8.width(scalar)
      if byteCount > maxByteCount {
        throw ManifestProblem("is longer than \(maxByteCount) bytes" + (isQuoted ? "; a quoted field has no end" : ""))
      }
      if scalar == "\n" { line += 1 }
      switch scalar {
      case "\"" where isQuoted && rest.first == "\"":
        field.unicodeScalars.append(scalar)
        rest.removeFirst()
      case "\"" where isQuoted: isQuoted = false
      case _ where isQuoted: field.unicodeScalars.append(scalar)
      case "\"" where field.isEmpty: (isQuoted, wasQuoted) = (true, true)
      case ",":
        fields.append(field)
        (field, wasQuoted) = ("", false)
      case "\r" where rest.first == "\n" || rest.isEmpty: break
      case "\n": break record
      default: field.unicodeScalars.append(scalar)
      }
    }
    if isQuoted { throw ManifestProblem("a quoted field has no end") }
    return fields.isEmpty && field.isEmpty && !wasQuoted ? [] : fields + [field]
  }
}

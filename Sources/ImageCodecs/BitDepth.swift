internal import Fields

/// The rules of fields for the bits per sample of a result.
enum BitDepth {
  static func check(_ bits: Int, _ field: String) throws(FieldError) { try check(bits, field, highest: 16) }
  static func checkAVIF(_ bits: Int, _ field: String) throws(FieldError) { try check(bits, field, highest: 10) }

  private static func check(_ bits: Int, _ field: String, highest: Int) throws(FieldError) {
    guard bits == 8 || bits == highest else {
      throw FieldError("\(field) is \(bits); it must be 8 or \(highest)", field: field)
    }
  }
}

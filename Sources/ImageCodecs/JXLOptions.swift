internal import CCodecs
package import Fields

/// Options for JPEG XL output.
///
/// A field that is `nil` has its default value.
package struct JXLOptions: Sendable, Hashable {
  /// Whether to write a lossless file; false by default.
  package var isLossless: Bool?
  /// The compression effort, from 1 (fastest) to 9 (smallest).
  package var effort: Int?
  /// The bits per sample of an image with more than 8, 8 or 16; 8 by default.
  package var bitDepth: Int?

  package init(isLossless: Bool? = nil, effort: Int? = nil, bitDepth: Int? = nil) {
    self.isLossless = isLossless
    self.effort = effort
    self.bitDepth = bitDepth
  }

  private static let defaultEffort = 3

  /// Whether the file is lossless.
  package var writesLossless: Bool { isLossless ?? false }

  /// The C options; `nil` if a value is out of range.
  var handle: ccodecs_jxl_options? {
    UInt8(exactly: effort ?? Self.defaultEffort).map { ccodecs_jxl_options(is_lossless: writesLossless, effort: $0) }
  }
}

extension JXLOptions: FieldRecord {
  package init() { self.init(isLossless: nil) }

  package static let fields: [Field<JXLOptions>] = [
    Field(
      "lossless", \.isLossless, option: "jxl-lossless",
      help: "JPEG XL: Write a lossless file; the quality is then ignored. Default: false."),
    Field(
      "effort", \.effort, .range(1...9), option: "jxl-effort", takes: "effort",
      help: "JPEG XL: Set the effort, from 1 (fastest) to 9 (smallest). Default: 3."),
    Field(
      "bit_depth", \.bitDepth, .values("8 or 16") { $0 == 8 || $0 == 16 }, option: "jxl-bit-depth", takes: "bits",
      help: "JPEG XL: Set the bits per sample of images with more than 8: 8 or 16. Default: 8."),
  ]
}

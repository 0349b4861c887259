internal import CCodecs
package import Fields

/// Options for AVIF output.
///
/// A field that is `nil` has its default value.
package struct AVIFOptions: Sendable, Hashable {
  /// The compression effort, from 0 (fastest) to 9 (smallest).
  package var effort: Int?
  /// The bits per sample of an image with more than 8, 8 or 10; 8 by default.
  package var bitDepth: Int?

  package init(effort: Int? = nil, bitDepth: Int? = nil) {
    self.effort = effort
    self.bitDepth = bitDepth
  }

  private static let defaultEffort = 1

  /// The C options; `nil` if a value is out of range.
  var handle: ccodecs_avif_options? {
    UInt8(exactly: effort ?? Self.defaultEffort).map { ccodecs_avif_options(effort: $0) }
  }
}

extension AVIFOptions: FieldRecord {
  package init() { self.init(effort: nil) }

  package static let fields: [Field<AVIFOptions>] = [
    Field(
      "effort", \.effort, .range(0...9), option: "avif-effort", takes: "effort",
      help: "AVIF: Set the effort, from 0 (fastest) to 9 (smallest). Default: 1."),
    Field(
      "bit_depth", \.bitDepth, .values("8 or 10") { $0 == 8 || $0 == 10 }, option: "avif-bit-depth", takes: "bits",
      help: "AVIF: Set the bits per sample of images with more than 8: 8 or 10. Default: 8."),
  ]
}

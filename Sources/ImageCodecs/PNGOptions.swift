internal import CCodecs
package import Fields

/// The filter that predicts a PNG row from its neighbors before compression.
package enum PNGFilter: String, Sendable, Hashable, FieldChoice {
  /// The filter with the smallest sum of absolute differences, chosen for each row.
  case adaptive
  case unfiltered = "none"
  case sub, up, average, paeth

  fileprivate var handle: ccodecs_png_filter {
    switch self {
    case .adaptive: CCODECS_PNG_FILTER_ADAPTIVE
    case .unfiltered: CCODECS_PNG_FILTER_NONE
    case .sub: CCODECS_PNG_FILTER_SUB
    case .up: CCODECS_PNG_FILTER_UP
    case .average: CCODECS_PNG_FILTER_AVERAGE
    case .paeth: CCODECS_PNG_FILTER_PAETH
    }
  }
}

/// Options for PNG output.
///
/// A field that is `nil` has its default value.
package struct PNGOptions: Sendable, Hashable {
  /// The deflate level, from 0 (fastest) to 9 (smallest).
  package var compressionLevel: Int?
  /// Whether to write an interlaced file; the image is then buffered.
  package var isInterlaced: Bool?
  /// The maximum number of palette colors, 2 to 256; 0 for no palette.
  ///
  /// With a palette, the image is buffered.
  package var paletteColors: Int?
  /// The row filter; by default `adaptive`, or `none` with a palette.
  package var filter: PNGFilter?
  /// The bits per sample of an image with more than 8, 8 or 16; 8 by default.
  package var bitDepth: Int?

  package init(
    compressionLevel: Int? = nil, isInterlaced: Bool? = nil, paletteColors: Int? = nil, filter: PNGFilter? = nil,
    bitDepth: Int? = nil
  ) {
    self.compressionLevel = compressionLevel
    self.isInterlaced = isInterlaced
    self.paletteColors = paletteColors
    self.filter = filter
    self.bitDepth = bitDepth
  }

  private static let defaultLevel = 3

  /// The C options; `nil` if a value is out of range.
  var handle: ccodecs_png_options? {
    guard let level = UInt8(exactly: compressionLevel ?? Self.defaultLevel),
      let paletteCount = UInt16(exactly: paletteColors ?? 0)
    else { return nil }
    return ccodecs_png_options(
      compression_level: level, filter: (filter ?? (paletteCount > 0 ? .unfiltered : .adaptive)).handle,
      is_interlaced: isInterlaced ?? false, palette_count: paletteCount)
  }

  /// Whether any coding option differs from its default.
  package var asksForCoding: Bool {
    compressionLevel ?? Self.defaultLevel != Self.defaultLevel || isInterlaced ?? false || paletteColors ?? 0 != 0
      || filter ?? .adaptive != .adaptive || bitDepth ?? 8 != 8
  }
}

extension PNGOptions: FieldRecord {
  package init() { self.init(compressionLevel: nil) }

  package static let fields: [Field<PNGOptions>] = [
    Field(
      "compression_level", \.compressionLevel, .range(0...9), takes: "level",
      help: "PNG: Set the compression level, from 0 (fastest) to 9 (smallest). Default: 3."),
    Field("interlaced", \.isInterlaced, help: "PNG: Write an interlaced file. Default: false."),
    Field(
      "palette_colors", \.paletteColors, .values("0 or between 2 and 256") { $0 == 0 || (2...256).contains($0) },
      takes: "count",
      help: "PNG: Set the maximum number of colors of a palette; 0 for none. Default: 0."),
    Field(
      "filter", \.filter, option: "png-filter", takes: "filter",
      help: "PNG: Set the row filter. Default: adaptive, with a palette none."),
    Field(
      "bit_depth", \.bitDepth, .values("8 or 16") { $0 == 8 || $0 == 16 }, option: "png-bit-depth", takes: "bits",
      help: "PNG: Set the bits per sample of images with more than 8: 8 or 16. Default: 8."),
  ]
}

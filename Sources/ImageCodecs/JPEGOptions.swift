internal import CCodecs
package import Fields

/// The size of chroma planes relative to the luma plane.
package enum ChromaSubsampling: String, Sendable, Hashable, FieldChoice {
  /// The same size as luma.
  case full = "444"
  /// Half the width, rounded up; JPEG only.
  case half = "422"
  /// Half the width and half the height, rounded up.
  case quarter = "420"

  /// The width of a chroma plane divided by the width of the luma plane.
  package var horizontalScale: Double { self == .full ? 1 : 0.5 }
  /// The height of a chroma plane divided by the height of the luma plane.
  package var verticalScale: Double { self == .quarter ? 0.5 : 1 }

  var handle: ccodecs_subsampling {
    switch self {
    case .full: CCODECS_SUBSAMPLING_444
    case .half: CCODECS_SUBSAMPLING_422
    case .quarter: CCODECS_SUBSAMPLING_420
    }
  }
}

/// Options for JPEG output.
///
/// A field that is `nil` has its default value.
package struct JPEGOptions: Sendable, Hashable {
  /// Whether to write a progressive file; the coefficients of the whole image are then buffered.
  package var isProgressive: Bool?
  /// The size of the chroma planes; by default it depends on the quality.
  package var chromaSubsampling: ChromaSubsampling?
  /// Whether Huffman tables are those of the whole image, not of its first quarter of a million symbols; its coefficients
  /// are then buffered.
  package var optimizesHuffman: Bool?
  /// The number of MCU rows between restart markers; 0 for none.
  package var restartRows: Int?

  package init(
    isProgressive: Bool? = nil, chromaSubsampling: ChromaSubsampling? = nil, optimizesHuffman: Bool? = nil,
    restartRows: Int? = nil
  ) {
    self.isProgressive = isProgressive
    self.chromaSubsampling = chromaSubsampling
    self.optimizesHuffman = optimizesHuffman
    self.restartRows = restartRows
  }

  /// Returns the C options; `nil` if a value is out of range.
  /// - `quality64ths`: 64ths to add to the quality.
  func handle(quality64ths: Int) -> ccodecs_jpeg_options? {
    guard let restartRowCount = UInt16(exactly: restartRows ?? 0), let quality64ths = UInt8(exactly: quality64ths)
    else { return nil }
    return ccodecs_jpeg_options(
      is_progressive: isProgressive ?? false, has_optimal_tables: optimizesHuffman ?? false,
      restart_row_count: restartRowCount, quality_64ths: quality64ths)
  }

  /// Whether any coding option differs from its default.
  package var asksForCoding: Bool { isProgressive ?? false || optimizesHuffman ?? false || restartRows ?? 0 != 0 }
}

extension JPEGOptions: FieldRecord {
  package init() { self.init(isProgressive: nil) }

  package static let fields: [Field<JPEGOptions>] = [
    Field("progressive", \.isProgressive, help: "JPEG: Write a progressive file. Default: false."),
    Field(
      "chroma_subsampling", \.chromaSubsampling, option: "chroma", takes: "sampling",
      help: "JPEG: Set the chroma subsampling. Default: 420 below quality 0.9, else 444."),
    Field(
      "optimize_huffman", \.optimizesHuffman,
      help: "JPEG: Compute Huffman tables for the whole image. Default: false."),
    Field(
      "restart_rows", \.restartRows, .range(0...65_535), takes: "rows",
      help: "JPEG: Set the rows of MCUs between restart markers; 0 for none. Default: 0."),
  ]
}

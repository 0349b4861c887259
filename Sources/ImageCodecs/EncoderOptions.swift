internal import CCodecs

/// What an encoder is asked to write.
package struct EncoderOptions: Sendable, Hashable {
  /// How large chroma planes are beside the luma plane.
  package enum ChromaSubsampling: Sendable, Hashable, CaseIterable {
    /// As large as luma (4:4:4).
    case full
    /// Half the width, rounded up (4:2:2); for JPEG.
    case half
    /// Half the width and half the height, rounded up (4:2:0).
    case quarter

    /// Samples of a chroma plane for each of the luma plane.
    package var horizontalScale: Double { self == .full ? 1 : 0.5 }
    package var verticalScale: Double { self == .quarter ? 0.5 : 1 }
  }

  /// How a row of PNG is told by its neighbours.
  package enum PNGFilter: Sendable, Hashable, CaseIterable {
    /// For each row the one with the smallest sum of absolute differences.
    case adaptive
    case unfiltered, sub, up, average, paeth
  }

  /// Of JPEG files alone.
  package struct JPEG: Sendable, Hashable {
    /// The coefficients of the whole picture are then held.
    package var isProgressive = false
    /// Huffman tables made for the picture, whose coefficients are then held.
    package var hasOptimalTables = false
    /// Rows of MCUs between restart markers, 0 to 65535; 0 for none.
    package var restartRowCount = 0
    package init() {}
  }

  /// Of PNG files alone.
  package struct PNG: Sendable, Hashable {
    /// 0 to 9, of deflate.
    package var compressionLevel = 3
    package var filter = PNGFilter.adaptive
    /// The picture is then held.
    package var isInterlaced = false
    /// 2 to 256 colours of a palette; 0 for none.
    ///
    /// The picture is then held.
    package var paletteCount = 0
    package init() {}

    /// Whether palettes were built in.
    package static var hasPalettes: Bool { ccodecs_png_has_palettes() }
  }

  /// Of WebP files alone.
  package struct WebP: Sendable, Hashable {
    package var isLossless = false
    /// 0 to 100, of a lossless file: how little is changed to make it smaller; 100 for nothing.
    package var nearLossless = 100
    /// 0 (fastest) to 6 (smallest).
    package var method = 4
    /// Of a lossy file: half as long again in a third to a half of the memory.
    package var savesMemory = false
    package init() {}
  }

  /// `.jpeg`, `.png`, `.webp`, or `.avif` where it was built in.
  package var format: ImageFormat
  package var width: Int
  package var height: Int
  /// One that `ImageFormat.takes`.
  package var pixelFormat: PixelFormat
  /// For JPEG, and for the size of the planes given as `ycc8`.
  package var subsampling: ChromaSubsampling
  /// 1 to 100; for JPEG, lossy WebP and AVIF.
  package var quality: Int
  package var jpeg = JPEG()
  package var png = PNG()
  package var webp = WebP()
  /// An EXIF block (TIFF) that the result is to carry; empty for none.
  package var exif: [UInt8] = []

  package init(
    format: ImageFormat, width: Int, height: Int, pixelFormat: PixelFormat,
    subsampling: ChromaSubsampling = .quarter, quality: Int = 80
  ) {
    self.format = format
    self.width = width
    self.height = height
    self.pixelFormat = pixelFormat
    self.subsampling = subsampling
    self.quality = quality
  }

  /// Whether `quality` says how near the result is to its picture.
  package var isLossy: Bool {
    guard let output = format.traits.output, output.sizeCurve != nil else { return false }
    return output.optionGroup != .webp || !webp.isLossless
  }

  /// Lends the options, which are valid for the call.
  func withHandle<Result>(_ body: (inout ccodecs_encode_options) -> Result) throws(CodecError) -> Result {
    var options = try handle()
    return exif.withUnsafeBufferPointer { block in
      options.exif = block.baseAddress
      options.exif_count = block.count
      return body(&options)
    }
  }

  private func handle() throws(CodecError) -> ccodecs_encode_options {
    guard let pixels = pixelFormat.handle, let width = UInt32(exactly: width), let height = UInt32(exactly: height),
      let quality = UInt8(exactly: quality), let restartRowCount = UInt16(exactly: jpeg.restartRowCount),
      let level = UInt8(exactly: png.compressionLevel), let paletteCount = UInt16(exactly: png.paletteCount),
      let nearLossless = UInt8(exactly: webp.nearLossless), let method = UInt8(exactly: webp.method)
    else { throw CodecError(code: .misuse, message: "encoder options out of range: \(self)") }
    return ccodecs_encode_options(
      format: format.handle, width: width, height: height, pixels: pixels, subsampling: subsampling.handle,
      quality: quality,
      jpeg: ccodecs_jpeg_options(
        is_progressive: jpeg.isProgressive, has_optimal_tables: jpeg.hasOptimalTables,
        restart_row_count: restartRowCount),
      png: ccodecs_png_options(
        compression_level: level, filter: png.filter.handle, is_interlaced: png.isInterlaced,
        palette_count: paletteCount),
      webp: ccodecs_webp_options(
        is_lossless: webp.isLossless, near_lossless: nearLossless, method: method, saves_memory: webp.savesMemory),
      exif: nil, exif_count: 0)
  }

  /// An upper bound of the bytes that an encoder charges to the budget, if its output is read after every 16 rows.
  package func estimatedByteCount() throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    let status = try withHandle { ccodecs_encoder_estimate(&$0, &byteCount) }
    if let error = CodecError(
      status: status, message: "\(format.rawValue) can't hold \(width)x\(height) \(pixelFormat)", budget: nil)
    {
      throw error
    }
    return byteCount
  }

  /// An upper bound of the result's bytes.
  package func largestByteCount() throws(CodecError) -> UInt64 {
    try withHandle { ccodecs_encoder_largest(&$0) }
  }
}

extension EncoderOptions.ChromaSubsampling {
  fileprivate var handle: ccodecs_subsampling {
    switch self {
    case .full: CCODECS_SUBSAMPLING_444
    case .half: CCODECS_SUBSAMPLING_422
    case .quarter: CCODECS_SUBSAMPLING_420
    }
  }
}

extension EncoderOptions.PNGFilter {
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

extension EncoderOptions {
  /// Samples across a plane that an encoder with these options is given.
  package func planeWidth(_ index: Int) -> Int {
    guard index > 0, pixelFormat == .ycc8 else { return width }
    return Int((Double(width) * subsampling.horizontalScale).rounded(.up))
  }
}

internal import CCodecs

/// The options of an encoder.
package struct EncoderOptions: Sendable, Hashable {
  /// The output format; it must have an encoder in this build.
  package var format: ImageFormat
  /// Width of the result in pixels.
  package var width: Int
  /// Height of the result in pixels.
  package var height: Int
  /// The pixel format of the input rows; `ImageFormat.takes` must accept it.
  package var pixelFormat: PixelFormat
  /// The chroma subsampling of a JPEG, and the size of the planes that are passed as `ycc8`.
  package var subsampling: ChromaSubsampling
  /// The quality, from 1 to 100; ignored for lossless results.
  package var quality: Int
  /// 64ths to add to the quality of a JPEG below 100; ignored for other formats.
  package var quality64ths = 0
  /// JPEG options; ignored for other formats.
  package var jpeg = JPEGOptions()
  /// PNG options; ignored for other formats.
  package var png = PNGOptions()
  /// WebP options; ignored for other formats.
  package var webp = WebPOptions()
  /// AVIF options; ignored for other formats.
  package var avif = AVIFOptions()
  /// JPEG XL options; ignored for other formats.
  package var jxl = JXLOptions()
  /// Options of raw results; ignored for other formats.
  package var tensor = TensorOptions()
  /// GIF options; ignored for other formats.
  package var gif = GIFOptions()
  /// Whether to encode a lossy WebP with less memory.
  ///
  /// This takes a third to a half of the memory and 1.5 times as long.
  package var savesMemory = false
  /// Whether the result may have several frames.
  ///
  /// It is then complete only at its end, and its compressed frames are spooled.
  package var hasFrames = false
  /// The directory to which compressed frames are spooled; `nil` to buffer them in memory.
  package var spill: SpillDirectory?
  /// The metadata to write to the result.
  package var metadata = EmbeddedMetadata()

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

  /// The bits per sample of a file that is no tensor.
  package var storedBitDepth: Int {
    guard pixelFormat.is16Bit else { return 8 }
    return format.traits.output?.optionGroup == .avif ? 10 : 16
  }

  /// Whether `quality` affects the result.
  package var isLossy: Bool {
    guard let output = format.traits.output, output.sizeCurve != nil else { return false }
    return !(output.optionGroup == .webp && webp.writesLossless || output.optionGroup == .jxl && jxl.writesLossless)
  }

  /// Calls `body` with the C options, which are valid only during the call.
  func withHandle<Result>(_ body: (inout ccodecs_encode_options) -> Result) throws(CodecError) -> Result {
    guard let pixels = pixelFormat.handle, let width = UInt32(exactly: width), let height = UInt32(exactly: height),
      let quality = UInt8(exactly: quality), let jpeg = jpeg.handle(quality64ths: quality64ths), let png = png.handle,
      let webp = webp.handle(savesMemory: savesMemory), let avif = avif.handle, let jxl = jxl.handle
    else { throw CodecError(code: .misuse, message: "encoder options out of range: \(self)") }
    return metadata.withHandle { metadata in
      var options = ccodecs_encode_options(
        format: format.handle, width: width, height: height, pixels: pixels, subsampling: subsampling.handle,
        quality: quality, jpeg: jpeg, png: png, webp: webp, avif: avif, jxl: jxl, gif: gif.handle, raw: tensor.handle,
        metadata: metadata, has_frames: hasFrames, spill: CodecLimits(spill: spill).handle)
      return body(&options)
    }
  }

  /// Returns an upper bound of the bytes that an encoder charges to the budget.
  ///
  /// The output must be read after every 16 rows.
  package func estimatedByteCount() throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    let status = try withHandle { ccodecs_encoder_estimate(&$0, &byteCount) }
    if status == CCODECS_LIMIT {
      let (limit, side) = (UInt64(ccodecs_format_max_side(format.handle)), UInt64(max(width, height)))
      var error = CodecError(
        code: .limitExceeded,
        message: "\(format.rawValue) results have at most \(limit) pixels per side, and this one \(width)x\(height)")
      error.limit = CodecError.Limit(name: "max_side", limit: limit, value: side)
      throw error
    }
    if let error = CodecError(
      status: status, message: "\(format.rawValue) cannot store \(width)x\(height) \(pixelFormat)",
      budget: nil)
    {
      throw error
    }
    return byteCount
  }

  /// Returns an upper bound of the size of the result in bytes.
  package func maxByteCount() throws(CodecError) -> UInt64 {
    try withHandle { ccodecs_encoder_max_bytes(&$0) }
  }
}

extension EncoderOptions {
  /// Returns the number of samples in a row of the input plane at `index`.
  package func planeWidth(_ index: Int) -> Int {
    guard index > 0, pixelFormat == .ycc8 else { return width }
    return Int((Double(width) * subsampling.horizontalScale).rounded(.up))
  }

  /// Returns the number of rows of the input plane at `index`.
  package func planeHeight(_ index: Int) -> Int {
    guard index > 0, pixelFormat == .ycc8 else { return height }
    return Int((Double(height) * subsampling.verticalScale).rounded(.up))
  }
}

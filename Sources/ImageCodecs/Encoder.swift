internal import CCodecs

/// What an encoder is asked to write.
package struct EncoderOptions: Sendable, Hashable {
  /// How large chroma planes are beside the luma plane.
  package enum ChromaSubsampling: Sendable, Hashable {
    /// As large as luma.
    case none
    /// Half the width and half the height, rounded up (4:2:0).
    case quarter
  }

  /// `.jpeg`, `.png`, `.webp`, or `.avif` where it was built in.
  package var format: ImageFormat
  package var width: Int
  package var height: Int
  /// JPEG takes `gray8`, `rgb8` and `ycc8`; PNG `gray8`, `rgb8` and `rgba8`; WebP and AVIF `rgb8` and `rgba8`.
  package var pixelFormat: PixelFormat
  /// For JPEG, and for the size of the planes given as `ycc8`.
  package var subsampling: ChromaSubsampling
  /// 1 to 100; for JPEG, WebP and AVIF.
  package var quality: Int
  /// 0 to 9; for PNG.
  package var compressionLevel: Int
  /// An EXIF block (TIFF) that the result is to carry; empty for none.
  package var exif: [UInt8] = []

  package init(
    format: ImageFormat, width: Int, height: Int, pixelFormat: PixelFormat,
    subsampling: ChromaSubsampling = .quarter, quality: Int = 80, compressionLevel: Int = 3
  ) {
    self.format = format
    self.width = width
    self.height = height
    self.pixelFormat = pixelFormat
    self.subsampling = subsampling
    self.quality = quality
    self.compressionLevel = compressionLevel
  }

  /// Lends the options, which are valid for the call.
  fileprivate func withHandle<Result>(
    _ body: (inout ccodecs_encode_options) -> Result
  ) throws(CodecError) -> Result {
    var options = try handle()
    return exif.withUnsafeBufferPointer { block in
      options.exif = block.baseAddress
      options.exif_count = block.count
      return body(&options)
    }
  }

  private func handle() throws(CodecError) -> ccodecs_encode_options {
    guard let pixels = pixelFormat.handle, let width = UInt32(exactly: width), let height = UInt32(exactly: height),
      let quality = UInt8(exactly: quality), let level = UInt8(exactly: compressionLevel)
    else { throw CodecError(code: .misuse, message: "encoder options out of range: \(self)") }
    return ccodecs_encode_options(
      format: format.handle, width: width, height: height, pixels: pixels,
      subsampling: subsampling == .none ? CCODECS_SUBSAMPLING_444 : CCODECS_SUBSAMPLING_420,
      quality: quality, compression_level: level, exif: nil, exif_count: 0)
  }

  /// An upper bound of the bytes that an encoder charges to the budget, if its output is read after every 16 rows.
  package func estimatedByteCount() throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    let status = try withHandle { ccodecs_encoder_estimate(&$0, &byteCount) }
    if let error = CodecError(
      status: status, message: "\(format.rawValue) can't hold \(width)x\(height) \(pixelFormat)")
    {
      throw error
    }
    return byteCount
  }
}

/// An encoder: strips go in, compressed bytes come out as they are made.
///
/// One that threw stays failed.
package struct Encoder: ~Copyable {
  private let handle: OpaquePointer
  private let budget: PictureBudget

  /// - Throws: `unsupported` for a combination of format and pixels that can't be written, `limitExceeded` for a size
  ///   that the format can't hold, `outOfMemory` when the budget has no room.
  package init(options: EncoderOptions, budget: PictureBudget) throws(CodecError) {
    var handle: OpaquePointer?
    let status = try options.withHandle { ccodecs_encoder_create(&$0, budget.account, &handle) }
    if let error = CodecError(
      status: status,
      message: "\(options.format.rawValue) can't hold \(options.width)x\(options.height) \(options.pixelFormat)")
    {
      throw error
    }
    self.handle = handle!
    self.budget = budget
  }

  deinit { ccodecs_encoder_destroy(handle) }

  /// Takes rows, top to bottom, of the pixel format that the options name.
  package mutating func write(_ strip: borrowing Strip) throws(CodecError) {
    var rows = strip.handle
    try check(ccodecs_encoder_write(handle, &rows))
  }

  /// Ends the picture, all rows of which were written.
  package mutating func finish() throws(CodecError) {
    try check(ccodecs_encoder_finish(handle))
  }

  /// Compressed bytes that wait to be read.
  package var pendingByteCount: Int { ccodecs_encoder_pending(handle) }

  /// Moves at most `buffer.byteCount` compressed bytes into the front of `buffer`; returns how many.
  package mutating func read(into buffer: PixelBuffer) -> Int {
    ccodecs_encoder_read(handle, buffer.base.assumingMemoryBound(to: UInt8.self), buffer.byteCount)
  }

  private func check(_ status: ccodecs_status) throws(CodecError) {
    if let error = CodecError(status: status, message: String(cString: ccodecs_encoder_message(handle))) { throw error }
  }
}

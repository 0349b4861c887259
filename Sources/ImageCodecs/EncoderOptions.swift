internal import CCodecs

/// What an encoder is asked to write.
package struct EncoderOptions: Sendable, Hashable {
  /// `.jpeg`, `.png`, `.webp`, or `.avif` where it was built in.
  package var format: ImageFormat
  /// Width of the result in pixels.
  package var width: Int
  /// Height of the result in pixels.
  package var height: Int
  /// One that `ImageFormat.takes`.
  package var pixelFormat: PixelFormat
  /// For JPEG, and for the size of the planes given as `ycc8`.
  package var subsampling: ChromaSubsampling
  /// 1 to 100; for JPEG, lossy WebP and AVIF.
  package var quality: Int
  /// Options of a JPEG; ignored for other formats.
  package var jpeg = JPEGOptions()
  /// Options of a PNG; ignored for other formats.
  package var png = PNGOptions()
  /// Options of a WebP; ignored for other formats.
  package var webp = WebPOptions()
  /// Whether a lossy WebP is encoded in a third to a half of the memory, which takes half as long again.
  package var savesMemory = false
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

  /// Whether `quality` says how near the result is to its image.
  package var isLossy: Bool {
    guard let output = format.traits.output, output.sizeCurve != nil else { return false }
    return output.optionGroup != .webp || !webp.writesLossless
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
      let quality = UInt8(exactly: quality), let jpeg = jpeg.handle, let png = png.handle,
      let webp = webp.handle(savesMemory: savesMemory)
    else { throw CodecError(code: .misuse, message: "encoder options out of range: \(self)") }
    return ccodecs_encode_options(
      format: format.handle, width: width, height: height, pixels: pixels, subsampling: subsampling.handle,
      quality: quality, jpeg: jpeg, png: png, webp: webp,
      exif: nil, exif_count: 0)
  }

  /// An upper bound of the bytes that an encoder charges to the budget, if its output is read after every 16 rows.
  package func estimatedByteCount() throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    let status = try withHandle { ccodecs_encoder_estimate(&$0, &byteCount) }
    if let error = CodecError(
      status: status, message: "\(format.rawValue) cannot store \(width)x\(height) \(pixelFormat)",
      budget: nil)
    {
      throw error
    }
    return byteCount
  }

  /// An upper bound of the result's bytes.
  package func maxByteCount() throws(CodecError) -> UInt64 {
    try withHandle { ccodecs_encoder_max_bytes(&$0) }
  }
}

extension EncoderOptions {
  /// Samples across a plane that an encoder with these options is given.
  package func planeWidth(_ index: Int) -> Int {
    guard index > 0, pixelFormat == .ycc8 else { return width }
    return Int((Double(width) * subsampling.horizontalScale).rounded(.up))
  }
}

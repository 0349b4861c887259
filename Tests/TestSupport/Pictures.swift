package import ImageCodecs

/// A picture file made of samples, row by row.
/// - `pixelFormat`: one with a single plane.
package func encodedPicture(
  _ samples: [UInt8], width: Int, height: Int, pixelFormat: PixelFormat, as format: ImageFormat = .png
) throws(CodecError) -> [UInt8] {
  precondition(samples.count == width * height * pixelFormat.pixelByteCount)
  let budget = PictureBudget(limit: 1 << 28)
  var options = EncoderOptions(
    format: format, width: width, height: height, pixelFormat: pixelFormat, subsampling: .full, quality: 100)
  options.png.compressionLevel = 1
  var encoder = try Encoder(options: options, budget: budget)
  let stride = width * pixelFormat.pixelByteCount
  let rows = try PixelBuffer(byteCount: samples.count, budget: budget)
  rows.base.copyMemory(from: samples, byteCount: samples.count)
  try encoder.write(
    Strip(
      format: pixelFormat,
      rows: Strip.Rows(base: UnsafeRawPointer(rows.base), rowStride: stride, rowCount: height)))
  try encoder.finish()
  let buffer = try PixelBuffer(byteCount: encoder.pendingByteCount, budget: budget)
  let count = encoder.read(into: buffer)
  return Array(UnsafeRawBufferPointer(start: buffer.base, count: count))
}

/// Samples that look random and are always the same.
package func noiseSamples(_ count: Int) -> [UInt8] {
  var state: UInt32 = 2024
  return (0..<count).map { _ in
    state = state &* 1_664_525 &+ 1_013_904_223
    return UInt8(state >> 24)
  }
}

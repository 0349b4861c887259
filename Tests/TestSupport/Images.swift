package import ImageCodecs

/// Encodes samples row by row into an image file; `pixelFormat` must have a single plane.
package func encodedImage(
  _ samples: [UInt8], width: Int, height: Int, pixelFormat: PixelFormat, as format: ImageFormat = .png,
  isProgressive: Bool = false
) throws(CodecError) -> [UInt8] {
  precondition(samples.count == width * height * pixelFormat.pixelByteCount)
  let budget = ImageBudget(limit: 1 << 28)
  var options = EncoderOptions(
    format: format, width: width, height: height, pixelFormat: pixelFormat, subsampling: .full, quality: 100)
  options.png.compressionLevel = 1
  options.jpeg.isProgressive = isProgressive
  var encoder = try Encoder(options: options, budget: budget)
  let rows = try rowBuffer(samples, rowByteCount: width * pixelFormat.pixelByteCount)
  try encoder.write(Strip(format: pixelFormat, rows: rows.rows(count: height)))
  try encoder.finish()
  let buffer = try PixelBuffer(byteCount: encoder.pendingByteCount, budget: budget)
  var bytes: [UInt8] = []
  encoder.drain(buffer) { bytes.append($0) }
  return bytes
}

/// Returns a row buffer with the rows of one plane and a memory budget of its own.
package func rowBuffer(_ bytes: [UInt8], rowByteCount: Int) throws(CodecError) -> RowBuffer {
  let rowCount = bytes.count / rowByteCount
  let rows = try RowBuffer(
    rowByteCount: rowByteCount, rowCount: rowCount, budget: ImageBudget(limit: 1 << 30))
  for row in 0..<rowCount {
    rows.withMutableRow(row) { span in
      for offset in 0..<rowByteCount { span[offset] = bytes[row * rowByteCount + offset] }
    }
  }
  return rows
}

/// Returns pseudorandom samples that are the same in every run.
package func noiseSamples(_ count: Int) -> [UInt8] {
  var state: UInt32 = 2024
  return (0..<count).map { _ in
    state = state &* 1_664_525 &+ 1_013_904_223
    return UInt8(state >> 24)
  }
}

package import ImageCodecs

/// Encodes frames of RGBA with one duration each, in hundredths of a second.
/// - `quality`: That of a lossy WebP; `nil` for a lossless one.
package func encodedAnimation(
  _ frames: [[UInt8]], durations: [Int], width: Int, height: Int, as format: ImageFormat, quality: Int? = nil
) throws -> (bytes: [UInt8], frameCount: Int) {
  var options = EncoderOptions(
    format: format, width: width, height: height, pixelFormat: .rgba8, quality: quality ?? 100)
  options.webp.isLossless = quality == nil
  options.hasFrames = true
  let budget = ImageBudget(limit: Int(try options.estimatedByteCount()))
  var encoder = try Encoder(options: options, budget: budget)
  // Frames come from decoders alone.
  let sample = GIFFrame(width: 1, height: 1, indices: [0])
  let source = GIFAnimation(
    width: 1, height: 1,
    frames: durations.map { duration in
      var frame = sample
      frame.delay = duration
      return frame
    }, repeatCount: 6)
  let described = try Pixels.decode(source.bytes, frames: (0, 0)).frames
  for (frame, pixels) in zip(described, frames) {
    try encoder.beginFrame(frame)
    let rows = try rowBuffer(pixels, rowByteCount: width * 4)
    try encoder.write(Strip(format: .rgba8, rows: rows.rows(count: height)))
    try encoder.finish(.frame)
  }
  try encoder.finish()
  let buffer = try PixelBuffer(byteCount: 1000, budget: ImageBudget(limit: 4096))
  var bytes: [UInt8] = []
  while true {
    let count = try encoder.read(into: buffer)
    if count == 0 { break }
    buffer.withBytes(count) { bytes.append($0) }
  }
  return (bytes, encoder.storedFrameCount)
}

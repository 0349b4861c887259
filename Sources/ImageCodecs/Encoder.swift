internal import CCodecs

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
      message: "\(options.format.rawValue) can't hold \(options.width)x\(options.height) \(options.pixelFormat)",
      budget: budget)
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

  /// Gives the result an EXIF block after its last row, where its format can have one there (PNG); else nothing happens.
  package mutating func append(exif: [UInt8]) throws(CodecError) {
    let status = exif.withUnsafeBufferPointer { ccodecs_encoder_append_exif(handle, $0.baseAddress, $0.count) }
    if status != CCODECS_UNSUPPORTED { try check(status) }
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
    if let error = CodecError(status: status, message: String(cString: ccodecs_encoder_message(handle)), budget: budget)
    {
      throw error
    }
  }
}

internal import CCodecs

/// An encoder: strips go in, compressed bytes come out as they are made.
///
/// One that threw stays failed.
package struct Encoder: ~Copyable {
  private let handle: OpaquePointer
  private let budget: ImageBudget
  private let format: PixelFormat
  /// Bytes of a row of each plane.
  private let rowByteCounts: [Int]

  /// - Throws: `unsupported` for a combination of format and pixels that can't be written, `limitExceeded` for a size
  ///   that the format can't hold, `outOfMemory` when the budget has no room.
  package init(options: EncoderOptions, budget: ImageBudget) throws(CodecError) {
    var handle: OpaquePointer?
    let status = try options.withHandle { ccodecs_encoder_create(&$0, budget.account, &handle) }
    if let error = CodecError(
      status: status,
      message:
        "\(options.format.rawValue) cannot store \(options.width)x\(options.height) \(options.pixelFormat)",
      budget: budget)
    {
      throw error
    }
    self.handle = handle!
    self.budget = budget
    format = options.pixelFormat
    rowByteCounts = (0..<options.pixelFormat.planeCount).map { index in
      options.planeWidth(index) * options.pixelFormat.pixelByteCount
    }
  }

  deinit { ccodecs_encoder_destroy(handle) }

  /// Takes rows, top to bottom, of the pixel format that the options name.
  /// - Throws: `misuse` for pixels of another format, and for rows that are shorter than the options' width.
  package mutating func write(_ strip: borrowing Strip) throws(CodecError) {
    for index in rowByteCounts.indices {
      let rows = strip.plane(index)
      guard strip.format == format, rows.isEmpty || rows.rowByteCount >= rowByteCounts[index] else {
        throw CodecError(code: .misuse, message: "rows of \(strip.format) do not fit an encoder of \(format)")
      }
    }
    var rows = strip.handle
    try check(ccodecs_encoder_write(handle, &rows))
  }

  /// Gives the result an EXIF block after its last row, where its format can have one there (PNG); else nothing happens.
  package mutating func append(exif: [UInt8]) throws(CodecError) {
    let status = exif.withUnsafeBufferPointer { ccodecs_encoder_append_exif(handle, $0.baseAddress, $0.count) }
    if status != CCODECS_UNSUPPORTED { try check(status) }
  }

  /// Ends the image, all rows of which were written.
  package mutating func finish() throws(CodecError) {
    try check(ccodecs_encoder_finish(handle))
  }

  /// Compressed bytes that wait to be read.
  package var pendingByteCount: Int { ccodecs_encoder_pending(handle) }

  /// Moves at most `buffer.byteCount` compressed bytes into the front of `buffer`; returns how many.
  package mutating func read(into buffer: PixelBuffer) -> Int {
    ccodecs_encoder_read(handle, buffer.unsafeBase.assumingMemoryBound(to: UInt8.self), buffer.byteCount)
  }

  /// Lends what is compressed so far, in portions that `buffer` holds.
  package mutating func drain<Failure: Error>(
    _ buffer: PixelBuffer, _ body: (RawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    while true {
      let count = read(into: buffer)
      guard count > 0 else { return }
      try buffer.withBytes(count, body)
    }
  }

  private func check(_ status: ccodecs_status) throws(CodecError) {
    if let error = CodecError(status: status, message: String(cString: ccodecs_encoder_message(handle)), budget: budget)
    {
      throw error
    }
  }
}

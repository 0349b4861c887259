internal import CCodecs

/// An encoder that takes strips of rows and produces compressed bytes incrementally.
///
/// An encoder that has thrown stays failed.
package struct Encoder: ~Copyable {
  private let handle: OpaquePointer
  private let budget: ImageBudget
  // Keeps the directory open, because the encoder uses its descriptor.
  private let spill: SpillDirectory?
  private let format: PixelFormat
  /// The number of bytes in a row of each plane.
  private let rowByteCounts: [Int]

  /// Creates an encoder.
  /// - Throws: `unsupported` if the format cannot store the pixel format, `limitExceeded` if the format cannot store
  ///   the size, `outOfMemory` if the budget is exhausted.
  package init(options: EncoderOptions, budget: ImageBudget) throws(CodecError) {
    var handle: OpaquePointer?
    let status = try options.withHandle { ccodecs_encoder_create(&$0, budget.account, &handle) }
    self.handle = try CodecError.created(
      handle, status: status,
      message: "\(options.format.rawValue) cannot store \(options.width)x\(options.height) \(options.pixelFormat)",
      budget: budget)
    self.budget = budget
    spill = options.spill
    format = options.pixelFormat
    rowByteCounts = (0..<options.pixelFormat.planeCount).map { index in
      options.planeWidth(index) * options.pixelFormat.pixelByteCount
    }
  }

  deinit { ccodecs_encoder_destroy(handle) }

  /// Begins a frame; a still image is one frame, which the first `write` begins if this was not called.
  /// - Throws: `unsupported` for a second frame, unless the options allow several.
  package mutating func beginFrame(_ frame: ImageFrame) throws(CodecError) {
    var handle = frame.handle
    try check(ccodecs_encoder_begin_frame(self.handle, &handle))
  }

  /// Encodes rows of the frame, from top to bottom, in the pixel format given in the options.
  /// - Throws: `misuse` if the pixel format differs, or if rows are shorter than the options' width.
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

  /// Repeats the next rows of the frame from the one before it.
  /// - Throws: `misuse` for the first frame.
  package mutating func repeatRows(_ count: Int) throws(CodecError) {
    try check(ccodecs_encoder_repeat(handle, UInt32(count)))
  }

  /// Appends an EXIF block after the last row if the format allows one there (PNG); otherwise does nothing.
  package mutating func append(exif: [UInt8]) throws(CodecError) {
    let status = exif.withUnsafeBufferPointer { ccodecs_encoder_append_exif(handle, $0.baseAddress, $0.count) }
    if status != CCODECS_UNSUPPORTED { try check(status) }
  }

  /// Lets the last frame, which has ended, last longer instead of encoding the frame that follows.
  /// - Returns: Whether it does; not if one of them lasts at most 10 ms, which viewers show for longer.
  package mutating func extendFrame(by frame: ImageFrame) -> Bool {
    var frame = frame.handle
    return ccodecs_encoder_extend_frame(handle, &frame)
  }

  /// Lets the result be an animation, with the duration of its frame, even if only one frame begins.
  package mutating func keepAnimation() { ccodecs_encoder_keep_animation(handle) }

  /// The part of a result that is complete.
  package enum Part: Sendable {
    case frame
    /// The image, and its frame if that was not finished.
    case image
  }

  /// Completes the frame or the image; call it after all of its rows have been written.
  /// - Parameters:
  ///   - part: The part that is complete.
  ///   - mayContinue: Called from time to time by an encoder that compresses a whole frame at once: WebP, and PNG
  ///     with a palette.
  /// - Throws: `interrupted` if `mayContinue` returned false.
  package mutating func finish(_ part: Part = .image, mayContinue: () -> Bool = { true }) throws(CodecError) {
    let handle = handle
    let status = withInterrupt(mayContinue) { interrupt -> ccodecs_status in
      ccodecs_encoder_set_interrupt(handle, interrupt)
      defer { ccodecs_encoder_set_interrupt(handle, ccodecs_interrupt()) }
      switch part {
      case .frame: return ccodecs_encoder_end_frame(handle)
      case .image: return ccodecs_encoder_finish(handle)
      }
    }
    try check(status)
  }

  /// The number of compressed bytes that can be read now.
  package var pendingByteCount: Int { ccodecs_encoder_pending(handle) }

  /// The number of frames that the finished result contains; equal frames in sequence are stored as one.
  package var storedFrameCount: Int { Int(ccodecs_encoder_stored_frames(handle)) }

  /// Moves at most `buffer.byteCount` compressed bytes to the start of `buffer`, and returns their number.
  /// - Throws: `outOfResources` if spooled bytes cannot be read.
  package mutating func read(into buffer: PixelBuffer) throws(CodecError) -> Int {
    let count = take(into: buffer)
    if count == 0 { try check(ccodecs_encoder_failure(handle)) }
    return count
  }

  /// Compressed bytes in the memory of an encoder; they are valid until it is used again.
  package struct Output {
    fileprivate let unsafeBytes: UnsafeRawBufferPointer
    /// The number of bytes; 0 if none are left.
    package var byteCount: Int { unsafeBytes.count }

    /// Calls `body` with the bytes.
    package func withBytes<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Void) throws(Failure) {
      try body(unsafeBytes.bytes)
    }
  }

  /// Removes and returns the next compressed bytes, at most `limit`, without copying them.
  ///
  /// More may be left, unless there are none.
  /// - Throws: as `read`.
  package mutating func take(limit: Int) throws(CodecError) -> Output {
    var bytes: UnsafePointer<UInt8>?
    let count = ccodecs_encoder_take(handle, limit, &bytes)
    if count == 0 { try check(ccodecs_encoder_failure(handle)) }
    return Output(unsafeBytes: UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// Lets `read` return a finished result with several frames from its beginning.
  ///
  /// Only encoders that spool their results support it.
  package mutating func rewind() { ccodecs_encoder_rewind(handle) }

  private func take(into buffer: PixelBuffer) -> Int {
    ccodecs_encoder_read(handle, buffer.unsafeBase.assumingMemoryBound(to: UInt8.self), buffer.byteCount)
  }

  /// Calls `body` with all compressed bytes of a still image that were produced so far, in portions of at most the size
  /// of `buffer`.
  package mutating func drain<Failure: Error>(
    _ buffer: PixelBuffer, _ body: (RawSpan) throws(Failure) -> Void
  ) throws(Failure) {
    while true {
      let count = take(into: buffer)
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

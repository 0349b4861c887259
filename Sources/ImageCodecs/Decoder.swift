internal import CCodecs

/// A push decoder: bytes go in as they arrive, strips of rows come out as soon as they are complete.
///
/// The order of calls is `readHeader` until it is complete, `start`, then `read` until `.done`. Any other order throws
/// `CodecError` with code `misuse`. A decoder that threw stays failed. Nothing given to it is kept after the call.
package struct Decoder: ~Copyable {
  /// What a call to `read` came to.
  package enum Event: Sendable, Hashable {
    /// The bytes are used up; bring those that follow.
    case needsInput
    /// `withStrip` has rows until the next call.
    case stripReady
    /// Every row was given.
    case done
  }

  /// How far a call came, and how many of the bytes it was given it has consumed.
  package struct Progress<Value: Sendable>: Sendable {
    /// The value that the call returned.
    package var value: Value
    /// The number of bytes that were consumed from the start of the input.
    package var consumedByteCount: Int
  }

  /// The format that is decoded.
  package let format: ImageFormat
  private let handle: OpaquePointer
  private let budget: ImageBudget
  // Kept open: the decoder has its descriptor.
  private let spill: SpillDirectory?
  private var rows = ccodecs_rows()
  private var layout = PixelLayout(format: .rgb8, planes: [])

  /// - Throws: code `unsupported` for a format without a decoder, `outOfMemory` when the budget has no room.
  package init(format: ImageFormat, limits: CodecLimits, budget: ImageBudget) throws(CodecError) {
    var handle: OpaquePointer?
    var cLimits = limits.handle
    let status = ccodecs_decoder_create(format.handle, &cLimits, budget.account, &handle)
    if let error = CodecError(status: status, message: "no decoder for \(format.rawValue)", budget: budget) {
      throw error
    }
    self.handle = handle!
    self.format = format
    self.budget = budget
    spill = limits.spill
  }

  deinit { ccodecs_decoder_destroy(handle) }

  /// Reads up to the first row's bytes.
  /// - Returns: whether the header is complete.
  /// - Throws: `truncated` when `isLast` and the header is not complete; `limitExceeded` when it claims too much.
  package mutating func readHeader(_ bytes: RawSpan, isLast: Bool) throws(CodecError) -> Progress<Bool> {
    let (status, consumed) = withInput(bytes, isLast: isLast) { ccodecs_decoder_read_header(handle, &$0) }
    try check(status)
    return Progress(value: status == CCODECS_OK, consumedByteCount: consumed)
  }

  /// What `readHeader` found; its warnings may grow until the last row.
  ///
  /// Legal once the header is complete.
  package var header: ImageHeader {
    var bytes: UnsafePointer<UInt8>?
    var byteCount = 0
    ccodecs_decoder_profile(handle, &bytes, &byteCount)
    return ImageHeader(
      ccodecs_decoder_header(handle).pointee, format: format,
      profile: (byteCount, ccodecs_conversion_estimate(bytes, byteCount)), rights: rights)
  }

  private var rights: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(CCODECS_MAX_COPYRIGHT_BYTES)) { buffer, count in
      count = buffer.baseAddress.map { ccodecs_decoder_trailing_metadata(handle, $0) } ?? 0
    }
  }

  /// The N for which the image can be decoded at N/8 of its size, smallest first.
  ///
  /// 8 is always there.
  package var scales: [Int] {
    let mask = ccodecs_decoder_scales(handle)
    return (1...8).filter { mask & (1 << ($0 - 1)) != 0 }
  }

  /// An upper bound of the bytes that decoding at `scale`/8 charges to the budget.
  ///
  /// Legal before `start`.
  package func estimatedByteCount(
    scale: Int, toleratesTruncation: Bool = false, toleratesDamage: Bool = false
  ) throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    var options = ccodecs_decode_options(
      scale_eighths: UInt8(scale), keeps_cmyk: true, tolerates_truncation: toleratesTruncation,
      tolerates_damage: toleratesDamage, may_skip_smoothing: false)
    try check(ccodecs_decoder_estimate(handle, &options, &byteCount))
    return byteCount
  }

  /// A conversion of the image's colours to sRGB, for rows of `format`; `nil` where there is nothing to convert, and
  /// where the profile turns out to be of no use, of which the header then warns.
  ///
  /// Legal from when the header is complete until `start`, which gives the profile's bytes back.
  /// - Throws: `outOfMemory` when the budget has no room.
  package mutating func makeColorConversion(of format: PixelFormat) throws(CodecError) -> ColorConversion? {
    guard let pixels = format.handle else {
      throw CodecError(code: .misuse, message: "no colour conversion for \(format)")
    }
    var conversion: OpaquePointer?
    try check(ccodecs_decoder_create_conversion(handle, pixels, &conversion))
    return conversion.map { ColorConversion($0, of: format, budget: budget) }
  }

  /// Fixes the scale, one of `scales`, and allocates what the rows need.
  /// - `keepsCMYK`: CMYK is given as `cmyk8`, not converted to RGB.
  /// - `toleratesTruncation`: a file that ends after some rows is given with gray for what is missing.
  /// - `toleratesDamage`: a damaged file is given as far as it can be decoded, with gray for the rest.
  /// - `maySkipSmoothing`: the rows are made so much smaller that edges of blocks need not be smoothed.
  package mutating func start(
    scale: Int, keepsCMYK: Bool = false, toleratesTruncation: Bool = false, toleratesDamage: Bool = false,
    maySkipSmoothing: Bool = false
  ) throws(CodecError) -> PixelLayout {
    var given = ccodecs_layout()
    var options = ccodecs_decode_options(
      scale_eighths: UInt8(scale), keeps_cmyk: keepsCMYK, tolerates_truncation: toleratesTruncation,
      tolerates_damage: toleratesDamage, may_skip_smoothing: maySkipSmoothing)
    try check(ccodecs_decoder_start(handle, &options, &given))
    guard let format = PixelFormat(given.pixels) else {
      throw CodecError(code: .misuse, message: "the decoder returned an unknown pixel format")
    }
    let planes = [given.planes.0, given.planes.1, given.planes.2].prefix(Int(given.plane_count))
    layout = PixelLayout(format: format, planes: planes.map(PlaneLayout.init))
    return layout
  }

  /// Decodes until rows are ready, bytes are needed, or the image is done.
  /// - Throws: `corrupt` or `truncated` when the bytes are not a whole image.
  package mutating func read(_ bytes: RawSpan, isLast: Bool) throws(CodecError) -> Progress<Event> {
    var next = ccodecs_rows()
    let (status, consumed) = withInput(bytes, isLast: isLast) { ccodecs_decoder_read_rows(handle, &$0, &next) }
    try check(status)
    rows = next
    return Progress(value: Event(status), consumedByteCount: consumed)
  }

  /// Lends the rows of the last `.stripReady`.
  package func withStrip<Failure: Error>(_ body: (borrowing Strip) throws(Failure) -> Void) throws(Failure) {
    try body(Strip(rows, layout: layout))
  }

  /// Lends the decoder to a `Rewriter`.
  borrowing func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { body(handle) }

  private func check(_ status: ccodecs_status) throws(CodecError) {
    if let error = CodecError(status: status, message: String(cString: ccodecs_decoder_message(handle)), budget: budget)
    {
      throw error
    }
  }

  private func withInput(
    _ bytes: RawSpan, isLast: Bool, _ body: (inout ccodecs_input) -> ccodecs_status
  ) -> (ccodecs_status, consumed: Int) {
    bytes.withUnsafeBytes { buffer in
      var input = ccodecs_input(
        bytes: buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), count: buffer.count, is_last: isLast)
      let status = body(&input)
      return (status, buffer.count - input.count)
    }
  }
}

extension Decoder.Event {
  fileprivate init(_ status: ccodecs_status) {
    switch status {
    case CCODECS_ROWS_READY: self = .stripReady
    case CCODECS_DONE: self = .done
    default: self = .needsInput
    }
  }
}

extension PlaneLayout {
  fileprivate init(_ plane: ccodecs_plane) {
    self.init(
      width: Int(plane.width), height: Int(plane.height),
      horizontalScale: plane.horizontal_scale, verticalScale: plane.vertical_scale)
  }
}

internal import CCodecs

/// A push decoder: the caller pushes bytes as they arrive and reads strips of rows as soon as they are complete.
///
/// Call `readHeader` until the header is complete, then `start`, then `read` until `.done`. Any other order throws a
/// `CodecError` with code `misuse`. A decoder that has thrown stays failed. The decoder does not keep its input after a
/// call.
package struct Decoder: ~Copyable {
  /// The result of a call to `read`.
  package enum Event: Sendable, Hashable {
    /// All input is consumed; push the bytes that follow.
    case needsInput
    /// Rows are available from `withStrip` until the next call.
    case stripReady
    /// All rows of a frame have been returned, and another frame follows.
    case frameDone
    /// All rows have been returned.
    case done
  }

  /// The result of a call and the number of input bytes that it consumed.
  package struct Progress<Value: Sendable>: Sendable {
    /// The value that the call returned.
    package var value: Value
    /// The number of bytes that were consumed from the start of the input.
    package var consumedByteCount: Int
  }

  /// The image format.
  package let format: ImageFormat
  private let handle: OpaquePointer
  private let budget: ImageBudget
  // Keeps the directory open, because the decoder uses its descriptor.
  private let spill: SpillDirectory?
  private var rows = ccodecs_rows()
  private var layout = PixelLayout(format: .rgb8, planes: [])

  /// Creates a decoder.
  /// - Throws: `unsupported` if the format has no decoder, `outOfMemory` if the budget is exhausted.
  package init(format: ImageFormat, limits: CodecLimits, budget: ImageBudget) throws(CodecError) {
    var handle: OpaquePointer?
    var cLimits = limits.handle
    let status = ccodecs_decoder_create(format.handle, &cLimits, budget.account, &handle)
    self.handle = try CodecError.created(
      handle, status: status, message: "no decoder for \(format.rawValue)", budget: budget)
    self.format = format
    self.budget = budget
    spill = limits.spill
  }

  deinit { ccodecs_decoder_destroy(handle) }

  /// Reads input up to the data of the first row.
  /// - Returns: whether the header is complete.
  /// - Throws: `truncated` if `isLast` is set and the header is incomplete; `limitExceeded` if the header exceeds a
  ///   limit.
  package mutating func readHeader(_ bytes: RawSpan, isLast: Bool) throws(CodecError) -> Progress<Bool> {
    let (status, consumed) = withInput(bytes, isLast: isLast) { ccodecs_decoder_read_header(handle, &$0) }
    try check(status)
    return Progress(value: status == CCODECS_OK, consumedByteCount: consumed)
  }

  /// The image header; available once `readHeader` has returned true.
  ///
  /// Its warnings may grow until the last row is decoded.
  package var header: ImageHeader {
    let profile = unsafeProfile
    return ImageHeader(
      ccodecs_decoder_header(handle).pointee, format: format,
      profile: (profile.count, ccodecs_conversion_estimate(profile.baseAddress, profile.count)), copyright: copyright)
  }

  /// Sets the orientation in the header to one that was found behind the rows of a PNG.
  ///
  /// Call it after the header is complete and before `start`.
  package mutating func setOrientation(_ orientation: Orientation) {
    ccodecs_decoder_set_orientation(handle, UInt8(orientation.rawValue))
  }

  /// Selects the frames that are decoded, and updates the header.
  ///
  /// Call it after the header is complete and before `start`. By default the first frame is decoded alone, or the default
  /// image of an APNG if it is none of the frames.
  /// - `first`: the index of the first frame; negative to count from the end.
  /// - `count`: the maximum number of frames; 0 for all. Of pages, one is decoded whatever it is.
  /// - Throws: `unsupported` if only the first frame can be decoded, `noFrame` if there is no frame at `first`.
  package mutating func selectFrames(first: Int, count: Int) throws(CodecError) {
    try check(ccodecs_decoder_select_frames(handle, Int64(first), UInt32(clamping: count)))
  }

  /// Makes the decoder buffer the whole file: `readHeader` continues until it is complete.
  ///
  /// Call it after the header is complete and before `start`, if the header has `canBufferInput`. The frames must be
  /// selected again.
  package mutating func bufferInput() throws(CodecError) { try check(ccodecs_decoder_buffer_input(handle)) }

  private var copyright: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(CCODECS_MAX_COPYRIGHT_BYTES)) { buffer, count in
      count = buffer.baseAddress.map { ccodecs_decoder_trailing_metadata(handle, $0) } ?? 0
    }
  }

  /// The values N for which the image can be decoded at N/8 of its size, in ascending order.
  ///
  /// 8 is always included.
  package var scales: [Int] {
    let mask = ccodecs_decoder_scales(handle)
    return (1...8).filter { mask & (1 << ($0 - 1)) != 0 }
  }

  /// Returns an upper bound of the bytes that decoding at `scale`/8 charges to the budget.
  ///
  /// Call it before `start`.
  package func estimatedByteCount(
    scale: Int, toleratesTruncation: Bool = false, toleratesDamage: Bool = false
  ) throws(CodecError) -> UInt64 {
    var byteCount: UInt64 = 0
    var options = ccodecs_decode_options(
      scale_eighths: UInt8(scale), keeps_cmyk: true, tolerates_truncation: toleratesTruncation,
      tolerates_damage: toleratesDamage, may_skip_smoothing: false, returns_rgb: false)
    try check(ccodecs_decoder_estimate(handle, &options, &byteCount))
    return byteCount
  }

  /// The ICC profile of the image, if its colors are not sRGB; otherwise empty.
  ///
  /// Call it after the header is complete and before `start`, which frees the profile.
  package var profile: [UInt8] { Array(unsafeProfile) }

  /// The size of `profile` in bytes.
  package var profileByteCount: Int { unsafeProfile.count }

  private var unsafeProfile: UnsafeBufferPointer<UInt8> {
    var bytes: UnsafePointer<UInt8>?
    var byteCount = 0
    ccodecs_decoder_profile(handle, &bytes, &byteCount)
    return UnsafeBufferPointer(start: bytes, count: byteCount)
  }

  /// The metadata of the image as stored, if the limits ask for it.
  ///
  /// Call it after the header is complete and before `start`, which frees the metadata.
  package var metadata: ImageMetadata {
    let stored = unsafeMetadata
    return ImageMetadata(
      exif: Array(UnsafeBufferPointer(start: stored.exif, count: stored.exif_count)),
      xmp: Array(UnsafeBufferPointer(start: stored.xmp, count: stored.xmp_count)),
      iptc: Array(UnsafeBufferPointer(start: stored.iptc, count: stored.iptc_count)))
  }

  /// The size of `metadata` in bytes.
  package var metadataByteCount: Int {
    let stored = unsafeMetadata
    return stored.exif_count + stored.xmp_count + stored.iptc_count
  }

  private var unsafeMetadata: ccodecs_metadata {
    var stored = ccodecs_metadata()
    ccodecs_decoder_metadata(handle, &stored)
    return stored
  }

  /// Creates a conversion of the image's colors to `target` for rows of `format`.
  ///
  /// Call it after the header is complete and before `start`, which frees the profile. The result is `nil` if no
  /// conversion is needed. It is also `nil` if the profile is unusable; the header then has a warning.
  /// - `keepsDepth`: Whether samples of 16 bits stay such.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package mutating func makeColorConversion(
    of format: PixelFormat, to target: ColorTarget = .srgb, keepsDepth: Bool = false
  ) throws(CodecError) -> ColorConversion? {
    guard let pixels = format.handle else {
      throw CodecError(code: .misuse, message: "no color conversion for \(format)")
    }
    var conversion: OpaquePointer?
    try check(ccodecs_decoder_create_conversion(handle, pixels, target.handle, keepsDepth, &conversion))
    return conversion.map { ColorConversion($0, of: format, keepsDepth: keepsDepth, budget: budget) }
  }

  /// Sets the scale, which must be one of `scales`, and allocates the memory for decoding rows.
  /// - `keepsCMYK`: return CMYK rows as `cmyk8` instead of converting them to RGB.
  /// - `toleratesTruncation`: decode a file that ends after some rows, and fill the missing part with gray.
  /// - `toleratesDamage`: decode as much of a damaged file as possible, and fill the rest with gray.
  /// - `maySkipSmoothing`: the rows will be reduced so much that block edges need no smoothing.
  /// - `returnsRGB`: return lossy WebP as RGB rows, converted as viewers do, instead of planes.
  package mutating func start(
    scale: Int, keepsCMYK: Bool = false, toleratesTruncation: Bool = false, toleratesDamage: Bool = false,
    maySkipSmoothing: Bool = false, returnsRGB: Bool = false
  ) throws(CodecError) -> PixelLayout {
    var given = ccodecs_layout()
    var options = ccodecs_decode_options(
      scale_eighths: UInt8(scale), keeps_cmyk: keepsCMYK, tolerates_truncation: toleratesTruncation,
      tolerates_damage: toleratesDamage, may_skip_smoothing: maySkipSmoothing,
      returns_rgb: returnsRGB)
    try check(ccodecs_decoder_start(handle, &options, &given))
    guard let format = PixelFormat(given.pixels) else {
      throw CodecError(code: .misuse, message: "the decoder returned an unknown pixel format")
    }
    let planes = [given.planes.0, given.planes.1, given.planes.2].prefix(Int(given.plane_count))
    layout = PixelLayout(format: format, planes: planes.map(PlaneLayout.init))
    return layout
  }

  /// Decodes until rows are ready, more input is needed, or the image is complete.
  /// - Throws: `corrupt` or `truncated` if the input is not a complete, valid image.
  package mutating func read(_ bytes: RawSpan, isLast: Bool) throws(CodecError) -> Progress<Event> {
    var next = ccodecs_rows()
    let (status, consumed) = withInput(bytes, isLast: isLast) { ccodecs_decoder_read_rows(handle, &$0, &next) }
    try check(status)
    rows = next
    return Progress(value: Event(status), consumedByteCount: consumed)
  }

  /// The frame of the rows of the last `.stripReady`, which are the whole canvas.
  package var frame: ImageFrame { ImageFrame(ccodecs_decoder_frame(handle).pointee) }

  /// Calls `body` with the rows of the last `.stripReady`; they are valid only during the call.
  package func withStrip<Failure: Error>(_ body: (borrowing Strip) throws(Failure) -> Void) throws(Failure) {
    try body(Strip(rows, layout: layout))
  }

  /// Calls `body` with the C decoder, for use by a `Rewriter`.
  borrowing func withHandle<Result>(_ body: (OpaquePointer) -> Result) -> Result { body(handle) }

  private func check(_ status: ccodecs_status) throws(CodecError) {
    if let error = CodecError(
      status: status, message: String(cString: ccodecs_decoder_message(handle)), budget: budget,
      excess: ccodecs_decoder_excess(handle))
    {
      throw error
    }
  }
}

/// Lends bytes to a decoder or rewriter.
/// - Returns: The status that `body` returns, and the number of bytes that were consumed.
func withInput(
  _ bytes: RawSpan, isLast: Bool, _ body: (inout ccodecs_input) -> ccodecs_status
) -> (ccodecs_status, consumed: Int) {
  bytes.withUnsafeBytes { buffer in
    var input = ccodecs_input(
      bytes: buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), count: buffer.count, is_last: isLast)
    let status = body(&input)
    return (status, buffer.count - input.count)
  }
}

extension Decoder.Event {
  fileprivate init(_ status: ccodecs_status) {
    switch status {
    case CCODECS_ROWS_READY: self = .stripReady
    case CCODECS_FRAME_DONE: self = .frameDone
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

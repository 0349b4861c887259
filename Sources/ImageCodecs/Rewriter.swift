internal import CCodecs

/// Makes an image's file into one without metadata, without decoding it.
///
/// The order of calls is `note` with every byte that the image's `Decoder` consumed until its header was complete,
/// `survey`, `start` with that decoder, then `read` until `.done`. One that threw stays failed.
package struct Rewriter: ~Copyable {
  /// What can be done with an image, and how it is compressed.
  package struct Survey: Sendable, Hashable {
    /// It is of a kind that can be passed on.
    package var canCopy: Bool
    /// PNG and lossless WebP.
    package var isLossless: Bool
    /// JPEG whose chroma planes have more than half of luma's columns or rows.
    package var hasFineChroma: Bool
    /// 1 to 100: the least quality at which an encoder would quantise no more coarsely.
    package var quality: Int
    /// The ways in which it can be turned in whole blocks.
    package var turns: Set<Orientation>
  }

  /// What a call to `read` came to.
  package enum Event: Sendable, Hashable {
    /// The bytes are used up; bring those that follow.
    case needsInput
    /// `withPiece` has bytes of the result until the next call.
    case pieceReady
    /// Every byte was given.
    case done
  }

  private let handle: OpaquePointer
  private let budget: ImageBudget
  private var piece = ccodecs_piece()

  /// - Throws: code `unsupported` for a format that is not rewritten, `outOfMemory` when the budget has no room.
  package init(format: ImageFormat, limits: CodecLimits, budget: ImageBudget) throws(CodecError) {
    var handle: OpaquePointer?
    var cLimits = limits.handle
    let status = ccodecs_rewriter_create(format.handle, &cLimits, budget.account, &handle)
    if let error = CodecError(status: status, message: "no rewriter for \(format.rawValue)", budget: budget) {
      throw error
    }
    self.handle = handle!
    self.budget = budget
  }

  deinit { ccodecs_rewriter_destroy(handle) }

  /// Tells of the next bytes of the image's header.
  ///
  /// What it does not understand is no error: its survey then says that nothing can be done.
  package mutating func note(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      ccodecs_rewriter_note(handle, base.assumingMemoryBound(to: UInt8.self), buffer.count)
    }
  }

  /// What can be done with the image whose header `decoder` has read.
  package func survey(_ decoder: borrowing Decoder) -> Survey {
    var survey = ccodecs_survey()
    decoder.withHandle { ccodecs_rewriter_survey(handle, $0, &survey) }
    return Survey(
      canCopy: survey.can_copy, isLossless: survey.is_lossless, hasFineChroma: survey.has_fine_chroma,
      quality: Int(survey.quality),
      turns: Set(Orientation.allCases.filter { survey.turns >> $0.rawValue & 1 != 0 }))
  }

  /// An upper bound of the bytes that rewriting charges to the budget, with what is held already.
  /// - `exif`: an EXIF block (TIFF) that the result is to carry; empty for none.
  package func estimatedByteCount(
    _ decoder: borrowing Decoder, orientation: Orientation, exif: [UInt8]
  ) -> UInt64 {
    decoder.withHandle { decoder in
      Self.withOptions(orientation, exif) { ccodecs_rewriter_estimate(handle, decoder, &$0) }
    }
  }

  /// Fixes what is done, and takes over what the decoder holds of the file.
  /// - `orientation`: `up` passes the image on; any other turns a JPEG without loss.
  /// - `mayLackEnd`: a JPEG without an end marker is given one, with the warning `missingEnd`. Whether its last scan is
  ///   whole, the caller must find out.
  /// - Throws: `misuse` for what the survey does not allow, `outOfMemory` when the budget has no room.
  package mutating func start(
    _ decoder: consuming Decoder, orientation: Orientation, exif: [UInt8], mayLackEnd: Bool = false
  ) throws(CodecError) {
    let status = decoder.withHandle { decoder in
      Self.withOptions(orientation, exif) { options in
        options.may_lack_end = mayLackEnd
        return ccodecs_rewriter_start(handle, decoder, &options)
      }
    }
    try check(status)
  }

  /// Reads on from where the decoder stopped.
  /// - Throws: `corrupt` or `truncated` when the bytes are not a whole file, `limitExceeded`, `outOfMemory`.
  package mutating func read(_ bytes: RawSpan, isLast: Bool) throws(CodecError) -> Decoder.Progress<Event> {
    var next = ccodecs_piece()
    let (status, consumed) = bytes.withUnsafeBytes { buffer in
      var input = ccodecs_input(
        bytes: buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), count: buffer.count, is_last: isLast)
      let status = ccodecs_rewriter_read(handle, &input, &next)
      return (status, buffer.count - input.count)
    }
    try check(status)
    piece = next
    return Decoder.Progress(value: Event(status), consumedByteCount: consumed)
  }

  /// Lends the bytes of the last `.pieceReady`, which may be those that were read: call it before they are gone.
  package func withPiece<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Void) throws(Failure) {
    try body(UnsafeRawBufferPointer(start: piece.bytes, count: piece.count).bytes)
  }

  /// What a caller may want to know; may grow until `.done`.
  package var warnings: [ImageHeader.Warning] { ImageHeader.Warning.all(ccodecs_rewriter_warnings(handle)) }

  private func check(_ status: ccodecs_status) throws(CodecError) {
    if let error = CodecError(
      status: status, message: String(cString: ccodecs_rewriter_message(handle)), budget: budget)
    {
      throw error
    }
  }

  private static func withOptions<Result>(
    _ orientation: Orientation, _ exif: [UInt8], _ body: (inout ccodecs_rewrite_options) -> Result
  ) -> Result {
    exif.withUnsafeBufferPointer { block in
      var options = ccodecs_rewrite_options(
        orientation: UInt8(orientation.rawValue), exif: block.baseAddress, exif_count: block.count,
        may_lack_end: false)
      return body(&options)
    }
  }
}

extension Rewriter.Event {
  fileprivate init(_ status: ccodecs_status) {
    switch status {
    case CCODECS_BYTES_READY: self = .pieceReady
    case CCODECS_DONE: self = .done
    default: self = .needsInput
    }
  }
}

internal import CCodecs

/// A rewriter that removes an image's metadata, rotates or flips a JPEG losslessly, recompresses it as JPEG XL, or
/// reconstructs it from that, without decoding it to pixels.
///
/// Call `note` with every byte that the image's `Decoder` consumed until its header was complete, then `survey`, then
/// `start` with that decoder, then `read` until `.done`. A rewriter that has thrown stays failed.
package struct Rewriter: ~Copyable {
  /// The operations that are possible with an image, and how it is compressed.
  package struct Survey: Sendable, Hashable {
    /// Whether the image can be copied (passthrough).
    package var canCopy: Bool
    /// Whether it may be copied once the decoder has buffered the whole file; the other properties are then those of its
    /// beginning.
    package var mayCopyWhole: Bool
    /// Whether the compression is lossless: PNG and lossless WebP.
    package var isLossless: Bool
    /// Whether a JPEG's chroma planes have more than half of luma's columns or rows.
    package var hasFineChroma: Bool
    /// The minimum quality, 1 to 100, at which an encoder would quantise no more coarsely.
    package var quality: Int
    /// The orientations that can be applied losslessly, block by block.
    package var rotations: Set<Orientation>
    /// Whether a JPEG can be recompressed as JPEG XL.
    package var canRecompress: Bool
    /// Whether the JPEG can be reconstructed that a JPEG XL was recompressed from.
    package var canReconstruct: Bool
    /// Whether its metadata can be reconstructed as well.
    package var canReconstructWhole: Bool
  }

  /// A change of the format that keeps a JPEG's coefficients.
  package enum Recoding: Sendable, Hashable {
    /// Recompress a JPEG as JPEG XL with these options.
    case recompress(JXLOptions)
    /// Reconstruct a JPEG from its JPEG XL, as a copy without its metadata, or byte by byte.
    case reconstruct(isWhole: Bool)
  }

  /// The result of a call to `read`.
  package enum Event: Sendable, Hashable {
    /// All input is consumed; push the bytes that follow.
    case needsInput
    /// Output is available from `withPiece` until the next call.
    case pieceReady
    /// All output has been returned.
    case done
  }

  private let handle: OpaquePointer
  private let budget: ImageBudget
  private var piece = ccodecs_piece()

  /// Creates a rewriter.
  /// - Throws: `unsupported` if the format has no rewriter, `outOfMemory` if the budget is exhausted.
  package init(format: ImageFormat, limits: CodecLimits, budget: ImageBudget) throws(CodecError) {
    var handle: OpaquePointer?
    var cLimits = limits.handle
    let status = ccodecs_rewriter_create(format.handle, &cLimits, budget.account, &handle)
    self.handle = try CodecError.created(
      handle, status: status, message: "no rewriter for \(format.rawValue)", budget: budget)
    self.budget = budget
  }

  deinit { ccodecs_rewriter_destroy(handle) }

  /// Passes the next bytes of the image's header to the rewriter.
  ///
  /// Unknown content is not an error: the survey then reports that nothing can be done.
  package mutating func note(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress else { return }
      ccodecs_rewriter_note(handle, base.assumingMemoryBound(to: UInt8.self), buffer.count)
    }
  }

  /// Returns the possible operations for the image whose header `decoder` has read.
  package func survey(_ decoder: borrowing Decoder) -> Survey {
    var survey = ccodecs_survey()
    decoder.withHandle { ccodecs_rewriter_survey(handle, $0, &survey) }
    return Survey(
      canCopy: survey.can_copy, mayCopyWhole: survey.may_copy_whole, isLossless: survey.is_lossless,
      hasFineChroma: survey.has_fine_chroma,
      quality: Int(survey.quality),
      rotations: Set(Orientation.allCases.filter { survey.rotations >> $0.rawValue & 1 != 0 }),
      canRecompress: survey.can_recompress, canReconstruct: survey.can_reconstruct,
      canReconstructWhole: survey.can_reconstruct_whole)
  }

  /// Returns an upper bound of the bytes that rewriting charges to the budget, including those already in use.
  /// - `metadata`: the metadata to write to the result.
  /// - `recoding`: the change of the format; `nil` to keep it.
  package func estimatedByteCount(
    _ decoder: borrowing Decoder, orientation: Orientation, metadata: EmbeddedMetadata, recoding: Recoding? = nil
  ) -> UInt64 {
    decoder.withHandle { decoder in
      Self.withOptions(orientation, metadata, recoding) { ccodecs_rewriter_estimate(handle, decoder, &$0) }
    }
  }

  /// Starts rewriting and takes over the part of the file that the decoder has buffered.
  /// - `orientation`: `up` copies the image; any other orientation transforms a JPEG losslessly.
  /// - `recoding`: as for `estimatedByteCount`; needs the orientation `up`, and all but the reconstruction of a copy no
  ///   metadata.
  /// - `mayLackEnd`: add an end that the file lacks, with the warning `missingEnd`. The caller must check that
  ///   no row is missing.
  /// - Throws: `misuse` if the survey does not allow the operation, `outOfMemory` if the budget is exhausted.
  package mutating func start(
    _ decoder: consuming Decoder, orientation: Orientation, metadata: EmbeddedMetadata,
    recoding: Recoding? = nil, mayLackEnd: Bool = false
  ) throws(CodecError) {
    let status = decoder.withHandle { decoder in
      Self.withOptions(orientation, metadata, recoding) { options in
        options.may_lack_end = mayLackEnd
        return ccodecs_rewriter_start(handle, decoder, &options)
      }
    }
    try check(status)
  }

  /// Continues reading where the decoder stopped.
  /// - `mayContinue`: called from time to time while a JPEG is recompressed or reconstructed.
  /// - Throws: `corrupt` or `truncated` if the input is not a complete, valid file; `limitExceeded`, `outOfMemory`;
  ///   `interrupted` if `mayContinue` returned false.
  package mutating func read(
    _ bytes: RawSpan, isLast: Bool, mayContinue: () -> Bool = { true }
  ) throws(CodecError) -> Decoder.Progress<Event> {
    let handle = handle
    var next = ccodecs_piece()
    let (status, consumed) = withInput(bytes, isLast: isLast) { input in
      withInterrupt(mayContinue) { interrupt in
        ccodecs_rewriter_set_interrupt(handle, interrupt)
        defer { ccodecs_rewriter_set_interrupt(handle, ccodecs_interrupt()) }
        return ccodecs_rewriter_read(handle, &input, &next)
      }
    }
    try check(status)
    piece = next
    return Decoder.Progress(value: Event(status), consumedByteCount: consumed)
  }

  /// Calls `body` with the output of the last `.pieceReady`.
  ///
  /// The output may refer to the input of `read`, so call this while that input is still valid.
  package func withPiece<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Void) throws(Failure) {
    try body(UnsafeRawBufferPointer(start: piece.bytes, count: piece.count).bytes)
  }

  /// The warnings so far; more may follow until `.done`.
  package var warnings: [ImageHeader.Warning] { ImageHeader.Warning.all(ccodecs_rewriter_warnings(handle)) }

  private func check(_ status: ccodecs_status) throws(CodecError) {
    if let error = CodecError(
      status: status, message: String(cString: ccodecs_rewriter_message(handle)), budget: budget,
      excess: ccodecs_rewriter_excess(handle))
    {
      throw error
    }
  }

  private static func withOptions<Result>(
    _ orientation: Orientation, _ metadata: EmbeddedMetadata, _ recoding: Recoding?,
    _ body: (inout ccodecs_rewrite_options) -> Result
  ) -> Result {
    metadata.withHandle { metadata in
      var options = ccodecs_rewrite_options(
        orientation: UInt8(orientation.rawValue), metadata: metadata, may_lack_end: false,
        jxl_effort: recoding?.effort ?? 0, reconstruction: recoding?.reconstruction ?? CCODECS_RECONSTRUCTION_NONE)
      return body(&options)
    }
  }
}

extension Rewriter.Recoding {
  fileprivate var effort: UInt8? {
    switch self {
    case .recompress(let options): options.handle?.effort
    case .reconstruct: nil
    }
  }

  fileprivate var reconstruction: ccodecs_reconstruction {
    switch self {
    case .recompress: CCODECS_RECONSTRUCTION_NONE
    case .reconstruct(let isWhole): isWhole ? CCODECS_RECONSTRUCTION_WHOLE : CCODECS_RECONSTRUCTION_STRIPPED
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

internal import CSandbox
internal import LibC

/// A helper's end of its channel.
///
/// It is unchecked because of the pointers to memory that both processes share.
package final class HelperConnection: @unchecked Sendable {
  let helper: csandbox_helper
  private let message = UnsafeMutableRawBufferPointer.allocate(byteCount: HelperLayout.messageByteCount, alignment: 8)

  /// The defenses that the system does not offer.
  package let missingDefenses: MissingDefenses

  private init(_ helper: csandbox_helper, missingDefenses: MissingDefenses) {
    self.helper = helper
    self.missingDefenses = missingDefenses
  }

  deinit { message.deallocate() }

  /// Runs this process as the zygote, and each process that it forks as a helper.
  ///
  /// Call it before the process has started any thread.
  /// - Parameters:
  ///   - warmUp: Called once before any helper exists, with access to files; what it initializes is part of every helper.
  ///   - body: Called in each helper, in the sandbox; the helper ends when it returns.
  package static func serve(warmUp: () -> Void, _ body: (HelperConnection) -> Void) -> Never {
    csandbox_zygote_prepare()
    warmUp()
    var helper = csandbox_helper()
    csandbox_zygote_serve(&helper)
    var missing: UInt32 = 0
    guard csandbox_enter(&missing) else { csandbox_exit(Int32(CSANDBOX_EXIT_NO_SANDBOX.rawValue)) }
    body(HelperConnection(helper, missingDefenses: MissingDefenses(rawValue: missing)))
    csandbox_exit(0)
  }

  /// The socket from which `ccodecs_limits.spill_directory` receives files.
  package var files: Int32 { helper.files }

  /// Whether the work with this number was cancelled.
  package func isCancelled(work: UInt32) -> Bool { csandbox_flag_get(helper.shared) == work }

  /// Waits for the next request.
  ///
  /// - `idle`: called once if there is none for some time.
  /// - Returns: The request; `nil` when the worker has closed the channel.
  package func receive(idle: () -> Void) -> [UInt8]? {
    var isIdle = false
    while true {
      let count = csandbox_receive(helper.socket, message.baseAddress, message.count, nil, -1)
      if count > 0 { return [UInt8](message[..<count]) }
      guard count == CSANDBOX_TIMED_OUT else { return nil }
      if !isIdle { idle() }
      isIdle = true
    }
  }

  /// Sends a response; ends the process if the worker has closed the channel.
  package func send(_ response: [UInt8]) {
    let isSent = response.withUnsafeBytes { csandbox_send(helper.socket, $0.baseAddress, $0.count, -1) }
    if !isSent { csandbox_exit(0) }
  }

  /// Lends a range of the input, as far as it is within the input.
  package func withInput<Result, Failure>(
    _ range: Range<Int>, _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = range.clamped(to: 0..<HelperLayout.inputByteCount)
    let bytes = UnsafeRawBufferPointer(
      start: helper.shared.advanced(by: HelperLayout.current.inputOffset + range.lowerBound), count: range.count)
    return try body(bytes.bytes)
  }

  /// Copies compressed bytes to the output at `offset`, as many as fit.
  /// - Returns: The number of copied bytes.
  package func write(_ bytes: RawSpan, at offset: Int) -> Int {
    let count = min(bytes.byteCount, HelperLayout.outputByteCount - offset)
    bytes.extracting(first: count).withUnsafeBytes { bytes in
      guard let source = bytes.baseAddress else { return }
      helper.shared.advanced(by: HelperLayout.current.outputOffset + offset)
        .update(from: source.assumingMemoryBound(to: UInt8.self), count: count)
    }
    return count
  }
}

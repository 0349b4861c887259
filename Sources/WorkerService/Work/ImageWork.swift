internal import Admission
internal import ImagePipeline
internal import WorkThreads

/// The work on one image as its job sees it: sends requests to the image's server, and keeps their results and the memory
/// that is charged for it.
///
/// Call `prepare` or `prepareNow` of its helper, `readHeader` until there is a plan, `start` unless that was done with the
/// header, and `advance` until `hasEnded`. Every function blocks the thread while the server works.
final class ImageWork {
  /// The memory in bytes in which an image may be started together with its header: enough for most photographs that
  /// become smaller.
  static let spareByteCount = 4 << 20
  /// The size in bytes that readers may buffer without a charge; enough for formats whose header comes first.
  static let headerByteCount = 256 * 1024

  /// The way to the image's server.
  let channel: any WorkChannel
  /// The same way, if it leads to a helper process.
  let helper: HelperChannel?
  /// The format's name in logs while a thread works on the image.
  private var formatName: String?
  private var bufferedByteCount = 0
  /// The memory charged for what readers buffer beyond `headerByteCount`, until the image is started.
  private var buffered: Hold
  private var reservation: Reservation?
  /// The output and the outcomes of the renditions, until the job takes them.
  var results = WorkResults()
  /// The plan of the image; `nil` until its header is complete.
  private(set) var plan: PlannedImage?
  /// Whether decoding was started.
  private(set) var isStarted = false
  /// Whether work is paused because enough output is buffered.
  private(set) var isPaused = false

  init(_ channel: any WorkChannel, memory: MemoryBudget) {
    self.channel = channel
    helper = channel as? HelperChannel
    buffered = Hold(budget: memory)
  }

  /// Reads the next bytes of the header, and plans the image once it is complete.
  ///
  /// - Parameters:
  ///   - bytes: The next bytes.
  ///   - isLast: Whether no bytes follow.
  ///   - planning: What to plan.
  ///   - spare: The memory reserved for an image that starts at once; `nil` if the planning admits none.
  /// - Returns: The number of consumed bytes.
  /// - Throws: The errors of the header, of its plan, and of an image that was started with it.
  func readHeader(
    _ bytes: RawSpan, isLast: Bool, _ planning: WorkRequest.Planning, spare: consuming Reservation? = nil
  ) throws(PipelineError) -> Int {
    if formatName == nil { formatName = ImageReader.formatName(bytes) }
    let response = try send(.readHeader(planning), bytes, isLast: isLast)
    bufferedByteCount = response.bufferedByteCount
    if response.isStarted, let plan, var used = spare {
      used.shrink(to: used.byteCount - Int(clamping: planning.admittedByteCount - plan.reservedByteCount))
      begin(with: used)
    }
    return response.consumedByteCount
  }

  /// Charges the memory budget for what readers have buffered of an image that is not started.
  /// - Throws: `overloaded` or `limitExceeded` if there is no room. The call can be repeated.
  func chargeBuffered() throws(PipelineError) {
    if !isStarted, bufferedByteCount > Self.headerByteCount { try buffered.grow(to: bufferedByteCount) }
  }

  /// Starts decoding in the memory that the plan requires.
  ///
  /// - `reservation`: the reserved memory; `nil` if it is part of another reservation.
  func start(_ reservation: consuming Reservation?, renditionIDs: [String] = []) throws(PipelineError) {
    begin(with: reservation)
    try send(.start(renditionIDs: renditionIDs), RawSpan(), isLast: false)
  }

  /// Processes the next bytes of a started image; `results` has the output.
  ///
  /// The next call must supply the unconsumed bytes again, even if there are none.
  /// - Returns: The number of consumed bytes.
  func advance(_ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int {
    try send(.advance, bytes, isLast: isLast).consumedByteCount
  }

  private func begin(with reservation: consuming Reservation?) {
    self.reservation = consume reservation
    isStarted = true
    buffered.release()  // the plan's reservation includes the buffered bytes
  }

  @discardableResult
  private func send(_ request: WorkRequest, _ bytes: RawSpan, isLast: Bool) throws(PipelineError) -> WorkResponse {
    WorkThread.begin(formatName ?? "unknown")
    let response = try channel.serve(request, bytes, isLast: isLast) { results.append($1, to: $0) }
    if let plan = response.plan {
      self.plan = plan
      results.expect(plan)
    }
    results.note(response.ends)
    isPaused = response.isPaused
    return response
  }

  /// Whether the outcome of every rendition is known.
  var isComplete: Bool { plan != nil && results.areComplete }

  /// Whether the outcome of every rendition was returned.
  var hasEnded: Bool { plan != nil && results.areTaken }
}

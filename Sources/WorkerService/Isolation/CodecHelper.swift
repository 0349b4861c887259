internal import ImagePipeline
internal import Tracing
internal import WorkerIsolation

/// The helper process: it works on one image after the other, as the worker requests.
package enum CodecHelper {
  /// The hidden command of the program that runs it as the zygote of helpers.
  package static let command = "codec-helper"
  /// The argument after the command that makes helpers accept images which test the worker.
  package static let testArgument = "--faults"

  /// Runs this process as the zygote, and those that it forks as helpers.
  ///
  /// Call it before the process has started any thread.
  /// - Parameters:
  ///   - arguments: the arguments of the program, without its name.
  ///   - trim: returns free memory to the system.
  package static func run(arguments: [String], trim: () -> Void) -> Never {
    let acceptsFaults = arguments.contains(testArgument)
    HelperConnection.serve(warmUp: warmUp) { connection in
      var loop = HelperLoop(connection, acceptsFaults: acceptsFaults)
      while let request = connection.receive(idle: trim) { loop.handle(request) }
    }
  }

  /// Processes a small image, so that everything that is initialized once is part of every helper.
  private static func warmUp() {
    let side = 24
    var image = Array("P6 \(side) \(side) 255\n".utf8)
    for index in 0..<(3 * side * side) { image.append(UInt8(truncatingIfNeeded: index * 7)) }
    for format in [OutputFormat.jpeg, .png] {
      do throws(PipelineError) {
        try process(image, ProcessingConfiguration(maxWidth: side / 2, preferredFormat: format))
      } catch { return }
    }
  }

  private static func process(_ image: [UInt8], _ configuration: ProcessingConfiguration) throws(PipelineError) {
    var work = ImageWork(
      limits: ImageLimits(spill: nil), memory: nil, cancellation: Cancellation(),
      tracing: TraceTarget(tracer: SpanRecorder(), context: .topLevel))
    let bytes = image.span.bytes
    guard let count = try work.readHeader(bytes, isLast: true) else { return }
    _ = try work.plan(configuration)
    try work.start(nil)
    try work.push(bytes.extracting(droppingFirst: count), isLast: true) { _, _ in }
    _ = work.takeEnd(of: 0)
  }
}

/// The current image of a helper, and its answers to requests.
struct HelperLoop: ~Copyable {
  private let connection: HelperConnection
  private let acceptsFaults: Bool
  private let defaults: ImageLimits
  private let recorder = SpanRecorder()
  private var work: ImageWork?
  private var lastConfiguration: EncodedConfiguration?
  private var renditionCount = 0
  /// Whether an earlier image has taken this helper over; `nil` outside of tests.
  private var hostility: HostileHelper?

  init(_ connection: HelperConnection, acceptsFaults: Bool) {
    self.connection = connection
    self.acceptsFaults = acceptsFaults
    defaults = .requestingFiles(from: connection.files)
  }

  /// Performs a request and sends the response.
  mutating func handle(_ bytes: [UInt8]) {
    var response = HelperResponse()
    let wasHostile = hostility != nil
    do throws(PipelineError) {
      guard let (request, number) = HelperRequest.read(bytes, defaults: defaults, last: &lastConfiguration) else {
        throw Self.outOfOrder
      }
      try perform(request, number, &response)
    } catch {
      response.error = error
      work = nil  // ends its spans
    }
    response.spans = recorder.take()
    guard wasHostile, var hostility else { return connection.send(response.bytes) }
    hostility.answer(response, on: connection)
    self.hostility = hostility
  }

  private static var outOfOrder: PipelineError {
    PipelineError(.internalDefect, "a helper process received a request that does not fit its state")
  }

  private mutating func perform(
    _ request: HelperRequest, _ number: UInt32, _ response: inout HelperResponse
  ) throws(PipelineError) {
    switch request {
    case .readHeader(let byteCount, let isLast, let start, let planning):
      if let start { work = makeWork(start, number) }
      try readHeader(byteCount, isLast: isLast, planning, &response)
      if let planning { try startAdmitted(byteCount, isLast: isLast, planning, &response) }
    case .plan(let configurations, let followingByteCount):
      try withWork { (work) throws(PipelineError) in
        try work.plan(configurations, followingByteCount: followingByteCount)
      }
      response.plan = notePlan()
    case .planPreview(let configuration, let maxSide):
      try withWork { (work) throws(PipelineError) in _ = try work.planPreview(configuration, maxSide: maxSide) }
      response.plan = notePlan()
    case .start(let ids, let offset, let byteCount, let isLast):
      try start(ids, &response)
      guard byteCount > 0 else { return }
      response.consumedByteCount = try advance(from: offset, byteCount, isLast: isLast, pauses: true, &response)
    case .advance(let offset, let byteCount, let isLast):
      response.consumedByteCount = try advance(from: offset, byteCount, isLast: isLast, pauses: true, &response)
    case .push(let byteCount, let isLast):
      response.consumedByteCount = try advance(from: 0, byteCount, isLast: isLast, pauses: false, &response)
    case .abandon:
      work = nil
      response.missingDefenses = connection.missingDefenses
    case .proceed: throw Self.outOfOrder
    }
  }

  private func makeWork(_ start: HelperRequest.ImageStart, _ number: UInt32) -> ImageWork {
    let cancellation = Cancellation { [connection] in connection.isCancelled(work: number) }
    return ImageWork(
      limits: start.limits, memory: nil, cancellation: cancellation,
      tracing: TraceTarget(tracer: start.recordsSpans ? recorder : NoOpTracer(), context: .topLevel))
  }

  private mutating func withWork<Result>(
    _ body: (inout ImageWork) throws(PipelineError) -> Result
  ) throws(PipelineError) -> Result {
    guard var lent = work.take() else { throw Self.outOfOrder }
    let result = try body(&lent)
    work = consume lent
    return result
  }

  private mutating func readHeader(
    _ byteCount: Int, isLast: Bool, _ planning: HelperRequest.Planning?, _ response: inout HelperResponse
  ) throws(PipelineError) {
    let connection = connection
    if acceptsFaults {
      connection.withInput(byteCount) { bytes in
        HelperFault(bytes)?.commit(&response)
        hostility = hostility ?? HostileHelper(bytes)
      }
    }
    (response.consumedByteCount, response.bufferedByteCount) = try withWork { (work) throws(PipelineError) in
      let consumed = try connection.withInput(byteCount) { (bytes) throws(PipelineError) in
        let consumed = try work.readHeader(inWindowsOf: bytes, isLast: isLast)
        if let consumed, let planning {
          let followingByteCount = planning.beyondByteCount + UInt64(bytes.byteCount - consumed)
          try work.plan(planning.configurations, followingByteCount: followingByteCount)
        }
        return consumed
      }
      return (consumed, work.bufferedByteCount)
    }
    if planning != nil { response.plan = notePlan() }
  }

  /// Starts an image whose plan needs no more memory than what was admitted, and processes the bytes behind its header.
  private mutating func startAdmitted(
    _ byteCount: Int, isLast: Bool, _ planning: HelperRequest.Planning, _ response: inout HelperResponse
  ) throws(PipelineError) {
    guard let plan = response.plan, plan.hasResults, plan.reservedByteCount <= planning.admittedByteCount,
      let consumed = response.consumedByteCount
    else { return }
    try start(planning.renditionIDs, &response)
    var rest = byteCount - consumed
    if !isLast { rest -= rest % SourceWindows.byteCount }
    guard rest > 0 else { return }
    response.advancedByteCount = try advance(from: consumed, rest, isLast: isLast, pauses: true, &response)
  }

  private mutating func start(_ ids: [String], _ response: inout HelperResponse) throws(PipelineError) {
    try withWork { (work) throws(PipelineError) in try work.start(nil, renditionIDs: ids) }
    response.isStarted = true
  }

  private mutating func notePlan() -> PlannedImage? {
    guard let plan = work?.plan else { return nil }
    renditionCount = plan.renditions.count
    return PlannedImage(plan)
  }

  /// - `pauses`: whether work stops when enough output is waiting.
  /// - Returns: The number of consumed bytes.
  private mutating func advance(
    from offset: Int, _ byteCount: Int, isLast: Bool, pauses: Bool, _ response: inout HelperResponse
  ) throws(PipelineError) -> Int {
    let (connection, renditionCount) = (connection, renditionCount)
    var output = HelperOutput(connection, following: response)
    var outcomes: [(index: Int, outcome: Result<ProcessingReport, PipelineError>)] = []
    // After an error too: what preceded it is delivered.
    defer {
      response = output.response
      response.outcomes = outcomes
    }
    let (consumed, isPaused, hasEnded) = try withWork { (work) throws(PipelineError) in
      let consumed = try connection.withInput(from: offset, byteCount) { (bytes) throws(PipelineError) in
        guard pauses else {
          _ = try work.push(bytes, isLast: isLast) { output.append($1, of: $0) }
          work.takeEnds(renditionCount, &outcomes)
          return bytes.byteCount
        }
        var consumed = 0
        repeat {
          // Windows as a job in this process has them, so that results do not depend on the size of a request.
          let window = bytes.extracting(droppingFirst: consumed).extracting(first: SourceWindows.byteCount)
          let isLastWindow = isLast && consumed + window.byteCount == bytes.byteCount
          let count = try work.advance(window, isLast: isLastWindow) { output.append($1, of: $0) }
          consumed += count
          work.takeEnds(renditionCount, &outcomes)
          if count < window.byteCount || work.isPaused || work.hasEnded || output.isWorthSending { break }
        } while consumed < bytes.byteCount
        return consumed
      }
      return (consumed, work.isPaused, work.hasEnded)
    }
    response.isPaused = isPaused
    if hasEnded { work = nil }
    return consumed
  }
}

extension ImageWork {
  /// Reads the header from bytes in windows.
  fileprivate mutating func readHeader(inWindowsOf bytes: RawSpan, isLast: Bool) throws(PipelineError) -> Int? {
    var consumed = 0
    repeat {
      let window = bytes.extracting(droppingFirst: consumed).extracting(first: SourceWindows.byteCount)
      let isLastWindow = isLast && consumed + window.byteCount == bytes.byteCount
      if let count = try readHeader(window, isLast: isLastWindow) { return consumed + count }
      consumed += window.byteCount
    } while consumed < bytes.byteCount
    return nil
  }

  /// Adds the outcomes of renditions that have ended.
  fileprivate mutating func takeEnds(
    _ renditionCount: Int, _ outcomes: inout [(index: Int, outcome: Result<ProcessingReport, PipelineError>)]
  ) {
    for index in 0..<renditionCount {
      if let outcome = takeEnd(of: index) { outcomes.append((index, outcome)) }
    }
  }
}

internal import ImageCodecs
internal import ImagePipeline
internal import Synchronization

/// The result of an image that arrives in chunks: an asynchronous sequence of chunks.
///
/// Iterate it once for each time that `Source` can be iterated. A chunk has the bytes that are ready, at most some 100
/// KiB more than 256 KiB.
public struct ProcessedChunks<Source: AsyncSequence>: AsyncSequence where Source.Element: Collection<UInt8> {
  /// A chunk of the result.
  public typealias Element = [UInt8]

  private let source: Source
  private let configuration: ProcessingConfiguration
  private let processor: ImageProcessor
  private let reports = ReportBox()

  init(_ source: Source, _ configuration: ProcessingConfiguration, _ processor: ImageProcessor) {
    (self.source, self.configuration, self.processor) = (source, configuration, processor)
  }

  /// The report of the last iteration; `nil` until its result is complete.
  public var report: ProcessingReport? { reports.report }

  /// Creates an iterator, which begins the work when it is asked for the first chunk or for the plan.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(source.makeAsyncIterator(), configuration, processor, reports)
  }

  /// The processing of one image whose bytes an asynchronous sequence supplies.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private var source: Source.AsyncIterator
    private let configuration: ProcessingConfiguration
    private let processor: ImageProcessor
    private let reports: ReportBox
    private typealias Plan = (input: ImageInfo, output: ImageInfo)

    private var state = State.new
    /// The bytes that were received and not consumed, from an offset on.
    private var input = PendingInput()

    private enum State {
      case new
      case working(ImageWork)
      case ended(Result<Plan, any Error>)
    }

    init(
      _ source: Source.AsyncIterator, _ configuration: ProcessingConfiguration, _ processor: ImageProcessor,
      _ reports: ReportBox
    ) {
      (self.source, self.configuration, self.processor) = (source, configuration, processor)
      self.reports = reports
    }

    /// Reads the header of the image, unless that was done.
    ///
    /// - Returns: The properties of the image and of its result, whose format is empty if the rows decide it.
    /// - Throws: ``ImageProcessingError``, and the errors of the source.
    public mutating func plan() async throws -> (input: ImageInfo, output: ImageInfo) {
      if case .ended(let plan) = state { return try plan.get() }
      do { return try await readHeader(work()) } catch {
        state = .ended(.failure(error))
        throw error
      }
    }

    /// Returns the next chunk of the result; `nil` after the last.
    /// - Throws: ``ImageProcessingError``, and the errors of the source. The iteration has ended after an error.
    public mutating func next() async throws -> [UInt8]? {
      if case .ended = state { return nil }
      do { return try await nextChunk(work()) } catch {
        state = .ended(.failure(error))
        throw error
      }
    }

    private mutating func work() throws -> ImageWork {
      if case .working(let work) = state { return work }
      let work = try processor.makeWork(configuration)
      state = .working(work)
      return work
    }

    private mutating func readHeader(_ work: ImageWork) async throws -> Plan {
      while true {
        if let plan = work.plan { return (ImageInfo(plan.input), ImageInfo(plan.output)) }
        try await fetch()
        try await perform(work) { (work, input, _) throws(PipelineError) in
          let bytes = input.bytes
          let rest = bytes.span.bytes.extracting(droppingFirst: input.offset)
          let count = try work.readHeader(rest, isLast: input.isLast)
          input.offset += count
        }
      }
    }

    private mutating func nextChunk(_ work: ImageWork) async throws -> [UInt8]? {
      let plan = try await readHeader(work)
      while work.report == nil {
        if !work.isPaused, input.isEmpty, !input.isLast { try await fetch() }
        let output = try await perform(work) { (work, input, output) throws(PipelineError) in
          if !work.isStarted { try await work.start() }
          let bytes = input.bytes
          let rest = bytes.span.bytes.extracting(droppingFirst: input.offset)
          let count = try work.advance(rest, isLast: input.isLast) { output.append($0) }
          input.offset += count
        }
        if !output.isEmpty { return finishing(work, plan, output) }
      }
      return finishing(work, plan, nil)
    }

    /// Notes the report if the result is complete.
    private mutating func finishing(_ work: ImageWork, _ plan: Plan, _ chunk: [UInt8]?) -> [UInt8]? {
      if let report = work.report {
        reports.report = ProcessingReport(report)
        state = .ended(.success(plan))
      }
      return chunk
    }

    /// Receives the next bytes.
    private mutating func fetch() async throws {
      guard let chunk = try await source.next() else { return input = PendingInput(isLast: true) }
      input = PendingInput(bytes: Array(chunk))
    }

    /// Performs a step on a thread of the processor.
    /// - Returns: The output of the step.
    @discardableResult
    private mutating func perform(
      _ work: ImageWork,
      _ step: (ImageWork, inout PendingInput, inout [UInt8]) async throws(PipelineError) -> Void
    ) async throws -> [UInt8] {
      var (input, output) = (input, [UInt8]())
      let executor = processor.executor
      self.input = PendingInput()  // so that the bytes are not shared while they are consumed
      let outcome: Result<Void, PipelineError> = await work.cancelledWithTask {
        await withTaskExecutorPreference(executor) {
          await Result { () async throws(PipelineError) in try await step(work, &input, &output) }
        }
      }
      self.input = input
      _ = try ImageProcessingError.mapped(outcome)
      return output
    }
  }
}

extension ProcessedChunks: Sendable where Source: Sendable {}

@available(*, unavailable)
extension ProcessedChunks.AsyncIterator: Sendable {}

/// The bytes of an image that were received and not consumed.
struct PendingInput {
  var bytes: [UInt8] = []
  var offset = 0
  /// Whether no bytes follow.
  var isLast = false

  var isEmpty: Bool { offset == bytes.count }
}

/// The report of a sequence that was iterated.
final class ReportBox: Sendable {
  private let state = Mutex<ProcessingReport?>(nil)

  var report: ProcessingReport? {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

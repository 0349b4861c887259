internal import ImagePipeline
internal import SystemPackage

/// An image that is read from a file through a window, never whole.
struct ImageFile: Sendable {
  typealias Request = WorkRequest.Planning.Results
  typealias Outcome = Result<ProcessingReport, PipelineError>

  private static let windowByteCount = 256 * 1024

  let path: FilePath
  /// The images that overlays name.
  private var auxiliary = AuxiliaryImages()
  private var limits = ImageLimits()
  /// Read in place of the file.
  private let input: StandardInput?

  init(path: FilePath) { (self.path, input) = (path, nil) }

  /// - `argument`: a path, or `-` for standard input, of which one plan and then results can be requested.
  init(argument: String) {
    path = FilePath(text: argument)
    input = argument == StandardInput.name ? StandardInput() : nil
  }

  var isStandardInput: Bool { input != nil }

  /// Returns this file with the images that overlays name, and limits.
  func with(_ auxiliary: AuxiliaryImages, _ limits: ImageLimits = ImageLimits()) -> ImageFile {
    var file = self
    (file.auxiliary, file.limits) = (auxiliary, limits)
    return file
  }

  /// Reads as much as the header needs and plans the results, as if nothing were trimmed.
  /// - `countsFrames`: whether the number of frames is counted in the whole file if its header does not contain it.
  func plan(_ request: Request, countsFrames: Bool = false) throws -> ImagePlan {
    try withWindows({ try $0.readAhead(byteCount: $1) }) { window in
      let server = ImageServer(
        limits: limits, cancellation: Cancellation(), tracing: TraceTarget(), auxiliary: auxiliary)
      return try Self.plan(request, server, &window, isInspection: true, countsFrames: countsFrames)
    }
  }

  /// Returns the gain map of a JPEG, as stored; `nil` if there is none, and for standard input.
  func listedGainMap() throws -> GainMapInfo? {
    guard !isStandardInput else { return nil }
    let file = try FileDescriptor.open(path, .readOnly)
    return try file.closeAfter {
      ImageReader.gainMap { (try? FileSystem.readPart(of: file, at: $0, byteCount: $1)) ?? [] }
    }
  }

  /// Processes this file.
  /// - `renditionIDs`: what traces call the results; empty where there is but one.
  /// - `output`: is given a result's place in the request, and its next bytes.
  /// - Returns: the outcome of each result.
  /// - Throws: an error of the whole image, or what `output` throws.
  func process(
    _ request: Request, renditionIDs: [String] = [], cancellation: Cancellation = Cancellation(),
    tracing: TraceTarget = TraceTarget(), output: (Int, RawSpan) throws -> Void
  ) throws -> [Outcome] {
    try withWindows({ try $0.read(byteCount: $1) }) { window in
      let clock = JobClock()
      let server = ImageServer(
        limits: limits, cancellation: cancellation, tracing: tracing, auxiliary: auxiliary)
      let plan = try Self.plan(request, server, &window)
      var outcomes: [Outcome?] = plan.renditions.map {
        if case .failure(let error) = $0 { .failure(error) } else { nil }
      }
      if !plan.plans.isEmpty { _ = try Self.serve(.start(renditionIDs: renditionIDs), server, &window, output) }
      while outcomes.contains(where: { $0 == nil }) {
        let response = try Self.serve(.advance, server, &window, output)
        for (index, outcome) in response.ends { outcomes[index] = outcome.map { clock.timed($0) } }
        if window.isConsumed, !window.isLast, !response.isPaused { try window.advance() }
      }
      return outcomes.compactMap(\.self)
    }
  }

  private static func serve(
    _ request: WorkRequest, _ server: ImageServer, _ window: inout Window, _ output: (Int, RawSpan) throws -> Void
  ) throws -> WorkResponse {
    var failure: (any Error)?
    let bytes = window.bytes
    let rest = bytes.span.bytes.extracting(droppingFirst: window.offset)
    let response = try server.serve(request, rest, isLast: window.isLast) { index, compressed in
      do { if failure == nil { try output(index, compressed) } } catch { failure = error }
    }
    if let failure { throw failure }
    let consumed = response.consumedByteCount
    window.offset += consumed
    return response
  }

  private static func plan(
    _ request: Request, _ server: ImageServer, _ window: inout Window, isInspection: Bool = false,
    countsFrames: Bool = false
  ) throws -> ImagePlan {
    var planning = WorkRequest.Planning(
      results: request, lateOrientation: window.lateOrientation,
      countedFrames: countsFrames || request.countsFromEnd ? window.countFrames() : nil, isInspection: isInspection)
    while true {
      planning.followingByteCount = window.followingByteCount
      _ = try serve(.readHeader(planning), server, &window) { _, _ in }
      if let plan = server.plan { return plan }
      try window.advance()
    }
  }

  /// - `read`: reads standard input.
  private func withWindows<Result>(
    _ read: @escaping (StandardInput, Int) throws -> [UInt8], _ body: (inout Window) throws -> Result
  ) throws -> Result {
    func run(
      byteCount: UInt64? = nil, lateOrientation: Int? = nil, countFrames: @escaping () -> Int? = { nil },
      _ read: @escaping () throws -> [UInt8]
    ) throws -> Result {
      var window = Window(
        byteCount: byteCount, lateOrientation: lateOrientation, countFrames: countFrames, read)
      try window.advance()
      return try body(&window)
    }
    if let input { return try run { try read(input, Self.windowByteCount) } }
    let file = try FileDescriptor.open(path, .readOnly)
    return try file.closeAfter {
      func part(_ offset: Int, _ byteCount: Int) -> [UInt8] {
        (try? FileSystem.readPart(of: file, at: offset, byteCount: byteCount)) ?? []
      }
      return try run(
        byteCount: FileSystem.byteCount(of: file), lateOrientation: ImageReader.lateOrientation(part),
        countFrames: { ImageReader.frameCount(part) }
      ) { try FileSystem.readPart(of: file, byteCount: Self.windowByteCount) }
    }
  }

  /// The bytes of the file that are in memory.
  private struct Window {
    private let read: () throws -> [UInt8]
    var bytes: [UInt8] = []
    /// Bytes of the window that were consumed.
    var offset = 0
    var isLast = false
    var isConsumed: Bool { offset == bytes.count }
    private var next: [UInt8]?
    /// The number of bytes that follow the window; `nil` if the size of the image is not known.
    private(set) var followingByteCount: UInt64?
    /// The EXIF orientation behind the image data of a PNG; `nil` if there is none, or standard input is read.
    let lateOrientation: Int?
    /// Counts the frames of a GIF or WebP; returns `nil` for other formats, and if standard input is read.
    let countFrames: () -> Int?

    /// - `byteCount`: the size of the image; `nil` if it is not known.
    /// - `read`: reads the next bytes; none at the end.
    init(
      byteCount: UInt64?, lateOrientation: Int?, countFrames: @escaping () -> Int?,
      _ read: @escaping () throws -> [UInt8]
    ) {
      followingByteCount = byteCount
      self.lateOrientation = lateOrientation
      self.countFrames = countFrames
      self.read = read
    }

    /// Reads one window ahead, so that the last is known to be the last.
    mutating func advance() throws {
      bytes = try next ?? read()
      offset = 0
      next = bytes.isEmpty ? [] : try read()
      isLast = next?.isEmpty ?? true
      followingByteCount = isLast ? 0 : followingByteCount.map { $0 - min($0, UInt64(bytes.count)) }
    }
  }
}

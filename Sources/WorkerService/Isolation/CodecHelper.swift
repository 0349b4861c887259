internal import ImagePipeline
internal import LibC
internal import Tracing
internal import WorkerIsolation

/// The helper process: it works on one image after the other, as the worker requests.
package enum CodecHelper {
  /// The hidden command of the program that runs it as the zygote of helpers.
  package static let command = "codec-helper"
  /// The beginning of the argument that names a directory of fonts.
  private static let fontsArgument = "--fonts="
  /// The beginning of the argument with the identity of a detector of faces, a colon, and its file.
  private static let faceDetectorArgument = "--face-detector="
  private static let minInheritedDescriptor: Int32 = 16

  /// Returns the arguments of a zygote.
  /// - Parameters:
  ///   - fontDirectory: The directory of fonts with which helpers draw in addition to those of the system.
  ///   - faceDetector: The file with which this process finds faces; `nil` for the default.
  /// - Returns: The command and its arguments.
  package static func arguments(fontDirectory: String?, faceDetector: String?) -> [String] {
    [command] + (fontDirectory.map { [fontsArgument + $0] } ?? [])
      + ["\(faceDetectorArgument)\(FaceDetection.identity):\(inherited(faceDetector ?? FaceDetection.defaultPath))"]
  }

  /// Opens a file for every zygote, so that one that starts later reads the same file even if it was replaced.
  /// - Returns: A path for zygotes, which close it before they fork helpers.
  private static func inherited(_ path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return FaceDetection.noPath }
    defer { close(file) }
    // The first numbers are those of other descriptors in a zygote.
    return "/proc/self/fd/\(fcntl(file, F_DUPFD, minInheritedDescriptor))"
  }

  /// Uses the worker's detector; none if its file has changed since the worker has read it, which requests report.
  private static func useDetector(_ argument: Substring) {
    let identity = argument.prefix { $0 != ":" }
    try? FaceDetection.use(path: String(argument.dropFirst(identity.count + 1)))
    if "\(FaceDetection.identity)" != identity { try? FaceDetection.use(path: FaceDetection.noPath) }
  }

  /// Runs this process as the zygote, and those that it forks as helpers.
  ///
  /// Call it before the process has started any thread.
  /// - Parameters:
  ///   - arguments: the arguments of the program, without its name.
  ///   - trim: returns free memory to the system.
  package static func run(arguments: [String], trim: () -> Void) -> Never {
    if let fonts = arguments.first(where: { $0.hasPrefix(fontsArgument) }) {
      TextOverlay.addFonts(ofDirectory: String(fonts.dropFirst(fontsArgument.count)))
    }
    if let detector = arguments.first(where: { $0.hasPrefix(faceDetectorArgument) }) {
      useDetector(detector.dropFirst(faceDetectorArgument.count))
    }
    HelperConnection.serve(warmUp: warmUp) { connection in
      var loop = HelperLoop(connection)
      while let request = connection.receive(idle: trim) { connection.send(loop.respond(to: request).bytes) }
    }
  }

  /// Processes small images and draws a text, so that everything that is initialized once is part of every helper.
  ///
  /// Without that, the first request of each helper would initialize the tables of fields, which takes longer than several
  /// favicons. Fonts and the detector of faces are loaded here, because a helper opens no files.
  static func warmUp() {
    TextOverlay.prepare()
    FaceDetection.prepare()
    let side = 24
    var image = Array("P6 \(side) \(side) 255\n".utf8)
    for index in 0..<(3 * side * side) { image.append(UInt8(truncatingIfNeeded: index * 7)) }
    for format in [OutputFormat.jpeg, .png, .webp] {
      do throws(PipelineError) {
        let result = try process(image, ProcessingConfiguration(maxWidth: side / 2, preferredFormat: format))
        _ = try process(result, ProcessingConfiguration(maxWidth: side / 4, preferredFormat: format))
      } catch { return }
    }
  }

  /// Processes an image as a helper does, from the bytes of the request to those of the response.
  /// - Returns: The result.
  private static func process(
    _ image: [UInt8], _ configuration: ProcessingConfiguration
  ) throws(PipelineError) -> [UInt8] {
    let limits = ImageLimits(spill: nil)
    let planning = WorkRequest.Planning(results: .renditions([configuration]), admittedByteCount: .max)
    let sent = HelperRequest.work(
      HelperRequest.Work(
        request: .readHeader(planning), input: 0..<image.count, isLast: true,
        start: HelperRequest.ImageStart(limits: limits)))
    var last: EncodedConfiguration?
    guard case .work(let work)? = HelperRequest.read(sent.bytes(work: 1), defaults: limits, last: &last)?.request else {
      return []
    }
    let recorder = SpanRecorder()
    let server = ImageServer(
      limits: limits, cancellation: Cancellation(), tracing: TraceTarget(tracer: recorder, context: .topLevel))
    var result: [UInt8] = []
    var response = HelperResponse()
    response.work = try server.serve(work.request, image.span.bytes, isLast: true) { _, bytes in
      bytes.withUnsafeBytes { result.append(contentsOf: $0) }
    }
    response.spans = recorder.take()
    _ = response.bytes
    return result
  }
}

/// The current image of a helper, and its answers to requests.
struct HelperLoop: ~Copyable {
  private let connection: HelperConnection
  private let defaults: ImageLimits
  private let recorder = SpanRecorder()
  private var server: ImageServer?
  private var lastConfiguration: EncodedConfiguration?
  /// The bytes so far of an image for overlays.
  private var auxiliary: [UInt8] = []

  init(_ connection: HelperConnection) {
    self.connection = connection
    defaults = .requestingFiles(from: connection.files)
  }

  /// Performs a request.
  /// - Returns: The response to send.
  mutating func respond(to bytes: [UInt8]) -> HelperResponse {
    var response = HelperResponse()
    do throws(PipelineError) {
      guard let (request, number) = HelperRequest.read(bytes, defaults: defaults, last: &lastConfiguration) else {
        throw Self.outOfOrder
      }
      try perform(request, number, &response)
    } catch {
      response.error = error
      server = nil  // ends its spans
    }
    response.spans = recorder.take()
    return response
  }

  private static var outOfOrder: PipelineError {
    PipelineError(.internalDefect, "a helper process received a request that does not fit its state")
  }

  private mutating func perform(
    _ request: HelperRequest, _ number: UInt32, _ response: inout HelperResponse
  ) throws(PipelineError) {
    switch request {
    case .work(let work):
      if let start = work.start { server = makeServer(start, number) }
      try serve(work, &response)
    case .auxiliary(let part):
      if let start = part.start { server = makeServer(start, number) }
      try keep(part)
    case .abandon:
      server = nil
      response.missingDefenses = connection.missingDefenses
    case .proceed: throw Self.outOfOrder
    }
  }

  private mutating func keep(_ part: HelperRequest.Auxiliary) throws(PipelineError) {
    guard let server else { throw Self.outOfOrder }
    if part.start != nil { auxiliary = [] }
    var bytes = auxiliary
    auxiliary = []
    connection.withInput(part.input) { $0.withUnsafeBytes { bytes.append(contentsOf: $0) } }
    if part.isLast { server.add(AuxiliaryImage(name: part.name, bytes: bytes)) } else { auxiliary = bytes }
  }

  private func makeServer(_ start: HelperRequest.ImageStart, _ number: UInt32) -> ImageServer {
    let cancellation = Cancellation { [connection] in connection.isCancelled(work: number) }
    return ImageServer(
      limits: start.limits, cancellation: cancellation,
      tracing: TraceTarget(tracer: start.recordsSpans ? recorder : NoOpTracer(), context: .topLevel))
  }

  private mutating func serve(_ work: HelperRequest.Work, _ response: inout HelperResponse) throws(PipelineError) {
    guard let server else { throw Self.outOfOrder }
    var output = HelperOutput(connection)
    let served = try connection.withInput(work.input) { (bytes) throws(PipelineError) in
      try server.serve(work.request, bytes, isLast: work.isLast) { output.append($1, of: $0, head: server.response) }
    }
    output.finish(&response, served)
  }
}

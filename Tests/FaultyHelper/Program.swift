import ImagePipeline
import WorkerIsolation

@testable import WorkerService

/// A helper as the worker's own, but with images that make it fail (`HelperFault`) or take it over (`HostileHelper`).
@main
enum Program {
  static func main() {
    HelperConnection.serve(warmUp: CodecHelper.warmUp) { connection in
      var loop = FaultyLoop(connection)
      while let request = connection.receive(idle: {}) { loop.handle(request) }
    }
  }
}

/// The current image of the helper, and its answers to requests.
private struct FaultyLoop: ~Copyable {
  private let connection: HelperConnection
  private var loop: HelperLoop
  private var lastConfiguration: EncodedConfiguration?
  /// Whether an earlier image has taken this helper over.
  private var hostility: HostileHelper?

  init(_ connection: HelperConnection) {
    self.connection = connection
    loop = HelperLoop(connection)
  }

  /// Performs a request as the worker's helpers do, and sends the response, or what is sent instead of it.
  mutating func handle(_ request: [UInt8]) {
    let wasHostile = hostility != nil
    var error: PipelineError?
    let sent = HelperRequest.read(request, defaults: ImageLimits(spill: nil), last: &lastConfiguration)
    if case .work(let work)? = sent?.request, case .readHeader = work.request {
      connection.withInput(work.input) { image in
        error = HelperFault(image)?.commit()
        hostility = hostility ?? HostileHelper(image)
      }
    }
    var response = loop.respond(to: request)
    if let error { response.error = error }
    guard wasHostile, var hostility else { return connection.send(response.bytes) }
    hostility.answer(response, on: connection)
    self.hostility = hostility
  }
}

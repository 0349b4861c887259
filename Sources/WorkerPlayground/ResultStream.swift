internal import AsyncAlgorithms
internal import FoundationEssentials
internal import GRPCCore
internal import HummingbirdCore
internal import NIOCore
internal import Tracing
internal import WorkerProtocol
internal import WorkerService

/// One request of a view: runs it as a call of `ProcessImage`, and writes the parts of its results as frames.
struct ResultStream: Sendable {
  let environment: WorkerEnvironment
  let request: Imageworker_V1_ProcessImageRequest
  /// The view that shows the result; only its newest request continues.
  let view: String
  let views: ViewTable

  /// Writes all frames to a response.
  ///
  /// - `request`: the request, whose connection is watched: if the page has gone, the work ends.
  func write(to writer: inout any ResponseBodyWriter, of request: Request) async throws {
    let call = views.begin(view)
    defer { views.end(view, call) }
    let frames = AsyncChannel<ByteBuffer>()
    try await request.body.consumeWithInboundCloseHandler { _ in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          await self.run(call, frames)
          frames.finish()
        }
        do {
          for await buffer in frames { try await writer.write(buffer) }
        } catch {
          call.cancel()
          frames.finish()
          throw error
        }
      }
      try await writer.finish(nil)
    } onInboundClosed: {
      call.cancel()
    }
  }

  private func run(_ call: PlaygroundCall, _ frames: AsyncChannel<ByteBuffer>) async {
    var environment = environment
    let recorder = SpanRecorder(base: environment.tracer)
    environment.tracer = recorder
    environment.isTraced = { _ in true }
    let service = ImageWorkerService(environment: environment)
    var last = ByteBuffer()
    await call.run { handle in
      let context = ServerContext(
        descriptor: Imageworker_V1_ImageWorkerService.Method.ProcessImage.descriptor,
        remotePeer: "playground", localPeer: "playground", cancellation: handle)
      do {
        // The span of the call, below which the others are.
        try await recorder.withSpan("playground", ofKind: .server) { _ in
          try await service.processImage(
            request: self.request, response: RPCWriter(wrapping: FrameWriter(frames: frames)), context: context)
        }
      } catch { ResultFrame(error).append(to: &last) }
    }
    ResultFrame(recorder.take()).append(to: &last)
    await frames.send(last)
  }
}

/// Writes parts as frames; those that are ready together are sent together.
private struct FrameWriter: RPCWriterProtocol {
  let frames: AsyncChannel<ByteBuffer>

  func write(_ response: Imageworker_V1_ProcessImageResponse) async throws {
    try await write(contentsOf: CollectionOfOne(response))
  }

  func write(contentsOf responses: some Sequence<Imageworker_V1_ProcessImageResponse>) async throws {
    var buffer = ByteBuffer()
    for response in responses { try ResultFrame(response)?.append(to: &buffer) }
    await frames.send(buffer)
  }
}

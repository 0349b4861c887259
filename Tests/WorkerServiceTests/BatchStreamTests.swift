import Foundation
import GRPCCore
import ImagePipeline
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("BatchStream", .timeLimit(.minutes(15)))
struct BatchStreamTests {
  private struct Gone: Error {}

  private struct Ignoring: RPCWriterProtocol {
    func write(_ element: Imageworker_V1_BatchProcessResponse) async throws {}
    func write(contentsOf elements: some Sequence<Imageworker_V1_BatchProcessResponse>) async throws {}
  }

  @Test("a client that is gone cancels the work on its items")
  func gone() async {
    let cancellation = Cancellation()
    let stream = BatchStream(
      environment: WorkerEnvironment(threadCount: 1),
      responses: BatchResponses(writer: RPCWriter(wrapping: Ignoring())), cancellation: cancellation,
      connection: "")
    let rendition = Rendition(index: nil, id: "", configuration: ProcessingConfiguration())
    let upload = BatchStart(image: Data(), previewKey: "", renditions: .success([rendition]))
    let parts = AsyncThrowingStream<BatchPart, any Error>.makeStream()
    parts.continuation.yield(BatchPart(itemID: "a", content: .start(upload)))
    parts.continuation.finish(throwing: Gone())
    await #expect(throws: Gone.self) { try await stream.run(parts.stream) }
    #expect(cancellation.isCancelled)
  }
}

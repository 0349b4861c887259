import Foundation
import GRPCCore
import ImagePipeline
import Synchronization
import Testing

@testable import WorkerService

@Suite("ResponseSink")
struct ResponseSinkTests {
  @Test("writes waiting parts together with later ones, in order, at most eight at once")
  func together() async throws {
    let writer = Recorder()
    let rendition = Rendition(index: nil, id: "", configuration: ProcessingConfiguration())
    let sink = ResponseSink(RPCWriter(wrapping: writer)) { part -> Int in
      if case .chunk(let bytes) = part.content { Int(bytes[bytes.startIndex]) } else { -1 }
    }
    func send(_ number: UInt8, isMoreReady: Bool) async throws {
      try await sink.send(ResultPart(.chunk(Data([number])), of: rendition, isMoreReady: isMoreReady))
    }
    try await send(0, isMoreReady: true)
    try await send(1, isMoreReady: true)
    #expect(writer.writes.withLock { $0 }.isEmpty)
    try await send(2, isMoreReady: false)
    try await send(3, isMoreReady: false)
    for number in 4..<13 as Range<UInt8> { try await send(number, isMoreReady: true) }
    #expect(writer.writes.withLock { $0 } == [[0, 1, 2], [3], Array(4..<12)])
  }

  @Test("leaves the last parts of a call to its end, and no others")
  func lastParts() async throws {
    let writer = Recorder()
    let renditions = ["a", "b"].enumerated().map {
      Rendition(index: $0.offset, id: $0.element, configuration: ProcessingConfiguration())
    }
    let sink = ResponseSink(RPCWriter(wrapping: writer), resultCount: 2) { part -> Int in part.rendition.index ?? -1 }
    let failure = PipelineError(.corruptImage, "damaged")
    try await sink.send(ResultPart(.failure(failure), of: renditions[0]))
    #expect(writer.writes.withLock { $0 } == [[0]])
    try await sink.finish()
    try await sink.send(ResultPart(.chunk(Data([1])), of: renditions[1], isMoreReady: true))
    try await sink.finish()
    #expect(writer.writes.withLock { $0 } == [[0]])
    try await sink.send(ResultPart(.failure(failure), of: renditions[1]))
    #expect(writer.writes.withLock { $0 } == [[0]])
    try await sink.finish()
    #expect(writer.writes.withLock { $0 } == [[0], [1, 1]])
    try await sink.finish()
    #expect(writer.writes.withLock { $0 }.count == 2)
  }

  private final class Recorder: RPCWriterProtocol {
    let writes = Mutex<[[Int]]>([])

    func write(_ element: Int) async throws { try await write(contentsOf: [element]) }

    func write(contentsOf elements: some Sequence<Int>) async throws {
      let elements = Array(elements)
      writes.withLock { $0.append(elements) }
    }
  }
}

import Foundation
import NIOCore
import Testing
import Tracing
import WorkerService

@testable import WorkerPlayground

@Suite("Result frames")
struct ResultFrameTests {
  private struct PageSpan: Decodable, Equatable {
    var name: String
    var start: UInt64
    var end: UInt64
    var attributes: [String: String]
  }

  @Test("spans have texts as attributes")
  func spans() throws {
    let recorder = SpanRecorder()
    let span = recorder.startSpan("decode")
    span.attributes["imageworker.busy_ns"] = 12
    span.attributes["imageworker.is_preview"] = true
    span.attributes["imageworker.format"] = "jpeg"
    span.end()
    var frame = ByteBuffer()
    ResultFrame(recorder.take()).append(to: &frame)
    #expect(frame.readInteger(as: UInt8.self) == UInt8(ascii: "S"))
    #expect(frame.readInteger(as: UInt32.self).map(Int.init) == frame.readableBytes)
    let spans = try JSONDecoder().decode([PageSpan].self, from: Data(frame.readableBytesView))
    #expect(spans.map(\.name) == ["decode"] && spans[0].start > 0 && spans[0].start <= spans[0].end)
    let expected = ["busy_ns": "12", "is_preview": "true", "format": "jpeg"]
    #expect(spans[0].attributes == Dictionary(uniqueKeysWithValues: expected.map { ("imageworker.\($0)", $1) }))
  }
}

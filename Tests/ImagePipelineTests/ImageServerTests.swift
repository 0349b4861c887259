import Foundation
import ImageCodecs
import TestSupport
import Testing

@testable import ImagePipeline

@Suite("ImageServer")
struct ImageServerTests {
  private static let window = ImageServer.windowByteCount
  /// 900 by 700 pixels of noise, which no compressor makes smaller.
  private static let noise = Array("P6 900 700 255\n".utf8) + noiseSamples(900 * 700 * 3)

  private static func planning(
    admitted: UInt64 = .max, _ configuration: ProcessingConfiguration = ProcessingConfiguration()
  ) -> WorkRequest.Planning {
    WorkRequest.Planning(results: .renditions([configuration]), admittedByteCount: admitted)
  }

  private static func server() -> ImageServer {
    ImageServer(limits: ImageLimits(), cancellation: Cancellation(), tracing: TraceTarget())
  }

  @Test("an image that starts with its header consumes whole windows while more bytes follow")
  func windows() throws {
    let configuration = ProcessingConfiguration(maxWidth: 50, preferredFormat: .jpeg)
    let bytes = Array(Self.noise.prefix(3 * Self.window + 1000))
    let header = try Self.server().serve(
      .readHeader(Self.planning(admitted: 0, configuration)), bytes.span.bytes, isLast: false
    ) { _, _ in }
    #expect(!header.isStarted && header.consumedByteCount < Self.window)
    let started = try Self.server().serve(
      .readHeader(Self.planning(configuration)), bytes.span.bytes, isLast: false
    ) { _, _ in }
    #expect(started.isStarted)
    #expect(started.consumedByteCount == header.consumedByteCount + 3 * Self.window)
    let server = Self.server()
    var whole = try server.serve(.readHeader(Self.planning(configuration)), Self.noise.span.bytes, isLast: true) {
      _, _ in
    }
    var consumed = whole.consumedByteCount
    while whole.ends.isEmpty {
      // On a slow machine, output has waited for long enough before.
      whole = try server.serve(.advance, Self.noise.span.bytes.extracting(droppingFirst: consumed), isLast: true) {
        _, _ in
      }
      consumed += whole.consumedByteCount
    }
    #expect(consumed == Self.noise.count)
  }

  @Test("a response has less output when that has waited for long")
  func early() throws {
    let configuration = ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(compressionLevel: 0))
    var byteCount = 0
    let response = try Self.server().serve(
      .readHeader(Self.planning(configuration)), Self.noise.span.bytes, isLast: true
    ) {
      byteCount += $1.byteCount
      usleep(20_000)
    }
    #expect(response.ends.isEmpty && response.consumedByteCount < Self.noise.count)
    #expect(byteCount > 0 && byteCount < 256 << 10, "\(byteCount)")
  }

  @Test("a response has little more output than is worth one")
  func output() throws {
    let configuration = ProcessingConfiguration(preferredFormat: .png, png: PNGOptions(compressionLevel: 0))
    let server = Self.server()
    var byteCount = 0
    let planned = try server.serve(
      .readHeader(Self.planning(admitted: 0, configuration)), Self.noise.span.bytes, isLast: true
    ) { _, _ in }
    _ = try server.serve(.start(renditionIDs: []), RawSpan(), isLast: false) { _, _ in }
    let rest = Self.noise.span.bytes.extracting(droppingFirst: planned.consumedByteCount)
    let began = ContinuousClock.now
    let response = try server.serve(.advance, rest, isLast: true) { byteCount += $1.byteCount }
    let elapsed = began.duration(to: .now)
    #expect(!response.isPaused && response.consumedByteCount < rest.byteCount)
    // On a slow machine, fewer bytes have waited for long enough.
    #expect(byteCount >= 256 << 10 || elapsed >= .milliseconds(20), "\(byteCount)")
    #expect(byteCount > 0 && byteCount < (256 << 10) + 2 * Self.window, "\(byteCount)")
  }

  @Test("a request that does not fit the state is a defect, also after the end")
  func order() throws {
    func refuses(_ server: ImageServer, _ request: WorkRequest) {
      let error = #expect(throws: PipelineError.self) {
        try server.serve(request, RawSpan(), isLast: true) { _, _ in }
      }
      #expect(error?.code == .internalDefect)
    }
    for request in [WorkRequest.start(renditionIDs: []), .advance] { refuses(Self.server(), request) }
    let server = Self.server()
    let bytes = Fixture.bytes("photo-420.jpg")
    let response = try server.serve(.readHeader(Self.planning()), bytes.span.bytes, isLast: true) { _, _ in }
    #expect(response.ends.count == 1)
    refuses(server, .advance)
  }
}

import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Passthrough trials")
struct PassthroughTrialTests {
  private static let warning = "the end of the file was missing; the result has one"

  /// Passes through an image that has arrived completely.
  private func passOn(_ bytes: [UInt8]) throws -> (bytes: [UInt8], report: ProcessingReport) {
    var reader = ImageReader(limits: ImageLimits())
    let (isComplete, consumed) = try reader.push(bytes.span.bytes, isLast: true)
    #expect(isComplete)
    let rest = Array(bytes.dropFirst(consumed))
    let plan = try reader.plan(ProcessingConfiguration(), followingByteCount: UInt64(rest.count))
    #expect(plan.passthrough == .copied)
    let workingSet = plan.workingSetByteCount
    let path = try reader.takeRoute(plan, cancellation: Cancellation())
    var result: [UInt8] = []
    #expect(try path.push(rest.span.bytes, isLast: true) { result.append($0) })
    let report = path.report(queued: .zero, total: .zero)
    #expect(report.peakMemoryByteCount <= workingSet)
    return (result, report)
  }

  /// Returns a JPEG with more pixels than the limit for trials without a reason.
  private static func largeJPEG(isProgressive: Bool) throws -> [UInt8] {
    let samples = try Pixels.decode(Fixture.bytes("photo.png"))
    let (width, height) = (samples.layout[0].width, samples.layout[0].height)
    let row = Array(samples.planes[0].prefix(width * 3))
    precondition(height > 0)
    let (columns, rows) = (4, 600)
    let wide = (0..<columns).flatMap { _ in row }
    return try encodedImage(
      (0..<rows).flatMap { _ in wide }, width: width * columns, height: rows, pixelFormat: .rgb8, as: .jpeg,
      isProgressive: isProgressive)
  }

  @Test(
    "a JPEG that lacks only its end marker is passed through, with the marker added",
    arguments: ["photo-420.jpg", "photo-restart.jpg"])
  func smallWithoutEnd(name: String) throws {
    let bytes = Fixture.bytes(name)
    let whole = try process(bytes, ProcessingConfiguration())
    for windowByteCount in [1, 4096, .max] {
      let result = try process(
        Array(bytes.dropLast(2)), ProcessingConfiguration(), windowByteCount: windowByteCount)
      #expect(result.bytes == whole.bytes && result.report.isPassedThrough)
      #expect(result.report.messages == [Self.warning])
    }
  }

  @Test("a large JPEG without an end marker is passed through with the marker added", arguments: [false, true])
  func largeWithoutEnd(isProgressive: Bool) throws {
    let bytes = try Self.largeJPEG(isProgressive: isProgressive)
    let whole = try passOn(bytes)
    let cut = try passOn(Array(bytes.dropLast(2)))
    #expect(cut.bytes == whole.bytes && cut.report.messages == [Self.warning])
    #expect(whole.report.messages.isEmpty)
  }

  @Test("a JPEG that lacks more than its end marker is not passed through", arguments: [false, true])
  func truncated(isProgressive: Bool) throws {
    let large = try Self.largeJPEG(isProgressive: isProgressive)
    let small = Fixture.bytes(isProgressive ? "photo-progressive.jpg" : "photo-420.jpg")
    for bytes in [large, small] {
      for missing in [20, bytes.count / 3] {
        let error = #expect(throws: PipelineError.self) { try passOn(Array(bytes.dropLast(missing))) }
        #expect(error?.code == .truncatedImage, "\(missing)")
      }
    }
  }

  @Test("a small image that no decoder opens is refused")
  func broken() throws {
    var webp = Fixture.bytes("lossless.webp")
    webp.replaceSubrange(16..<20, with: Container.littleEndian(webp.count / 2, byteCount: 4))
    let png = Container.png(
      width: 40, height: 40, bitDepth: 8, colorType: 0, rows: [UInt8](repeating: 9, count: 41 * 40))
    for bytes in [webp, png] {
      let error = #expect(throws: PipelineError.self) { try process(bytes, ProcessingConfiguration()) }
      #expect(error?.code == .corruptImage)
    }
  }
}

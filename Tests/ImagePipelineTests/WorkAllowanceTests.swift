import ImageCodecs
import TestSupport
import Testing
import WorkThreads

@testable import ImagePipeline

@Suite("Work allowance")
struct WorkAllowanceTests {
  /// Returns the error of completing a WebP, which is one long call of a library.
  private func finishError(_ cancellation: Cancellation, limit: Duration?) throws -> PipelineError? {
    let options = EncoderOptions(format: .webp, width: 400, height: 400, pixelFormat: .rgb8)
    var encoder = try Encoder(options: options, budget: ImageBudget(limit: 1 << 26))
    let row = try rowBuffer([UInt8](repeating: 9, count: 1200), rowByteCount: 1200)
    for _ in 0..<400 { try encoder.write(Strip(format: .rgb8, rows: [row.rows(first: 0, count: 1)])) }
    let allowance = WorkAllowance(cancellation, limit: limit)
    allowance.begin()
    do throws(PipelineError) {
      try encoder.finish(within: allowance)
      return nil
    } catch { return error }
  }

  @Test("ends an encoder's long call, with the reason")
  func finish() throws {
    #expect(try finishError(Cancellation(), limit: .seconds(60)) == nil)
    let cancelled = Cancellation()
    cancelled.cancel()
    #expect(try finishError(cancelled, limit: nil) == .cancelled)
    #expect(try finishError(Cancellation(), limit: .zero)?.limit?.name == "max_cpu_seconds_per_image")
  }

  @Test("counts the time of overlays, and none of the thread before them")
  func overlays() throws {
    var reader = ImageReader(limits: ImageLimits(maxCPUTime: .seconds(60)))
    reader.auxiliary = try OverlayPicture.auxiliary(["logo": .noise(200, 100, channels: 4)])
    let file = Fixture.bytes("photo-420.jpg")
    _ = try reader.push(file.span.bytes, isLast: true)
    let plan = try reader.plan([ProcessingConfiguration(preferredFormat: .png, overlays: [Overlay(image: "logo")])])
    let began = ThreadClock.now
    let pipeline = try Pipeline(reader, plan: plan, cancellation: Cancellation())
    let elapsed = ThreadClock.now - began
    let used = pipeline.allowance.used
    #expect(used > .zero && used <= elapsed)
  }

  @Test("counts the time of the search of an image's pixels")
  func search() throws {
    let configuration = ProcessingConfiguration(preferredFormat: .png, trim: Trim())
    var reader = ImageReader(limits: ImageLimits(maxCPUTime: .seconds(60)))
    reader.configurations = [configuration]
    let file = Fixture.bytes("photo-420.jpg")
    _ = try reader.push(file.span.bytes, isLast: true)
    let searched = reader.allowance?.used ?? .zero
    let plan = try reader.plan([configuration])
    let pipeline = try Pipeline(reader, plan: plan, cancellation: Cancellation())
    let used = pipeline.allowance.used
    #expect(searched > .zero && used >= searched)
  }
}

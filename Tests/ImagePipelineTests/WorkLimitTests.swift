import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Work limit")
struct WorkLimitTests {
  private static let image = Fixture.bytes("photo-420.jpg")

  private func limit(
    _ configurations: [ProcessingConfiguration], maxWorkPixels: UInt64
  ) throws -> PipelineError.Limit? {
    var reader = ImageReader(limits: ImageLimits(maxWorkPixels: maxWorkPixels))
    _ = try reader.push(Self.image.span.bytes, isLast: true)
    do throws(PipelineError) { _ = try reader.plan(configurations) } catch {
      #expect(error.code == .limitExceeded)
      return error.limit
    }
    return nil
  }

  @Test("counts the pixels of all renditions and their passes before anything is decoded")
  func counts() throws {
    let small = ProcessingConfiguration(maxWidth: 50, maxHeight: 40, resizeMode: .stretch)
    var blurred = small
    blurred.filters = [Filter(name: "blur"), Filter(name: "blur", parameters: ["radius": 3])]
    #expect(try limit([small, blurred], maxWorkPixels: 12_000) == nil)
    let found = try limit([small, blurred], maxWorkPixels: 11_999)
    #expect(found == PipelineError.Limit(name: "max_work_pixels", limit: 11_999, value: 12_000))
  }

  @Test("refuses work of minutes by default")
  func largest() throws {
    let largest = ProcessingConfiguration(
      maxWidth: 65_500, maxHeight: 65_500, preferredFormat: .png, resizeMode: .stretch, allowUpscale: true)
    let found = try limit([largest], maxWorkPixels: ImageLimits().maxWorkPixels)
    #expect(found?.value == 2 * 65_500 * 65_500)
    var blurred = ProcessingConfiguration(maxWidth: 4500, maxHeight: 65_500, resizeMode: .stretch, allowUpscale: true)
    blurred.filters = Array(repeating: Filter(name: "blur"), count: 32)
    #expect(try limit([blurred], maxWorkPixels: ImageLimits().maxWorkPixels)?.value == 34 * 4500 * 65_500)
  }

  @Test("counts padding that only the encoder needs")
  func padding() throws {
    let padded = ProcessingConfiguration(maxWidth: 65_000, maxHeight: 65_000, pad: true)
    let found = try limit([padded], maxWorkPixels: 65_000 * 65_000)
    let imagePixelCount = try #require(found).value - 65_000 * 65_000
    #expect(0 < imagePixelCount && imagePixelCount < 1_000_000)
    #expect(try limit([padded], maxWorkPixels: ImageLimits().maxWorkPixels) == nil)
  }

  /// Returns the bytes of a long result produced within `time`, and the limit that ended it.
  private func work(
    within time: Duration?, _ configuration: ProcessingConfiguration
  ) throws -> (byteCount: Int, limit: PipelineError.Limit?) {
    var reader = ImageReader(limits: ImageLimits(maxCPUTime: time))
    var consumed = try reader.push(Self.image.span.bytes, isLast: true).consumedByteCount
    let plan = try reader.plan(configuration)
    let path = try reader.takeRoute(plan, cancellation: Cancellation())
    var byteCount = 0
    do throws(PipelineError) {
      var progress = PipelineProgress.paused
      while progress == .paused {
        let rest = Self.image.span.bytes.extracting(droppingFirst: consumed)
        progress = try path.advance(rest, isLast: true, consumed: &consumed) { _, bytes in
          byteCount += bytes.byteCount
        }
      }
    } catch {
      #expect(error.code == .limitExceeded)
      return (byteCount, error.limit)
    }
    return (byteCount, nil)
  }

  @Test("ends an image at its CPU time limit, at the next rows of its result")
  func cpuTime() throws {
    let configuration = ProcessingConfiguration(
      maxWidth: 3000, maxHeight: 2000, compressionQuality: 1, preferredFormat: .png, resizeMode: .stretch,
      allowUpscale: true)
    let whole = try work(within: nil, configuration)
    #expect(whole.limit == nil)
    // It pauses in between: the time of all portions counts.
    let cut = try work(within: .milliseconds(10), configuration)
    #expect(cut.limit?.name == "max_cpu_seconds_per_image" && cut.limit?.value == 1)
    #expect(cut.byteCount < whole.byteCount)
    #expect(try work(within: .seconds(600), configuration).limit == nil)
  }

  @Test("ends an image that is passed through at its CPU time limit")
  func cpuTimeOfPassthrough() throws {
    let found = try work(within: .zero, ProcessingConfiguration()).limit
    #expect(found?.name == "max_cpu_seconds_per_image")
  }
}

import ImageCodecs
import ImagePipeline
import InMemoryTracing
import TestSupport
import Testing
import Tracing

@Suite("Several renditions of one image")
struct RenditionTests {
  /// Renditions of full quality and almost the image's size, so that most are decoded at full size even by themselves.
  private static let fullSize = [
    ProcessingConfiguration(maxWidth: 100, compressionQuality: 1, preferredFormat: .png, alwaysEncode: true),
    ProcessingConfiguration(compressionQuality: 1, preferredFormat: .jpeg, alwaysEncode: true),
    ProcessingConfiguration(
      maxWidth: 100, maxHeight: 100, compressionQuality: 1, preferredFormat: .webp, allowUpscale: true, pad: true,
      rotation: 90, flipVertical: true, alwaysEncode: true),
    ProcessingConfiguration(
      preferredFormat: .jpeg, crop: Crop(unit: .fractions, x: 0.25, y: 0, width: 0.5, height: 0.25)),
    ProcessingConfiguration(
      maxWidth: 90, preferredFormat: .png,
      alwaysEncode: true,
      filters: [
        Filter(name: "sepia", intensity: 1, parameters: [:]), Filter(name: "blur", intensity: 1, parameters: [:]),
      ]),
  ]

  @Test("equal separately produced results, within the planned memory", arguments: Fixture.names)
  func same(name: String) throws {
    let bytes = Fixture.bytes(name)
    for windowByteCount in [Int.max, 1000] {
      let (plan, results) = try process(bytes, Self.fullSize, windowByteCount: windowByteCount)
      #expect(plan.plans.count == Self.fullSize.count)
      for (index, (configuration, result)) in zip(Self.fullSize, results).enumerated() {
        let (together, report) = try result.get()
        #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
        let alone = try process(bytes, configuration)
        guard try plan.renditions[index].get().decodeScale == alonePlan(bytes, configuration).decodeScale else {
          continue
        }
        #expect(together == alone.bytes, "rendition \(index)")
        // How many frames an animation has may not be known when all renditions have theirs.
        #expect(report.output == alone.report.output)
        #expect(report.warnings.map(\.code) == alone.report.warnings.map(\.code))
        #expect(report.outputByteCount == UInt64(together.count))
      }
    }
  }

  private func alonePlan(_ bytes: [UInt8], _ configuration: ProcessingConfiguration) throws -> Plan {
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(bytes.span.bytes, isLast: true)
    return try reader.plan(configuration)
  }

  @Test("are decoded at the scale that the most demanding one needs")
  func scale() throws {
    let configurations = [64, 240, 20].map { ProcessingConfiguration(maxWidth: $0, compressionQuality: 0.8) }
    let bytes = Fixture.bytes("photo-420.jpg")
    let (plan, results) = try process(bytes, configurations)
    #expect(plan.plans.map(\.decodeScale) == [8, 8, 8])
    #expect(try results.map { try $0.get().report.output.size.width } == [64, 240, 20])
    let (small, _) = try process(bytes, [configurations[0], configurations[2]])
    let alone = try configurations.map { try alonePlan(bytes, $0).decodeScale }
    #expect(small.plans.map(\.decodeScale) == [alone[0], alone[0]] && alone[0] < 8 && alone[2] < alone[0])
  }

  @Test("fail separately: for a crop outside the image, or a truncated file that is not tolerated")
  func isolation() throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let good = ProcessingConfiguration(maxWidth: 64)
    let outside = ProcessingConfiguration(crop: Crop(unit: .pixels, x: 5000, y: 0, width: 10, height: 10))
    let (plan, results) = try process(bytes, [outside, good, outside])
    #expect(plan.plans.count == 1)
    #expect(try results[1].get().bytes == (try process(bytes, good).bytes))
    for index in [0, 2] {
      guard case .failure(let error) = results[index] else {
        Issue.record("a crop outside of the image")
        continue
      }
      #expect(error.code == .invalidField && error.field == "crop.x")
    }

    let strict = ProcessingConfiguration(preferredFormat: .jpeg, alwaysEncode: true)
    var tolerant = strict
    tolerant.tolerateTruncation = true
    let top = ProcessingConfiguration(
      preferredFormat: .png, crop: Crop(unit: .pixels, x: 0, y: 0, width: 100, height: 20))
    let cut = Array(bytes.prefix(bytes.count * 3 / 4))
    let (_, ends) = try process(cut, [strict, tolerant, top])
    guard case .failure(let error) = ends[0] else {
      throw PipelineError(.internalDefect, "the strict one has a result")
    }
    #expect(error.code == .truncatedImage)
    #expect(try ends[1].get().bytes == (try process(cut, tolerant).bytes))
    // All its rows arrived, and nothing stopped the decoder.
    #expect(try ends[2].get().bytes == (try process(bytes, top).bytes))
    let end = #expect(throws: PipelineError.self) { try process(cut, [strict, top]) }
    #expect(end?.code == .truncatedImage)
  }

  @Test("end as soon as none needs further rows")
  func early() throws {
    let bytes = Fixture.bytes("photo-420.jpg")
    let top = [20, 60].map { height in
      ProcessingConfiguration(crop: Crop(unit: .pixels, x: 0, y: 0, width: 100, height: Double(height)))
    }
    let (_, results) = try process(bytes, top, windowByteCount: 500)
    let read = try results.map { try $0.get().report.inputByteCount }
    #expect(read[0] < read[1] && read[1] < UInt64(bytes.count * 2 / 3))
  }

  @Test("convert a gray profile in the pixel format that each needs")
  func profiles() throws {
    let gray = try encodedImage(
      [UInt8](repeating: 100, count: 64 * 64), width: 64, height: 64, pixelFormat: .gray8)
    let tagged = Container.png(gray, adding: [Container.profileChunk(Fixture.bytes("gray-gamma-1.8.icc"))])
    let configurations = [OutputFormat.png, .webp, .jpeg].map {
      ProcessingConfiguration(maxWidth: 32, compressionQuality: 1, preferredFormat: $0)
    }
    let (_, results) = try process(tagged, configurations)
    for (configuration, result) in zip(configurations, results) {
      #expect(try result.get().bytes == (try process(tagged, configuration).bytes))
    }
  }

  @Test("have separate spans below one for decoding, and end with their caller")
  func traces() throws {
    let tracer = InMemoryTracer()
    let bytes = Fixture.bytes("photo-420.jpg")
    let configurations = [64, 32].map { ProcessingConfiguration(maxWidth: $0) }
    _ = try process(bytes, configurations, tracing: TraceTarget(tracer: tracer))
    let spans = tracer.finishedSpans
    #expect(spans.filter { $0.operationName == "decode" }.count == 1)
    for name in ["resize", "encode"] {
      let ids = spans.filter { $0.operationName == name }.map { $0.attributes.get("imageworker.rendition_id") }
      #expect(ids == ["0", "1"].map { $0.toSpanAttribute() }, "\(name)")
    }
    let cancellation = Cancellation()
    cancellation.cancel()
    let error = #expect(throws: PipelineError.self) {
      _ = try process(bytes, configurations, cancellation: cancellation)
    }
    #expect(error?.code == .cancelled)
  }
}

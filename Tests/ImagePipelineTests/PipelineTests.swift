import ImageCodecs
import ImagePipeline
import InMemoryTracing
import TestSupport
import Testing
import Tracing

/// The formats of image files that this build can encode.
private let outputFormats = OutputFormat.allCases.filter {
  ImageFormat(rawValue: $0.rawValue)?.isEncodable ?? false && $0 != .raw
}

@Suite("Pipeline")
struct PipelineTests {
  @Test("a crop leaves translucent pixels as they are, also with exact_resize", arguments: [0, 90])
  func exactCrop(rotation: Int) throws {
    let image = Fixture.bytes("alpha.png")
    var configuration = ProcessingConfiguration(preferredFormat: .png, rotation: rotation)
    configuration.crop = Crop(unit: .pixels, x: 3, y: 5, width: 20, height: 11)
    let plain = try process(image, configuration).bytes
    configuration.exactResize = true
    #expect(try process(image, configuration).bytes == plain)
  }

  @Test("fits every kind of image within its bounds, with its original colors", arguments: Fixture.names)
  func fitsAndKeepsColors(name: String) throws {
    let fixture = Fixture.named(name)
    let configuration = ProcessingConfiguration(
      maxWidth: 40, maxHeight: 30, compressionQuality: 0.95, preferredFormat: .jpeg)
    let (bytes, report) = try process(Fixture.bytes(name), configuration)
    let expected = outputSize(
      of: PixelSize(width: fixture.width, height: fixture.height), configuration: configuration)
    #expect(report.input.size == PixelSize(width: fixture.width, height: fixture.height))
    #expect(report.output.size == expected)
    let pixels = try Pixels.decode(bytes)
    #expect(pixels.layout[0].width == expected.width && pixels.layout[0].height == expected.height)
    let tolerance = name.hasSuffix(".hdr") ? 12.0 : 4.0
    for (ours, theirs) in zip(pixels.mean, fixture.displayed ?? fixture.mean) {
      #expect(abs(ours - theirs) < tolerance)
    }
  }

  @Test("returns the same bytes however the upload is split", arguments: Fixture.names)
  func cutsDoNotMatter(name: String) throws {
    let configuration = ProcessingConfiguration(maxWidth: 50, compressionQuality: 0.8)
    let whole = try process(Fixture.bytes(name), configuration)
    for windowByteCount in [1, 7, 4096] {
      #expect(try process(Fixture.bytes(name), configuration, windowByteCount: windowByteCount).bytes == whole.bytes)
    }
  }

  @Test(
    "shows all eight orientations upright, in every output format", arguments: ["jpg", "png", "webp"],
    outputFormats)
  func orientations(container: String, format: OutputFormat) throws {
    for value in 1...8 {
      let name = "orientation-\(value).\(container)"
      for (width, expected) in [(48, [48, 32]), (24, [24, 16]), (33, [33, 22])] {
        let configuration = ProcessingConfiguration(
          maxWidth: width, compressionQuality: 0.85, preferredFormat: format)
        let pixels = try Pixels.decode(try process(Fixture.bytes(name), configuration).bytes)
        let (w, h) = (pixels.layout[0].width, pixels.layout[0].height)
        #expect([w, h] == expected, "\(name)")
        let places = [(2, 2), (w - 3, 2), (2, h - 3), (w - 3, h - 3)]
        let corners = try #require(Fixture.named("orientation-1.png").corners)
        for (place, corner) in zip(places, corners) {
          for (ours, theirs) in zip(pixels.color(x: place.0, y: place.1), corner) {
            #expect(abs(ours - Double(theirs)) < 24, "\(name) to \(format) at \(place)")
          }
        }
        #expect(!holds(try process(Fixture.bytes(name), configuration).bytes, text: "Exif"))
      }
    }
  }

  private func holds(_ bytes: [UInt8], text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.dropLast(wanted.count).contains { Array(bytes[$0..<$0 + wanted.count]) == wanted }
  }

  @Test("a rotated image equals the upright one, with aligned chroma at odd sizes too", arguments: 2...8)
  func turnsAgree(value: Int) throws {
    // 33x22 has chroma planes that extend past the image; every orientation must give the result of orientation 1.
    let configuration = ProcessingConfiguration(maxWidth: 33, compressionQuality: 0.89, preferredFormat: .jpeg)
    let upright = try Pixels.decode(try process(Fixture.bytes("orientation-1.png"), configuration).bytes)
    let rotated = try Pixels.decode(try process(Fixture.bytes("orientation-\(value).png"), configuration).bytes)
    for plane in 0..<3 {
      let worst = zip(upright.planes[plane], rotated.planes[plane]).map { abs(Int($0) - Int($1)) }.max() ?? 0
      #expect(worst <= 6, "plane \(plane)")
    }
  }

  @Test("a result of one pixel has the mean color, also where chroma has half of the resolution")
  func onePixel() throws {
    let size = 64
    let halves = (0..<size * size).flatMap { $0 % size < size / 2 ? [220, 30, 30] : [30, 30, 220] as [UInt8] }
    let photo = try process(
      Array("P6 \(size) \(size) 255\n".utf8) + halves,
      ProcessingConfiguration(compressionQuality: 0.8, preferredFormat: .jpeg))
    for quality in [0.8, 1] {
      let configuration = ProcessingConfiguration(
        maxWidth: 1, maxHeight: 1, compressionQuality: quality, preferredFormat: .jpeg)
      let pixel = try Pixels.decode(try process(photo.bytes, configuration).bytes).planes.map { Int($0[0]) }
      // Luma and chroma of half red, half blue.
      #expect(zip(pixel, [70, 159, 167]).allSatisfy { abs($0 - $1) < 6 }, "\(pixel)")
    }
  }

  @Test("keeps the input's format by default, or the nearest that can be encoded")
  func originalFormat() throws {
    let table = [
      ("photo-420.jpg", "jpeg"), ("photo.png", "png"), ("alpha.webp", "webp"), ("photo.bmp", "jpeg"),
      ("photo.tga", "jpeg"), ("gray.pgm", "jpeg"),
    ]
    for (name, format) in table {
      let report = try process(Fixture.bytes(name), ProcessingConfiguration(preferredFormat: .original)).report
      #expect(report.output.format == format, "\(name)")
    }
  }

  @Test(
    "refuses an output format missing from the build, naming the field", .enabled(if: !ImageFormat.avif.isEncodable))
  func formatNotBuiltIn() {
    let error = #expect(throws: PipelineError.self) {
      _ = try process(Fixture.bytes("photo.png"), ProcessingConfiguration(preferredFormat: .avif))
    }
    #expect(error?.code == .unservedField && error?.field == "preferred_format")
    #expect(error?.message.contains("avif") == true)
  }

  @Test("flattens transparency on the background, white unless set")
  func flattening() throws {
    for (background, expected) in [(nil, 255.0), (Color(red: 0, green: 0, blue: 0), 0)] as [(Color?, Double)] {
      let configuration = ProcessingConfiguration(
        maxWidth: 60, compressionQuality: 0.95, preferredFormat: .jpeg, background: background)
      let pixels = try Pixels.decode(try process(Fixture.bytes("alpha.png"), configuration).bytes)
      // The first row of the fixture is transparent.
      for channel in pixels.color(x: 30, y: 0) { #expect(abs(channel - expected) < 12) }
    }
  }

  @Test(
    "keeps transparency if the format supports it, without dark halos", arguments: outputFormats.filter { $0 != .jpeg })
  func transparency(format: OutputFormat) throws {
    let configuration = ProcessingConfiguration(maxWidth: 60, compressionQuality: 1, preferredFormat: format)
    let (bytes, report) = try process(Fixture.bytes("alpha.png"), configuration)
    #expect(report.output.hasAlpha)
    let pixels = try Pixels.decode(bytes)
    #expect(pixels.format == .rgba8)
    for (ours, theirs) in zip(pixels.mean, Fixture.named("alpha.png").mean) { #expect(abs(ours - theirs) < 2.5) }
  }

  @Test("never buffers the image: memory does not grow with its height")
  func memoryIsBounded() throws {
    let configuration = ProcessingConfiguration(maxWidth: 64, maxHeight: 64, compressionQuality: 0.8)
    var peaks: [UInt64] = []
    // Both are large enough for the decoder to find blocks ahead.
    for height in [8000, 32000] {
      let tall = try tallJPEG(height: height)
      peaks.append(try process(tall, configuration, windowByteCount: 4096).report.peakMemoryByteCount)
    }
    // At least a few rows of 3 samples.
    #expect(peaks[0] > 8 * 64 * 3 && peaks[1] < peaks[0] + 64 * 1024)
    #expect(peaks[1] < 1 << 20)
  }

  private func tallJPEG(height: Int) throws -> [UInt8] {
    let budget = ImageBudget(limit: 1 << 26)
    var encoder = try Encoder(
      options: EncoderOptions(format: .jpeg, width: 640, height: height, pixelFormat: .gray8), budget: budget)
    let row = try rowBuffer((0..<640).map { UInt8(truncatingIfNeeded: $0) }, rowByteCount: 640)
    for _ in 0..<height { try encoder.write(Strip(format: .gray8, rows: row.rows(count: 1))) }
    try encoder.finish()
    var bytes: [UInt8] = []
    encoder.drain(try PixelBuffer(byteCount: 65536, budget: budget)) { bytes.append($0) }
    return bytes
  }

  @Test("the plan's working set is never below the image's memory", arguments: Fixture.names)
  func estimateHolds(name: String) throws {
    for format in outputFormats + [.raw] {
      let configuration = ProcessingConfiguration(maxWidth: 50, compressionQuality: 0.8, preferredFormat: format)
      var reader = ImageReader(limits: ImageLimits())
      let bytes = Fixture.bytes(name)
      #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let peak = try process(bytes, configuration).report.peakMemoryByteCount
      #expect(peak <= estimate, "\(format)")
    }
  }

  @Test("an image above the memory limit per image is refused, naming the limit and the value")
  func memoryLimit() {
    let error = #expect(throws: PipelineError.self) {
      try process(
        Fixture.bytes("photo-progressive.jpg"), ProcessingConfiguration(alwaysEncode: true),
        limits: ImageLimits(memory: 600_000))
    }
    #expect(error?.code == .limitExceeded && error?.limit?.limit == 600_000)
  }

  @Test(
    "invalid input causes an error that describes the problem",
    arguments: [
      ([], PipelineError.Code.emptyImage), (Array("this is no image at all, just words".utf8), .unknownFormat),
      (Array("qoif".utf8) + [0, 0, 0, 1], .unsupportedImage),
      (Array(Fixture.bytes("photo.png").prefix(400)), .truncatedImage),
      ([0xFF, 0xD8, 0xFF, 0xE0], .truncatedImage), (Fixture.bytes("pngsuite-xcsn0g01.png"), .corruptImage),
    ] as [([UInt8], PipelineError.Code)])
  func badInput(bytes: [UInt8], code: PipelineError.Code) {
    let error = #expect(throws: PipelineError.self) { try process(bytes, ProcessingConfiguration()) }
    #expect(error?.code == code)
    for windowByteCount in [1, 7] {
      let cut = #expect(throws: PipelineError.self) {
        try process(bytes, ProcessingConfiguration(), windowByteCount: windowByteCount)
      }
      #expect(cut?.code == code)
    }
  }

  @Test("a cancelled image stops at its next strip")
  func cancellation() {
    let cancellation = Cancellation()
    cancellation.cancel()
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo-420.jpg"), ProcessingConfiguration(), cancellation: cancellation)
    }
    #expect(error?.code == .cancelled)
  }

  @Test("traces one span for each stage, with busy time, sizes, formats and bytes")
  func spans() throws {
    let tracer = InMemoryTracer()
    let configuration = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.8, preferredFormat: .jpeg)
    let (bytes, report) = try process(
      Fixture.bytes("photo-420.jpg"), configuration, windowByteCount: 1000, tracing: TraceTarget(tracer: tracer))
    let spans = tracer.finishedSpans
    #expect(spans.map(\.operationName).sorted() == ["decode", "encode", "resize"])
    let decode = try #require(spans.first { $0.operationName == "decode" })
    #expect(decode.attributes.get("imageworker.format") == "jpeg".toSpanAttribute())
    #expect(decode.attributes.get("imageworker.width") == 240.toSpanAttribute())
    #expect(decode.attributes.get("imageworker.bytes") == Int(report.inputByteCount).toSpanAttribute())
    let encode = try #require(spans.first { $0.operationName == "encode" })
    #expect(encode.attributes.get("imageworker.bytes") == bytes.count.toSpanAttribute())
    for (span, busy) in [(decode, report.timings.decode), (encode, report.timings.encode)] {
      let nanoseconds = Int(busy.components.attoseconds / 1_000_000_000)
      #expect(span.attributes.get("imageworker.busy_ns") == nanoseconds.toSpanAttribute())
      #expect(nanoseconds > 0)
    }
  }

  @Test("an image that fails ends its spans with an error")
  func failedSpans() {
    let tracer = InMemoryTracer()
    let error = #expect(throws: PipelineError.self) {
      try process(
        Array(Fixture.bytes("photo-420.jpg").dropLast(3000)), ProcessingConfiguration(),
        tracing: TraceTarget(tracer: tracer))
    }
    #expect(error?.code == .truncatedImage)
    #expect(!tracer.finishedSpans.isEmpty)
    #expect(tracer.finishedSpans.allSatisfy { $0.status?.code == .error })
  }
}

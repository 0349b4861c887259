import ImageCodecs
import ImagePipeline
import InMemoryTracing
import TestSupport
import Testing
import Tracing

@Suite("Filters")
struct FilterTests {
  static let cases: [Filter] =
    FilterKind.allCases.flatMap { [Filter(name: $0.rawValue), Filter(name: $0.rawValue, intensity: 0.37)] } + [
      Filter(name: "brightness", parameters: ["amount": 0.4]), Filter(name: "contrast", parameters: ["amount": 0]),
      Filter(name: "contrast", parameters: ["amount": 8]), Filter(name: "saturation", parameters: ["amount": 0]),
      Filter(name: "saturation", intensity: 0.5, parameters: ["amount": 4]),
      Filter(name: "hue", parameters: ["angle": -170]),
      Filter(name: "gamma", parameters: ["exponent": 2.5, "amplitude": 1.2, "offset": -0.1]),
      Filter(name: "exposure", parameters: ["stops": -3]), Filter(name: "exposure", parameters: ["stops": 8]),
      Filter(name: "tint", parameters: ["red": 0, "green": 128, "blue": 255]),
      Filter(name: "duotone", parameters: ["dark_red": 255, "light_red": 0]),
      Filter(name: "vignette", parameters: ["radius": 0, "softness": 2]),
      Filter(name: "blur", parameters: ["radius": 0.5]), Filter(name: "blur", parameters: ["radius": 12]),
      Filter(name: "sharpen", parameters: ["radius": 3, "amount": 0.7]),
      Filter(name: "pixelate", parameters: ["size": 7]), Filter(name: "pixelate", parameters: ["size": 256]),
      Filter(name: "threshold", parameters: ["level": 0.251]),
    ]

  private static let (width, height) = (53, 39)

  @Test("each matches its formula, within a level", arguments: cases)
  func agreesWithReference(filter: Filter) throws {
    let samples = noiseSamples(Self.width * Self.height * 3)
    let result = try filtered(samples, [filter])
    let expected = FilterReference(filter: filter).apply(colors(samples), width: Self.width)
    let isExact = !["blur", "sharpen"].contains(filter.name)
    #expect(distance(result, expected) < (isExact ? 0.52 : 1.05))
  }

  @Test("a chain equals its filters in sequence, each clamped, none rounded", arguments: 0..<60)
  func chains(seed: Int) throws {
    let kinds = FilterKind.allCases.filter { ![.blur, .sharpen, .pixelate, .threshold].contains($0) }
    var numbers = noiseSamples(4000).dropFirst(seed * 31).map(Int.init).makeIterator()
    let chain = (0..<(2 + seed % 5)).map { _ in
      Filter(
        name: kinds[(numbers.next() ?? 0) % kinds.count].rawValue,
        intensity: Double((numbers.next() ?? 0) % 4 + 1) / 4)
    }
    let samples = noiseSamples(Self.width * Self.height * 3)
    let expected = chain.reduce(colors(samples)) { FilterReference(filter: $1).apply($0, width: Self.width) }
    #expect(distance(try filtered(samples, chain), expected) < 0.6, "\(chain.map(\.name))")
  }

  @Test("the order of filters is preserved where it matters")
  func order() throws {
    let samples = noiseSamples(Self.width * Self.height * 3)
    let names = ["brightness", "invert", "sepia", "blur", "contrast"]
    for (first, second) in zip(names, names.dropFirst()) {
      for chain in [[Filter(name: first), Filter(name: second)], [Filter(name: second), Filter(name: first)]] {
        let expected = chain.reduce(colors(samples)) { FilterReference(filter: $1).apply($0, width: Self.width) }
        #expect(distance(try filtered(samples, chain), expected) < 2, "\(chain.map(\.name))")
      }
    }
  }

  @Test(
    "intensity 0 and neutral parameters do not change the bytes of the result",
    arguments: [
      "photo-420.jpg", "gray.png", "alpha.png",
    ])
  func identity(name: String) throws {
    let plain = ProcessingConfiguration(maxWidth: 60, compressionQuality: 0.8)
    let expected = try process(Fixture.bytes(name), plain)
    let idle =
      FilterKind.allCases.map { Filter(name: $0.rawValue, intensity: 0) } + [
        Filter(name: "brightness", parameters: ["amount": 1]), Filter(name: "saturation", parameters: ["amount": 1]),
        Filter(name: "contrast", parameters: ["amount": 1]), Filter(name: "hue", parameters: ["angle": 0]),
        Filter(name: "gamma", parameters: ["exponent": 1]), Filter(name: "exposure", parameters: ["stops": 0]),
        Filter(name: "pixelate", parameters: ["size": 1]), Filter(name: "sharpen", parameters: ["amount": 0]),
        Filter(name: "vignette", parameters: ["radius": 1]),
      ]
    var configuration = plain
    configuration.filters = Array(idle.prefix(Filter.maxChainCount))
    let result = try process(Fixture.bytes(name), configuration)
    #expect(result.bytes == expected.bytes)
    #expect(result.report.timings.filter == .zero)
    #expect(result.report.peakMemoryByteCount == expected.report.peakMemoryByteCount)
  }

  @Test("alpha is unchanged, except where it is blurred with its color", arguments: FilterKind.allCases)
  func alpha(kind: FilterKind) throws {
    let samples = noiseSamples(Self.width * Self.height * 4)
    let result = try filtered(samples, [Filter(name: kind.rawValue)], format: .rgba8)
    let same = zip(samples, result).enumerated().allSatisfy { $0.offset % 4 != 3 || $0.element.0 == $0.element.1 }
    #expect(same == ![.blur, .pixelate].contains(kind))
    guard ![.blur, .pixelate, .sharpen].contains(kind) else { return }
    // Colors are filtered independently of alpha.
    let colors = samples.enumerated().filter { $0.offset % 4 != 3 }.map(\.element)
    let opaque = try filtered(colors, [Filter(name: kind.rawValue)])
    #expect(opaque == result.enumerated().filter { $0.offset % 4 != 3 }.map(\.element))
  }

  @Test("the background is not filtered; it shows through the filtered image")
  func background() throws {
    let configuration = ProcessingConfiguration(
      compressionQuality: 1, preferredFormat: .jpeg, background: Color(red: 255, green: 255, blue: 255),
      filters: [Filter(name: "invert")])
    let clear = [UInt8](repeating: 0, count: 16 * 16 * 4)
    let png = try encodedImage(clear, width: 16, height: 16, pixelFormat: .rgba8)
    let pixels = try Pixels.decode(try process(png, configuration).bytes)
    for channel in pixels.color(x: 8, y: 8) { #expect(channel > 250) }
  }

  @Test("every kind of image can be filtered, in every output format", arguments: Fixture.names)
  func everyFixture(name: String) throws {
    for format in [OutputFormat.jpeg, .png, .webp] {
      let configuration = ProcessingConfiguration(
        maxWidth: 40, compressionQuality: 0.9, preferredFormat: format,
        filters: [Filter(name: "gamma"), Filter(name: "blur", parameters: ["radius": 2]), Filter(name: "grayscale")])
      let whole = try process(Fixture.bytes(name), configuration)
      let pixels = try Pixels.decode(whole.bytes)
      for channel in pixels.mean { #expect(abs(channel - pixels.mean[0]) < 3) }
      #expect(whole.report.timings.filter > .zero && whole.report.timings.encode > .zero)
      #expect(try process(Fixture.bytes(name), configuration, windowByteCount: 999).bytes == whole.bytes)
    }
  }

  @Test("a rotated image is filtered as shown", arguments: 1...8)
  func orientations(value: Int) throws {
    // 33x22 has blocks that are cut at the right and bottom edges of the shown image.
    let chain = [
      Filter(name: "vignette"), Filter(name: "pixelate", parameters: ["size": 5]),
      Filter(name: "blur", intensity: 0.5, parameters: ["radius": 1.3]),
    ]
    func pixels(_ name: String) throws -> Pixels {
      let configuration = ProcessingConfiguration(maxWidth: 33, preferredFormat: .png, filters: chain)
      return try Pixels.decode(try process(Fixture.bytes(name), configuration).bytes)
    }
    let upright = try pixels("orientation-1.png")
    let rotated = try pixels("orientation-\(value).png")
    let worst = zip(upright.planes[0], rotated.planes[0]).map { abs(Int($0) - Int($1)) }.max() ?? 0
    #expect(upright.layout == rotated.layout && worst <= 2)
  }

  @Test("buffers the rows under its windows, never the image")
  func memoryIsBounded() throws {
    let chain = [
      Filter(name: "sepia"), Filter(name: "blur", intensity: 0.5, parameters: ["radius": 6]), Filter(name: "gamma"),
      Filter(name: "sharpen"), Filter(name: "pixelate", intensity: 0.5, parameters: ["size": 20]),
    ]
    // From JPEG to JPEG nothing else grows with the height: both results have more symbols than the encoder buffers.
    let peaks = try [2000, 8000].map { height in
      let jpeg = try encodedImage(
        noiseSamples(100 * height * 3), width: 100, height: height, pixelFormat: .rgb8, as: .jpeg)
      let configuration = ProcessingConfiguration(compressionQuality: 0.5, filters: chain)
      return try process(jpeg, configuration, windowByteCount: 4096).report.peakMemoryByteCount
    }
    // At least the rows in the window of the blur.
    #expect(peaks[0] > 12 * 100 * 3 && peaks[1] < peaks[0] + 16384)
    #expect(peaks[1] < 8000 * 100 * 3)
  }

  @Test("the plan's working set covers the filters' buffers", arguments: FilterKind.allCases)
  func estimate(kind: FilterKind) throws {
    for (name, format) in [("photo-420.jpg", OutputFormat.jpeg), ("alpha.png", .png), ("alpha.png", .jpeg)] {
      var configuration = ProcessingConfiguration(maxWidth: 100, preferredFormat: format)
      let plain = try plan(Fixture.bytes(name), configuration)
      configuration.filters = [Filter(name: kind.rawValue, intensity: 0.5)]
      let planned = try plan(Fixture.bytes(name), configuration)
      // Without filters, JPEG to JPEG stays in planes, and the encoder uses other buffers.
      if format == .png { #expect(planned.workingSetByteCount > plain.workingSetByteCount) }
      let peak = try process(Fixture.bytes(name), configuration).report.peakMemoryByteCount
      #expect(peak <= planned.workingSetByteCount)
    }
  }

  @Test("a halo that exceeds the budget is refused before anything is decoded")
  func halosAreCharged() {
    let configuration = ProcessingConfiguration(filters: [Filter(name: "blur", parameters: ["radius": 50])])
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("photo.png"), configuration, limits: ImageLimits(memory: 400_000))
    }
    #expect(error?.code == .limitExceeded && error?.limit?.name == "image_memory_limit")
  }

  @Test("has a separate span, whose time is not the encoder's")
  func span() throws {
    let tracer = InMemoryTracer()
    let configuration = ProcessingConfiguration(
      maxWidth: 60, preferredFormat: .jpeg,
      filters: [Filter(name: "sepia", intensity: 0.5), Filter(name: "blur", parameters: ["radius": 30])])
    let report = try process(
      Fixture.bytes("photo-420.jpg"), configuration, tracing: TraceTarget(tracer: tracer)
    ).report
    let spans = tracer.finishedSpans
    #expect(spans.map(\.operationName).sorted() == ["decode", "encode", "filter", "resize"])
    let filter = try #require(spans.first { $0.operationName == "filter" })
    #expect(
      filter.attributes.get("imageworker.filters") == "matrix(sepia) | blur(halo 90)".toSpanAttribute())
    let nanoseconds = Int(report.timings.filter.components.attoseconds / 1_000_000_000)
    #expect(filter.attributes.get("imageworker.busy_ns") == nanoseconds.toSpanAttribute())
    let encode = try #require(spans.first { $0.operationName == "encode" })
    let encoding = Int(report.timings.encode.components.attoseconds / 1_000_000_000)
    #expect(encode.attributes.get("imageworker.busy_ns") == encoding.toSpanAttribute())
  }

  // MARK: Running

  private func filtered(_ samples: [UInt8], _ chain: [Filter], format: PixelFormat = .rgb8) throws -> [UInt8] {
    let png = try encodedImage(samples, width: Self.width, height: Self.height, pixelFormat: format)
    let configuration = ProcessingConfiguration(preferredFormat: .png, filters: chain)
    return try Pixels.decode(try process(png, configuration).bytes).planes[0]
  }

  private func plan(_ bytes: [UInt8], _ configuration: ProcessingConfiguration) throws -> Plan {
    var reader = ImageReader(limits: ImageLimits())
    let (isComplete, _) = try reader.push(bytes.span.bytes, isLast: true)
    #expect(isComplete)
    return try reader.plan(configuration)
  }

  private func colors(_ samples: [UInt8]) -> [[Double]] {
    stride(from: 0, to: samples.count, by: 3).map { first in samples[first..<first + 3].map { Double($0) / 255 } }
  }

  /// Returns the maximum difference in levels.
  private func distance(_ samples: [UInt8], _ expected: [[Double]]) -> Double {
    zip(samples, expected.joined()).map { abs(Double($0) - $1 * 255) }.max() ?? .infinity
  }
}

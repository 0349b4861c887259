import Fields
import ImageCodecs
import ImageKernels
import ImagePipeline
import TestSupport
import Testing

@Suite("The choice of the format")
struct FormatChoiceTests {
  private static let fixtures = ["photo-420.jpg", "photo.png", "alpha.png", "gray.png", "bilevel.png"]
  private static let accepted = ["jpeg,png,webp", "png,webp,avif,jxl", "jpeg,png", "jpeg,webp,avif"]

  private func run(
    _ bytes: [UInt8], accept: String? = nil, _ change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) throws -> (bytes: [UInt8], report: ProcessingReport) {
    var configuration = ProcessingConfiguration(compressionQuality: 0.8, preferredFormat: .auto)
    configuration.accept = try accept.map { try AcceptedFormats(text: $0, field: "accept") }
    change(&configuration)
    return try process(bytes, configuration)
  }

  @Test("a result has an accepted format, which the report names", arguments: fixtures, accepted)
  func isAccepted(name: String, accept: String) throws {
    let (bytes, report) = try run(Fixture.bytes(name), accept: accept)
    let sniffed = ImageFormat.sniff(bytes.span.bytes)
    let format = try #require(sniffed)
    #expect(accept.split(separator: ",").contains { $0 == format.rawValue } && report.output.format == format.rawValue)
    // Of these two, only PNG stores transparency.
    let isOnlyPossible = name == "alpha.png" && accept == "jpeg,png"
    #expect(report.formatTrials.isEmpty == isOnlyPossible)
    if let first = report.formatTrials.first {
      #expect(first.format == format.rawValue && first.compressionQuality == report.compressionQuality)
    }
    let sizes = report.formatTrials.map(\.estimatedByteCount)
    #expect(sizes == sizes.sorted() && bytes.count == Int(report.outputByteCount))
  }

  @Test("a photograph becomes lossy, and a drawing lossless", arguments: [("photo.png", true), ("bilevel.png", false)])
  func kind(name: String, isLossy: Bool) throws {
    let report = try run(Fixture.bytes(name)).report
    #expect((report.compressionQuality != nil) == isLossy, "\(report.formatTrials)")
  }

  @Test("lossless formats are tried for drawings only, WebP also without PNG")
  func lossless() throws {
    #expect(try run(Fixture.bytes("photo.png"), accept: "jpeg,png").report.formatTrials.map(\.format) == ["jpeg"])
    for accept in ["jpeg,webp", "jpeg,png,webp"] {
      let report = try run(Fixture.bytes("bilevel.png"), accept: accept).report
      #expect(report.compressionQuality == nil, "\(report.formatTrials)")
    }
  }

  @Test("an image with transparency becomes no JPEG, unless nothing else is accepted")
  func alpha() throws {
    let report = try run(Fixture.bytes("alpha.png")).report
    #expect(report.output.format != "jpeg" && report.output.hasAlpha)
    #expect(!report.formatTrials.contains { $0.format == "jpeg" })
    #expect(try run(Fixture.bytes("alpha.png"), accept: "jpeg").report.output.format == "jpeg")
  }

  @Test(
    "the result is not larger than the JPEG of the same quality", arguments: ["photo-420.jpg", "photo.png", "gray.png"])
  func isSmallest(name: String) throws {
    let jpeg = try process(
      Fixture.bytes(name), ProcessingConfiguration(compressionQuality: 0.8, preferredFormat: .jpeg, alwaysEncode: true))
    let report = try run(Fixture.bytes(name), accept: "jpeg,png,webp,avif,jxl").report
    #expect(report.outputByteCount <= jpeg.report.outputByteCount * 103 / 100, "\(report.formatTrials)")
  }

  @Test("an image that needs no choice is streamed", arguments: ["png", "webp"])
  func single(format: String) throws {
    let report = try run(Fixture.bytes("photo.png"), accept: format).report
    #expect(report.output.format == format && report.formatTrials.isEmpty)
  }

  @Test("a similarity lowers the score at which formats are compared")
  func similarity() throws {
    let (low, high) = (60.0, 80.0)
    let reports = try [low, high].map { score in
      try run(Fixture.bytes("photo-420.jpg")) {
        $0.targetSimilarity = score
        $0.compressionQuality = 1
      }.report
    }
    #expect(reports[0].outputByteCount < reports[1].outputByteCount)
    for (report, score) in zip(reports, [low, high]) { #expect(try #require(report.similarity) >= score) }
  }

  @Test("a JPEG that is chosen has the requested quality, with its chroma", arguments: [0.8, 0.9, 0.95])
  func requestedQuality(quality: Double) throws {
    let result = try run(Fixture.bytes("photo.png"), accept: "jpeg,png") { $0.compressionQuality = quality }
    let layout = try Pixels.decode(result.bytes).layout
    #expect(result.report.compressionQuality == quality && result.report.output.format == "jpeg")
    #expect((layout[1].width == layout[0].width) == (quality >= 0.9))
  }

  @Test("lossy WebP is compared unless a JPEG has chroma of twice its size", arguments: [0.8, 0.9])
  func fullChroma(quality: Double) throws {
    func formats(_ accept: String, _ jpeg: JPEGOptions? = nil) throws -> Set<String> {
      let report = try run(Fixture.bytes("photo.png"), accept: accept) {
        $0.compressionQuality = quality
        $0.jpeg = jpeg
      }.report
      return Set(report.formatTrials.map(\.format))
    }
    #expect(try formats("jpeg,webp,avif") == (quality < 0.9 ? ["jpeg", "webp", "avif"] : ["jpeg", "avif"]))
    #expect(try formats("webp,avif") == ["webp", "avif"])
    #expect(try formats("jpeg,webp", JPEGOptions(chromaSubsampling: .full)) == ["jpeg", "webp"])
  }

  @Test("the chosen WebP has the effort of its options, although it is tried with less", arguments: [2, 6])
  func webPEffort(method: Int) throws {
    let result = try run(Fixture.bytes("photo.png"), accept: "webp,png") { $0.webp = WebPOptions(method: method) }
    var plain = ProcessingConfiguration(preferredFormat: .webp, webp: WebPOptions(method: method))
    plain.compressionQuality = result.report.compressionQuality
    #expect(try process(Fixture.bytes("photo.png"), plain).bytes == result.bytes)
  }

  @Test("a size limit applies to the chosen format")
  func sizeLimit() throws {
    let (bytes, report) = try run(Fixture.bytes("photo.png"), accept: "jpeg,webp") { $0.maxBytes = 3000 }
    #expect(bytes.count <= 3000 && report.compressionQuality != nil)
  }

  @Test("gray rows of a smaller result show the whole image in a format that stores them as color")
  func smallerGray() throws {
    var configuration = ProcessingConfiguration(
      maxBytes: 500, allowSmallerDimensions: true, accept: try AcceptedFormats(text: "webp,avif", field: "accept"))
    configuration.preferredFormat = .auto
    let (bytes, report) = try process(Fixture.bytes("gray.png"), configuration)
    #expect(bytes.count <= 500 && report.output.size.width < report.input.size.width)
    // Columns of the result are where they are in the image.
    let columns = ProcessingConfiguration(
      maxWidth: 6, maxHeight: 1, preferredFormat: .png, resizeMode: .stretch, resamplingKernel: .box)
    let small = try Pixels.decode(process(bytes, columns).bytes)
    let whole = try Pixels.decode(process(Fixture.bytes("gray.png"), columns).bytes)
    for x in 0..<6 { #expect(abs(small.color(x: x, y: 0)[0] - whole.color(x: x, y: 0)[0]) <= 12) }
  }

  @Test("a similarity is measured, too, if the first candidate is lossless")
  func similarityOfAlpha() throws {
    let report = try run(Fixture.bytes("alpha.png"), accept: "png,webp") {
      $0.targetSimilarity = 50
      $0.compressionQuality = 1
    }.report
    // The fixture is one whose lossy result is smaller.
    #expect(report.output.format == "webp" && report.compressionQuality != nil)
    #expect(try #require(report.similarity) >= 50, "\(report.formatTrials)")
  }

  @Test("the error of a long list shows no more of it than fits", arguments: [1000, 100_000], ["x", "\u{301}"])
  func longNames(count: Int, letter: String) {
    let text = "webp,x" + String(repeating: letter, count: count)
    let error = #expect(throws: FieldError.self) { try AcceptedFormats(text: text, field: "accept") }
    #expect((error?.message.utf8.count ?? .max) < 300)
  }

  @Test("an animation gets the first accepted format that stores frames")
  func animation() throws {
    let file = Fixture.bytes("animated-transparent.gif")
    for (accept, format) in [("jpeg,webp,gif", "webp"), ("jpeg,gif", "gif"), ("jpeg,png", "png")] {
      let report = try run(file, accept: accept) { $0.maxFrames = 0 }.report
      #expect(report.output.format == format && report.output.frameCount > 1)
    }
  }

  @Test("the plan has no format before the rows are known")
  func plan() throws {
    var reader = ImageReader(limits: ImageLimits())
    _ = try reader.push(Fixture.bytes("photo.png").span.bytes, isLast: true)
    let plan = try reader.plan(ProcessingConfiguration(preferredFormat: .auto))
    #expect(plan.outputInfo.format.isEmpty && plan.fileExtensions == ["jpg", "png", "webp"])
  }

  @Test("the working set covers all trials", arguments: fixtures, accepted)
  func workingSet(name: String, accept: String) throws {
    for width in [200, 900] {
      let configuration = ProcessingConfiguration(
        maxWidth: width, compressionQuality: 0.8, preferredFormat: .auto, allowUpscale: true,
        accept: try AcceptedFormats(text: accept, field: "accept"))
      var reader = ImageReader(limits: ImageLimits())
      #expect(try reader.push(Fixture.bytes(name).span.bytes, isLast: true).isComplete)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let report = try process(Fixture.bytes(name), configuration).report
      #expect(report.peakMemoryByteCount <= estimate, "\(width)")
    }
  }

  @Test("formats that cannot have the size are no candidates", arguments: ["jpeg,png,webp", "webp,png", "jpeg,png"])
  func sides(accept: String) throws {
    let wide = try encodedImage(
      (0..<65_535).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }, width: 65_535, height: 1, pixelFormat: .gray8)
    #expect(try run(wide, accept: accept) { _ in }.report.output.format == "png")
  }

  @Test("lossless WebP is not chosen where it has no memory")
  func losslessWithoutMemory() throws {
    // A drawing: few colors in large areas.
    func drawing(width: Int, height: Int) throws -> [UInt8] {
      let rows = (0..<7).map { y in
        (0..<width).flatMap { x -> [UInt8] in (x / 40 + y) % 7 == 0 ? [20, 30, 200] : [250, 250, 240] }
      }
      let samples = (0..<height).flatMap { rows[$0 / 40 % 7] }
      return try encodedImage(samples, width: width, height: height, pixelFormat: .rgb8)
    }
    let small = try run(drawing(width: 1600, height: 1200)).report
    #expect(small.output.format == "webp" && small.compressionQuality == nil)
    // The other candidates have room in the memory that is the default of servers.
    let large = try process(
      try drawing(width: 3840, height: 2160), ProcessingConfiguration(compressionQuality: 0.8, preferredFormat: .auto),
      limits: ImageLimits(memory: 384 << 20)
    ).report
    #expect(large.output.format == "png" || large.compressionQuality != nil)
  }

  @Test("without memory for the rows, the result is a JPEG, or a PNG with alpha, with a warning")
  func fallback() throws {
    for (name, format) in [("photo.png", "jpeg"), ("alpha.png", "png")] {
      let plain = ProcessingConfiguration(compressionQuality: 0.8, preferredFormat: format == "png" ? .png : .jpeg)
      var reader = ImageReader(limits: ImageLimits())
      _ = try reader.push(Fixture.bytes(name).span.bytes, isLast: true)
      let limits = ImageLimits(memory: Int(try reader.plan(plain).workingSetByteCount) + 1000)
      var configuration = plain
      configuration.preferredFormat = .auto
      let report = try process(Fixture.bytes(name), configuration, limits: limits).report
      #expect(report.output.format == format)
      #expect(report.messages.contains { $0.hasPrefix("the result is \(format), because choosing a format") })
      configuration.accept = AcceptedFormats([.webp])
      let error = #expect(throws: PipelineError.self) {
        try process(Fixture.bytes(name), configuration, limits: limits)
      }
      #expect(error?.limit?.name == "image_memory_limit" && error?.message.contains("encoder of webp") == true)
    }
  }

  @Test("the efforts of formats follow from the effort of the choice, unless they are set")
  func effort() throws {
    let sizes = try [AutoEffort.low, .high].map { effort in
      try run(Fixture.bytes("photo-420.jpg"), accept: "jpeg,webp") {
        $0.autoEffort = effort
        $0.compressionQuality = 0.5
      }.report.formatTrials.first { $0.format == "webp" }?.estimatedByteCount ?? 0
    }
    #expect(sizes[1] < sizes[0])
    let fixed = try run(Fixture.bytes("photo-420.jpg"), accept: "jpeg,webp") {
      $0.autoEffort = .high
      $0.compressionQuality = 0.5
      $0.webp = WebPOptions(method: 2)
    }.report
    #expect(fixed.formatTrials.first { $0.format == "webp" }?.estimatedByteCount == sizes[0])
  }

  @Test(
    "lists of formats and Accept headers are read",
    arguments: [
      ("avif,webp", "webp,avif"), ("JPG, image/png", "jpeg,png"),
      ("image/avif,image/webp,*/*;q=0.8", "jpeg,png,webp,avif"),
      ("image/webp;q=0,image/apng,image/*", "jpeg,png"), ("text/html,application/xml;q=0.9", "jpeg,png"),
      ("", "jpeg,png"), ("image/svg+xml , image/jxl ; q=0.5", "jxl"),
      // The most precise range counts, wherever it is.
      ("image/jpeg;q=0,*/*", "png"), ("image/png;q=0, image/*", "jpeg"), ("*/*,image/png;q=0.0", "jpeg"),
      ("*/*;q=0,image/webp", "webp"), ("image/*;q=0,*/*,image/webp", "webp"), ("image/*,*/*;q=0", "jpeg,png"),
      ("image/jpeg, image/*;q=0", "jpeg"), ("image/webp;q=0,image/webp", "webp"), ("image/jpeg;q=0", "png"),
      ("image/*;q=0,*/*", "jpeg,png"), ("*/*;q=0", "jpeg,png"),
    ])
  func reads(text: String, formats: String) throws {
    #expect(try AcceptedFormats(text: text, field: "accept").fieldValue == .word(formats))
  }

  @Test(
    "a name that is no format is an error that names the field",
    arguments: ["bmp", "webp,auto", "original", "webp,raw"])
  func rejects(text: String) throws {
    let error = #expect(throws: FieldError.self) { try AcceptedFormats(text: text, field: "accept") }
    #expect(error?.field == "accept" && error?.message.contains("webp") ?? false)
  }
}

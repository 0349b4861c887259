import Admission
import ImageCodecs
import TestSupport
import Testing

@testable import ImageWorkerKit

@Suite("ImageProcessor", .timeLimit(.minutes(5)))
struct ImageProcessorTests {
  private static let files = [
    "photo-420.jpg", "photo-progressive.jpg", "photo-cmyk.jpg", "orientation-6.jpg", "photo.png", "alpha.png",
    "orientation-6.png", "palette.png", "photo.webp", "photo.gif", "photo.psd", "photo.bmp", "icon-png.ico",
  ]
  private static let requests: [[String: String]] = [
    [:], ["max_width": "60", "preferred_format": "jpeg", "compression_quality": "0.7"],
    ["max_width": "50", "max_height": "30", "resize_mode": "fill", "preferred_format": "png"],
    ["filters": "sepia", "preferred_format": "webp", "rotation": "90"],
  ]

  @Test("results are those of the engine, however the bytes are supplied", arguments: files)
  func results(file: String) async throws {
    let processor = ImageProcessor()
    let image = Fixture.bytes(file)
    for request in Self.requests {
      let expected = try engineResult(image, request.map { ($0.key, $0.value) })
      let configuration = try ProcessingConfiguration(request)
      let result = try await processor.process(image, as: configuration)
      // An orientation behind the image data counts only if the whole file is known.
      #expect(result.bytes == expected, "\(file) \(request)")
      #expect(result.report.outputByteCount == UInt64(expected.count))
      #expect(try processor.processNow(image, as: configuration).bytes == expected)
      for byteCount in [61, 4096, 1 << 20] {
        let run = try processor.begin(configuration)
        var bytes: [UInt8] = []
        for chunk in chunks(of: image, byteCount) { bytes += try run.push(chunk) }
        let end = try run.finish()
        #expect(bytes + end.bytes == expected && run.isComplete, "\(file) \(request) in chunks of \(byteCount)")
        #expect(end.report.output == result.report.output && run.output?.width == result.report.output.width)
      }
    }
    #expect(processor.memory.used == 0 && processor.memory.buffered == 0)
  }

  @Test("an orientation behind the image data of a PNG counts in a whole file")
  func lateOrientation() async throws {
    var image = Fixture.bytes("photo.png")
    let upright = try await ImageProcessor().process(image, as: ProcessingConfiguration(["always_encode": "true"]))
    let turned = Fixture.bytes("orientation-6.png")
    let chunk = try #require(turned.firstRange(of: Array("eXIf".utf8)))
    let byteCount = turned[(chunk.lowerBound - 4)..<chunk.lowerBound].reduce(0) { $0 << 8 | Int($1) }
    let whole = turned[(chunk.lowerBound - 4)..<(chunk.upperBound + byteCount + 4)]
    image.insert(contentsOf: whole, at: image.count - 12)
    let result = try ImageProcessor().processNow(image, as: ProcessingConfiguration(["always_encode": "true"]))
    #expect(result.report.output.width == upright.report.output.height)
  }

  @Test("overlays are drawn by their names, and one without a file is named")
  func overlays() async throws {
    let image = Fixture.bytes("photo.png")
    let plain = try await ImageProcessor().process(image, as: ProcessingConfiguration(["preferred_format": "png"]))
    let configuration = try ProcessingConfiguration(["preferred_format": "png", "overlays": "logo,gravity=south_east"])
    let logo = try encodedImage([UInt8](repeating: 200, count: 12), width: 4, height: 3, pixelFormat: .gray8)
    let processor = ImageProcessor(overlays: ["logo": logo, "other": []])
    let drawn = try await processor.process(image, as: configuration)
    let (before, after) = (try Pixels.decode(plain.bytes), try Pixels.decode(drawn.bytes))
    #expect(after.color(x: 119, y: 79) == [200, 200, 200] && before.color(x: 119, y: 79) != [200, 200, 200])
    #expect(after.color(x: 110, y: 70) == before.color(x: 110, y: 70))
    #expect(try await processor.process(image, as: configuration).bytes == drawn.bytes)
    let error = #expect(throws: ImageProcessingError.self) { try ImageProcessor().processNow(image, as: configuration) }
    #expect(error?.field == "overlays[0].image" && error?.message.contains("logo") == true)
  }

  @Test("a report has facts, the crop, hidden regions and the layout of an array, where they are asked for")
  func findings() throws {
    let image = Fixture.bytes("photo.png")
    let report = try ImageProcessor().processNow(
      image,
      as: ProcessingConfiguration([
        "facts": "true", "max_width": "32", "max_height": "24", "resize_mode": "fill", "gravity": "smart",
        "regions": "1,2,3x4", "preferred_format": "raw", "tensor.layout": "chw",
        "tensor.element_type": "f32",
      ])
    ).report
    let (facts, tensor) = (try #require(report.facts), try #require(report.tensor))
    #expect(facts.blurHash.utf8.count == 4 + 2 * 12 && facts.isOpaque && !facts.dominantColors.isEmpty)
    #expect(facts.meanColor.description.utf8.count == 7 && facts.perceptualHash != facts.differenceHash)
    #expect(tensor.shape == [3, 24, 32] && tensor.strides == [24 * 32 * 4, 32 * 4, 4] && tensor.elementType == "f32")
    #expect((tensor.content.width, tensor.content.height) == (32, 24) && tensor.channels == "rgb")
    let crop = try #require(report.crop)
    #expect(crop.width <= report.input.width && crop.height <= report.input.height && crop.width > 0)
    let hidden = try #require(report.hiddenRegions.first)
    #expect([hidden.x, hidden.y, hidden.width, hidden.height] == [0, 1, 5, 6])  // with its margin
    let without = try ImageProcessor().processNow(image).report
    #expect(without.facts == nil && without.tensor == nil && without.crop == nil && without.hiddenRegions.isEmpty)
  }

  @Test("a report has the properties of the image, the result and the work")
  func report() async throws {
    let processor = ImageProcessor()
    var configuration = ProcessingConfiguration()
    (configuration.maxWidth, configuration.preferredFormat, configuration.compressionQuality) = (40, .webp, 0.5)
    let image = Fixture.bytes("photo-420.jpg")
    let report = try await processor.process(image, as: configuration).report
    #expect(report.input.format == "jpeg" && report.output.format == "webp" && report.output.width == 40)
    #expect(report.inputByteCount == UInt64(image.count) && report.compressionQuality == 0.5)
    #expect(report.decodeTime > .zero && report.totalTime >= report.decodeTime + report.encodeTime)
    #expect(report.peakMemoryByteCount > 0 && !report.isPassedThrough && report.similarity == nil)
    #expect(
      "\(report)".hasPrefix("jpeg \(report.input.width)x\(report.input.height) (\(image.count) bytes) to webp 40x"))
  }

  @Test("an image is inspected by its first bytes; too few name how many are missing")
  func inspect() throws {
    let processor = ImageProcessor()
    let image = Fixture.bytes("orientation-6.jpg")
    let info = try processor.inspect(Array(image.dropLast(20)))
    #expect(info.format == "jpeg" && info.orientation == 6 && info.width > 0 && info.height > 0)
    let beginning = Array(Fixture.bytes("photo.png").prefix(20))
    let error = #expect(throws: ImageProcessingError.self) { try processor.inspect(beginning) }
    #expect(error?.reason == .truncatedImage && error?.neededByteCount ?? 0 > 0)
    #expect(processor.memory.used == 0)
  }

  @Test(
    "errors have a reason, a message and the field",
    arguments: [
      ([], [:], ImageProcessingError.Reason.emptyImage, nil),
      (Array("no image, but text".utf8), [:], .unknownFormat, nil),
      (Array(Fixture.bytes("photo-420.jpg").prefix(2000)), [:], .truncatedImage, nil),
      (Fixture.bytes("photo.png"), ["resize_mode": "fill"], .invalidField, "resize_mode"),
    ] as [([UInt8], [String: String], ImageProcessingError.Reason, String?)])
  func errors(
    image: [UInt8], request: [String: String], reason: ImageProcessingError.Reason, field: String?
  ) async throws {
    let processor = ImageProcessor()
    let configuration = try ProcessingConfiguration(request)
    let error = await #expect(throws: ImageProcessingError.self) {
      try await processor.process(image, as: configuration)
    }
    #expect(error?.reason == reason && error?.field == field && error?.message.isEmpty == false)
    #expect(error.map { "\($0)".hasPrefix(reason.name) } ?? false)
    let same = #expect(throws: ImageProcessingError.self) { try processor.processNow(image, as: configuration) }
    #expect(same == error)
    #expect(processor.memory.used == 0)
  }

  @Test("after an error, a run throws it again, and has returned its memory")
  func stickyErrors() throws {
    let processor = ImageProcessor()
    var damaged = Fixture.bytes("photo.png")
    for index in 200..<damaged.count { damaged[index] ^= 0x55 }
    let run = try processor.begin(ProcessingConfiguration(["max_width": "10"]))
    let first = try #require(
      #expect(throws: ImageProcessingError.self) {
        _ = try run.push(damaged)
        _ = try run.finish()
      })
    #expect(first.reason == .corruptImage)
    #expect(throws: first) { try run.push([0]) }
    #expect(throws: first) { try run.finish() }
    #expect(processor.memory.used == 0 && processor.memory.buffered == 0)
  }

  // MARK: Limits

  @Test("an image that needs more than the limits names the limit")
  func limits() throws {
    var limits = ProcessingLimits()
    limits.maxPixels = 100
    let pixels = #expect(throws: ImageProcessingError.self) {
      try ImageProcessor(limits: limits).processNow(
        Fixture.bytes("photo-420.jpg"), as: ProcessingConfiguration(["max_width": "10"]))
    }
    #expect(pixels?.reason == .limitExceeded && pixels?.limit?.name == "max_pixels" && pixels?.limit?.limit == 100)
    limits = ProcessingLimits()
    limits.imageMemoryByteCount = 20_000
    let memory = #expect(throws: ImageProcessingError.self) {
      try ImageProcessor(limits: limits).processNow(
        Fixture.bytes("photo-420.jpg"), as: ProcessingConfiguration(["max_width": "10"]))
    }
    #expect(memory?.reason == .limitExceeded)
  }

  @Test("images share the memory: asynchronous ones wait for it, others are refused")
  func memory() async throws {
    let image = Fixture.bytes("photo-420.jpg")
    let configuration = try ProcessingConfiguration(["max_width": "20"])
    var limits = ProcessingLimits()
    // A run takes its memory when its header is complete.
    let probe = ImageProcessor()
    let held = try probe.begin(configuration)
    _ = try held.push(Array(image.prefix(image.count / 2)))
    limits.memoryByteCount = probe.memory.used * 3 / 2
    limits.maxWaitingImageCount = 1

    let processor = ImageProcessor(limits: limits)
    var run: ImageRun? = try processor.begin(configuration)
    _ = try run?.push(Array(image.prefix(image.count / 2)))
    #expect(processor.memory.used > 0 && run?.input?.format == "jpeg")
    let refused = #expect(throws: ImageProcessingError.self) { try processor.processNow(image, as: configuration) }
    #expect(refused?.reason == .overloaded)
    async let waiting = processor.process(image, as: configuration)
    try await waitUntil("an image waits for memory") { processor.memory.waitingCount == 1 }
    // A run that is released returns its memory.
    run = nil
    #expect(try await waiting.report.output.width == 20)
    #expect(processor.memory.used == 0)
  }

  // MARK: Cancellation

  @Test("a task that is cancelled does not wait for memory any longer, and one that was cancelled does not begin")
  func taskCancellation() async throws {
    let image = Fixture.bytes("photo-420.jpg")
    let configuration = try ProcessingConfiguration(["max_width": "20"])
    var limits = ProcessingLimits()
    limits.memoryByteCount = 64 << 20
    let processor = ImageProcessor(limits: limits)
    let held = try processor.memory.reserveNow(64 << 20)
    let task = Task { try await processor.process(image, as: configuration) }
    try await waitUntil("an image waits for memory") { processor.memory.waitingCount == 1 }
    task.cancel()
    let error = try #require(await #expect(throws: ImageProcessingError.self) { try await task.value })
    #expect(error.reason == .cancelled && error.message == "the work was cancelled")
    _ = consume held
    let late = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await processor.process(image, as: configuration)
    }
    await #expect(throws: error) { try await late.value }
    #expect(processor.memory.used == 0 && processor.memory.waitingCount == 0)
  }

  @Test("a flag ends work on the calling thread")
  func flag() throws {
    let (processor, cancellation) = (ImageProcessor(), ProcessingCancellation())
    let image = Fixture.bytes("photo-420.jpg")
    let run = try processor.begin(ProcessingConfiguration(["max_width": "20"]), cancellation: cancellation)
    _ = try run.push(Array(image.prefix(image.count / 2)))
    #expect(processor.memory.used > 0)
    cancellation.cancel()
    let rest = Array(image.suffix(image.count / 2))
    let error = try #require(#expect(throws: ImageProcessingError.self) { try run.push(rest) })
    #expect(error.reason == .cancelled && cancellation.isCancelled && processor.memory.used == 0)
    #expect(throws: error) { try processor.processNow(image, cancellation: cancellation) }
  }

  @Test("many images at once give one result, also to a caller on the main actor")
  @MainActor
  func concurrency() async throws {
    var limits = ProcessingLimits()
    limits.threadCount = 2
    let processor = ImageProcessor(limits: limits)
    let configuration = try ProcessingConfiguration(["max_width": "30"])
    let results = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<20 {
        group.addTask { try await processor.process(Fixture.bytes("photo-420.jpg"), as: configuration).bytes }
      }
      var results: [[UInt8]] = []
      for try await result in group { results.append(result) }
      return results
    }
    #expect(results.count == 20 && Set(results).count == 1 && processor.memory.used == 0)
  }
}

/// Divides bytes into chunks.
func chunks(of bytes: [UInt8], _ byteCount: Int) -> [[UInt8]] {
  stride(from: 0, to: bytes.count, by: byteCount).map { Array(bytes[$0..<min($0 + byteCount, bytes.count)]) }
}

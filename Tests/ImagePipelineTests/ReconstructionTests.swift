import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Recompresses JPEGs as JPEG XL, and reconstructs them.
@Suite("Reconstruction of JPEG", .enabled(if: ImageFormat.jxl.isDecodable))
struct ReconstructionTests {
  /// A configuration, and the expected passthrough of a JPEG XL that was recompressed from a JPEG.
  struct Case: Sendable, CustomTestStringConvertible {
    var configuration: ProcessingConfiguration
    var passthrough: Passthrough
    var testDescription: String { "\(configuration) \(passthrough)" }
  }

  private static let losslessJXL = ProcessingConfiguration(preferredFormat: .jxl, jxl: JXLOptions(isLossless: true))

  /// A configuration that keeps everything.
  private static let whole: ProcessingConfiguration = {
    var whole = ProcessingConfiguration(preferredFormat: .jpeg, metadata: .selected)
    whole.colorSpace = .keep
    (whole.keepEXIF, whole.keepXMP, whole.keepIPTC) = (true, true, true)
    (whole.keepLocation, whole.keepSerialNumbers) = (true, true)
    return whole
  }()

  private static func changed(
    _ configuration: ProcessingConfiguration = ProcessingConfiguration(preferredFormat: .jpeg),
    _ change: (inout ProcessingConfiguration) -> Void
  ) -> ProcessingConfiguration {
    var changed = configuration
    change(&changed)
    return changed
  }

  private static func plan(
    _ bytes: [UInt8], _ configuration: ProcessingConfiguration, limits: ImageLimits = ImageLimits()
  ) throws -> Plan {
    var reader = ImageReader(limits: limits, keepsMetadata: configuration.readsMetadata)
    reader.configurations = [configuration]
    #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
    return try reader.plan(configuration)
  }

  @Test(
    "gives the bytes of a copy of the JPEG",
    arguments: [
      "photo-420.jpg", "photo-422.jpg", "photo-444.jpg", "photo-progressive.jpg", "photo-restart.jpg", "photo-odd.jpg",
      "orientation-1.jpg",
    ])
  func roundTrip(name: String) throws {
    let copy = try process(Fixture.bytes(name), ProcessingConfiguration())
    let stored = try process(Fixture.bytes(name), Self.losslessJXL)
    #expect(copy.report.isPassedThrough && stored.report.isPassedThrough)
    for format in [OutputFormat.original, .jpeg] {
      let configuration = ProcessingConfiguration(preferredFormat: format)
      let plan = try Self.plan(stored.bytes, configuration)
      #expect(plan.passthrough == .reconstructed && plan.fileExtensions == ["jpg"])
      for windowByteCount in [1, 7, 4096, .max] {
        let (result, report) = try process(stored.bytes, configuration, windowByteCount: windowByteCount)
        let isSame = result == copy.bytes
        #expect(isSame)
        #expect(report.isPassedThrough && report.output == plan.outputInfo && report.warnings.isEmpty)
        #expect(report.output.format == "jpeg" && report.output.colorSpace == copy.report.output.colorSpace)
        #expect(report.outputByteCount == UInt64(result.count) && report.inputByteCount == UInt64(stored.bytes.count))
        #expect(report.peakMemoryByteCount <= plan.workingSetByteCount)
      }
    }
  }

  @Test("gives a file of another program byte by byte if everything is to be kept, else without its metadata")
  func metadata() throws {
    let (stored, jpeg) = (Fixture.bytes("recompressed.jxl"), Fixture.bytes("recompressed.jpg"))
    let copy = try process(jpeg, ProcessingConfiguration()).bytes
    for windowByteCount in [1, 7, .max] {
      let whole = try process(stored, Self.whole, windowByteCount: windowByteCount)
      #expect(whole.bytes == jpeg && whole.report.isPassedThrough)
      #expect(try process(stored, ProcessingConfiguration(), windowByteCount: windowByteCount).bytes == copy)
    }
    #expect(try Self.plan(stored, Self.whole).passthrough == .restored)
    let profiled = Self.changed { $0.colorSpace = .displayP3 }
    #expect(try Self.plan(stored, profiled).passthrough == .decoded)
    // Texts of the request are written, as to a copy.
    let titled = Self.changed { $0.metadataTitle = "Rathaus" }
    #expect(try process(stored, titled).bytes == process(jpeg, titled).bytes)
    #expect(try process(stored, titled).report.isPassedThrough)
  }

  @Test(
    "needs a JPEG in which nothing changes",
    arguments: [
      Case(configuration: changed { $0.compressionQuality = 1 }, passthrough: .reconstructed),
      Case(configuration: changed { ($0.maxWidth, $0.maxHeight) = (64, 48) }, passthrough: .reconstructed),
      Case(configuration: changed { $0.metadata = .strip }, passthrough: .reconstructed),
      Case(configuration: changed { $0.compressionQuality = 0.99 }, passthrough: .decoded),
      Case(configuration: changed { $0.maxWidth = 63 }, passthrough: .decoded),
      Case(configuration: changed { $0.preferredFormat = .png }, passthrough: .decoded),
      Case(configuration: changed { $0.alwaysEncode = true }, passthrough: .decoded),
      Case(configuration: changed { $0.tolerateDamage = true }, passthrough: .decoded),
      Case(configuration: changed { $0.tolerateTruncation = true }, passthrough: .decoded),
      Case(configuration: changed { $0.maxBytes = 1_000_000 }, passthrough: .decoded),
      Case(configuration: changed { $0.neverLarger = true }, passthrough: .decoded),
      Case(configuration: changed { $0.targetSimilarity = 80 }, passthrough: .decoded),
      Case(configuration: changed { $0.rotation = 90 }, passthrough: .decoded),
      Case(configuration: changed { $0.filters = [Filter(name: "sepia")] }, passthrough: .decoded),
      Case(configuration: changed { $0.jpeg = JPEGOptions(isProgressive: true) }, passthrough: .decoded),
      Case(configuration: changed { $0.metadata = .keepAll }, passthrough: .decoded),
      Case(configuration: changed { $0.metadata = .keepCopyright }, passthrough: .decoded),
      // All metadata without the position is less than the file has.
      Case(configuration: changed(whole) { $0.keepLocation = false }, passthrough: .decoded),
      Case(configuration: changed(whole) { $0.colorSpace = nil }, passthrough: .decoded),
      Case(configuration: changed(whole) { $0.metadataTitle = "Rathaus" }, passthrough: .decoded),
      Case(configuration: changed(whole) { $0.maxWidth = 32 }, passthrough: .decoded),
    ])
  func conditions(test: Case) throws {
    let bytes = Fixture.bytes("recompressed.jxl")
    #expect(try Self.plan(bytes, test.configuration).passthrough == test.passthrough)
    #expect(try process(bytes, test.configuration).report.isPassedThrough == (test.passthrough != .decoded))
  }

  @Test("finds compressed metadata wherever a window ends", arguments: [1, 2, 3, 5, 7, 64])
  func windows(byteCount: Int) throws {
    let bytes = Fixture.bytes("recompressed.jxl")
    let whole = try process(bytes, Self.whole).bytes
    #expect(try process(bytes, Self.whole, windowByteCount: byteCount).bytes == whole)
    // A window that ends within the type of what is compressed.
    let box = try #require(bytes.indices.dropLast(4).first { Array(bytes[$0..<$0 + 4]) == Array("brob".utf8) }) + 4
    for end in box...box + 4 { #expect(try process(bytes, Self.whole, windowByteCount: end).bytes == whole) }
  }

  @Test("gives the bytes of gray ones")
  func gray() throws {
    let bytes = Fixture.bytes("photo-gray.jpg")
    let stored = try process(bytes, Self.losslessJXL)
    let restored = try process(stored.bytes, ProcessingConfiguration())
    #expect(stored.report.isPassedThrough && restored.report.isPassedThrough && restored.bytes == bytes)
  }

  @Test("is not tried with other files", arguments: ["photo.jxl", "alpha-lossless.jxl", "layers.jxl", "pq.jxl"])
  func others(name: String) throws {
    #expect(try Self.plan(Fixture.bytes(name), ProcessingConfiguration()).passthrough == .decoded)
    #expect(try !process(Fixture.bytes(name), ProcessingConfiguration()).report.isPassedThrough)
  }

  @Test("needs the memory for it, else the pixels are encoded")
  func memory() throws {
    let bytes = try process(Fixture.bytes("photo-420.jpg"), Self.losslessJXL).bytes
    let plan = try Self.plan(bytes, ProcessingConfiguration())
    #expect(plan.passthrough == .reconstructed)
    let tight = ImageLimits(memory: Int(plan.workingSetByteCount) - 1)
    #expect(try Self.plan(bytes, ProcessingConfiguration(), limits: tight).passthrough == .decoded)
    #expect(try !process(bytes, ProcessingConfiguration(), limits: tight).report.isPassedThrough)
  }

  @Test("refuses claims of the box with the JPEG's other bytes, and ends with errors if it is damaged")
  func damage() throws {
    let bytes = Fixture.bytes("recompressed.jxl")
    for count in [bytes.count - 1, bytes.count - 300] {
      let error = #expect(throws: PipelineError.self) { try process(Array(bytes.prefix(count)), Self.whole) }
      #expect(error?.code == .truncatedImage)
    }
    let start = try #require(bytes.indices.dropLast(4).first { Array(bytes[$0..<$0 + 4]) == Array("jbrd".utf8) }) + 4
    // The first fields are 16384 markers of applications, or as many scans, none of which ends.
    for marker in [0xE1 - 0xC0, 0xDA - 0xC0] as [UInt8] {
      var claiming = bytes
      for bit in 1..<500 * 8 {
        let value = marker >> UInt8((bit - 1) % 6) & 1
        claiming[start + bit / 8] = claiming[start + bit / 8] & ~(1 << UInt8(bit % 8)) | value << UInt8(bit % 8)
      }
      #expect(try Self.plan(claiming, ProcessingConfiguration()).passthrough == .decoded)
      #expect(try !process(claiming, ProcessingConfiguration()).report.isPassedThrough)
    }
    var generator = SeededGenerator(seed: 31)
    var codes: Set<PipelineError.Code> = []
    for _ in 0..<200 {
      var damaged = bytes
      for _ in 0..<3 {
        damaged[.random(in: start..<damaged.count, using: &generator)] = .random(in: 0...255, using: &generator)
      }
      do { _ = try process(damaged, ProcessingConfiguration()) } catch { codes.insert(error.code) }
    }
    #expect(codes.isSubset(of: [.corruptImage, .truncatedImage, .unsupportedImage, .limitExceeded]), "\(codes)")
    #expect(codes.contains(.corruptImage))
  }

  @Test("stops when it is cancelled")
  func cancellation() throws {
    let cancellation = Cancellation()
    cancellation.cancel()
    let error = #expect(throws: PipelineError.self) {
      try process(Fixture.bytes("recompressed.jxl"), ProcessingConfiguration(), cancellation: cancellation)
    }
    #expect(error?.code == .cancelled)
  }
}

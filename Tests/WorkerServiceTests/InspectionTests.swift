import GRPCCore
import GRPCProtobuf
import TestSupport
import Testing
import WorkerProtocol

@Suite("InspectImage and ListPresets")
struct InspectionTests {
  @Test("reports the properties of an image and its result from its beginning alone")
  func inspect() async throws {
    try await withWorker { client, _ in
      var request = Imageworker_V1_InspectImageRequest()
      request.image = .init(Fixture.bytes("orientation-6.jpg").prefix(800))
      request.preset = "favicon"
      request.configuration.maxWidth = 16
      let response = try await client.inspectImage(request)
      #expect(response.info.width == 48 && response.info.height == 32 && response.info.orientation == 6)
      #expect(response.output.width == 16 && response.output.height == 11 && response.output.format == "jpeg")
      #expect(response.decodedBytes == 48 * 32 * 3 && response.workingSetBytes > 0 && response.warningDetails.isEmpty)
      request.preset = "default"
      request.configuration.clearMaxWidth()
      request.configuration.scaleFactor = 2
      let details = try await client.inspectImage(request).warningDetails
      #expect(details.map(\.code) == [.scaleFactorIgnored] && details.first?.message.contains("max_width") == true)
    }
  }

  @Test(
    "plans a GIF of one frame as it is processed", arguments: [0, 1, 3] as [UInt32],
    [.original, .png, .jpeg] as [Imageworker_V1_OutputFormat])
  func singleFrame(maxFrames: UInt32, format: Imageworker_V1_OutputFormat) async throws {
    try await withWorker { client, _ in
      for index in [0, -1] as [Int32] {
        var request = Imageworker_V1_InspectImageRequest()
        request.image = .init(Fixture.bytes("photo.gif"))
        request.configuration.maxFrames = maxFrames
        request.configuration.frameIndex = index
        request.configuration.preferredFormat = format
        let planned = try await client.inspectImage(request)
        let configuration = request.configuration
        let report = try #require(try await client.process(Fixture.bytes("photo.gif")) { $0 = configuration }.report)
        #expect(planned.info.frameCount == 1)
        #expect(planned.output.format == report.output.format && planned.output.hasAlpha_p == report.output.hasAlpha_p)
        #expect(planned.workingSetBytes >= report.peakMemoryBytes)
      }
    }
  }

  @Test("refuses searches that processing refuses, as well")
  func searches() async throws {
    typealias Configuration = Imageworker_V1_ProcessingConfiguration
    let changes: [(inout Configuration) -> Void] = [
      { ($0.trim, $0.frameIndex) = (.init(), 1) },
      { ($0.trim, $0.maxFrames) = (.init(), 0) },
      { ($0.gravity, $0.resizeMode, $0.maxWidth, $0.maxHeight, $0.frameIndex) = (.smart, .fill, 9, 9, 1) },
    ]
    try await withWorker { client, _ in
      for change in changes {
        var request = Imageworker_V1_InspectImageRequest()
        request.image = .init(Fixture.bytes("animated-transparent.gif"))
        change(&request.configuration)
        let configuration = request.configuration
        let inspected = await failure { _ = try await client.inspectImage(request) }
        let processed = await failure { _ = try await client.process(Array(request.image)) { $0 = configuration } }
        #expect(inspected?.code == .unimplemented && inspected == processed)
      }
    }
  }

  @Test("accepts the beginning of a progressive JPEG")
  func progressiveBeginning() async throws {
    var bytes = Fixture.bytes("photo-progressive.jpg")
    let scan = try #require(bytes.indices.dropLast().last { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
    let last = bytes[scan..<bytes.count - 2]
    for _ in 0..<60 { bytes.insert(contentsOf: last, at: bytes.count - 2) }
    let file = bytes
    try await withWorker { client, _ in
      var request = Imageworker_V1_InspectImageRequest()
      request.preset = "default"
      request.configuration.alwaysEncode = true
      request.image = .init(file)
      let whole = try await client.inspectImage(request)
      request.image = .init(file.prefix(8000))
      let beginning = try await client.inspectImage(request)
      #expect(beginning.workingSetBytes >= whole.workingSetBytes)
    }
  }

  @Test("refuses a beginning that is too short or not an image")
  func refusals() async throws {
    try await withWorker { client, _ in
      for (bytes, reason) in [([0xFF, 0xD8, 0xFF, 0xE0], "TRUNCATED_IMAGE"), ([], "EMPTY_IMAGE")] as [([UInt8], String)]
      {
        var request = Imageworker_V1_InspectImageRequest()
        request.image = .init(bytes)
        let status = await failure { _ = try await client.inspectImage(request) }
        #expect(status?.code == .invalidArgument && status?.details.first?.errorInfo?.reason == reason)
      }
    }
  }

  /// Returns a file with a large segment or chunk before the others, such as a camera's thumbnail.
  private func withLargeBeginning(_ format: String) -> [UInt8] {
    let body = [UInt8](repeating: 7, count: 40_000)
    return format == "jpeg"
      ? Container.jpeg(Fixture.bytes("photo-420.jpg"), adding: [(0xED, body), (0xED, body)])
      : Container.png(Fixture.bytes("photo.png"), adding: [("prVt", body), ("prVt", body)])
  }

  @Test(
    "of a beginning that is too short it tells how many bytes are needed more, until there are enough",
    arguments: ["jpeg", "png"])
  func neededBytes(format: String) async throws {
    let file = withLargeBeginning(format)
    try await withWorker { client, _ in
      var count = 4096
      var rounds = 0
      while true {
        var request = Imageworker_V1_InspectImageRequest()
        request.image = .init(file.prefix(count))
        let status = await failure {
          let response = try await client.inspectImage(request)
          #expect(response.info.format == format && response.info.width > 0)
        }
        guard let status else { break }
        let info = try #require(status.details.first?.errorInfo)
        #expect(info.reason == "TRUNCATED_IMAGE")
        let needed = try #require(info.metadata["needed_bytes"].flatMap { Int($0) })
        // Up to the next segment or chunk, including its length field.
        if rounds == 0 { #expect(needed == (format == "jpeg" ? 2 + 40_004 + 4 : 33 + 40_012 + 8) - 4096) }
        #expect(needed > 0 && count + needed <= file.count)
        count += needed + 1024
        rounds += 1
      }
      #expect(rounds == 2)
    }
  }

  @Test("lists the nine presets with their configurations")
  func listPresets() async throws {
    try await withWorker { client, _ in
      let presets = try await client.listPresets(Imageworker_V1_ListPresetsRequest()).presets
      #expect(presets.count == 9 && presets.first?.name == "default")
      let widget = try #require(presets.first { $0.name == "widget" })
      #expect(widget.configuration.maxWidth == 1024 && widget.configuration.maxBytes == 1_000_000)
      #expect(!widget.configuration.hasMaxHeight)
    }
  }
}

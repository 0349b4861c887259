import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Faces")
struct FaceTests {
  private static let (width, height) = (900, 600)

  init() { SquareFaces.use() }

  private static func image(
    _ faces: [(x: Int, y: Int, side: Int)], as format: ImageFormat = .png, change: (inout [UInt8]) -> Void = { _ in }
  ) throws -> [UInt8] {
    var samples = SquareFaces.samples(width: width, height: height, faces)
    change(&samples)
    return try encodedImage(samples, width: width, height: height, pixelFormat: .rgb8, as: format)
  }

  private static func cropping(
    _ width: Int = 100, _ height: Int = 100, _ change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(
      maxWidth: width, maxHeight: height, compressionQuality: 0.8, preferredFormat: .png, resizeMode: .fill,
      gravity: .faces)
    change(&configuration)
    return configuration
  }

  private static func hiding(
    _ effect: Region.Effect = .fill, _ change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) -> ProcessingConfiguration {
    var configuration = ProcessingConfiguration(
      compressionQuality: 0.8, preferredFormat: .png, regions: [Region(shape: .faces, area: nil, effect: effect)])
    change(&configuration)
    return configuration
  }

  private static func contains(_ crop: PixelRect, _ face: (x: Int, y: Int, side: Int)) -> Bool {
    let slack = face.side / 10
    return crop.x <= face.x + slack && crop.y <= face.y + slack && crop.x + crop.width >= face.x + face.side - slack
      && crop.y + crop.height >= face.y + face.side - slack
  }

  @Test(
    "crops keep the face, wherever it is",
    arguments: [(0, 0, 100), (20, 480, 100), (700, 10, 200), (400, 300, 250), (820, 520, 80)])
  func keeps(x: Int, y: Int, side: Int) throws {
    for format in [ImageFormat.png, .jpeg] {
      let file = try Self.image([(x, y, side)], as: format)
      for (width, height) in [(100, 100), (160, 70), (40, 90)] {
        let report = try process(file, Self.cropping(width, height)).report
        #expect(report.faces.count == 1 && report.warnings.isEmpty, "\(report.warnings)")
        let crop = try #require(report.crop)
        #expect(Self.contains(crop, (x, y, side)), "\(crop)")
      }
    }
  }

  @Test("the margin is kept if it fits, and decides nothing else")
  func margin() throws {
    let file = try Self.image([(320, 10, 100), (480, 10, 100)])
    func crop(_ margin: Double) throws -> PixelRect {
      try #require(try process(file, Self.cropping(300, 600) { $0.minFaceMargin = margin }).report.crop)
    }
    // Both faces fit without a margin, and not with one of half a face: they are still both kept.
    for margin in [0, 0.25, 0.5, 2] {
      let crop = try crop(margin)
      #expect(Self.contains(crop, (320, 10, 100)) && Self.contains(crop, (480, 10, 100)), "\(margin): \(crop)")
    }
    let single = try Self.image([(20, 200, 100)])
    let narrow = try #require(
      try process(single, Self.cropping(300, 600) { $0.minFaceMargin = 0 }).report.crop)
    #expect(narrow.x <= 20)
    let error = #expect(throws: PipelineError.self) { try Self.cropping { $0.minFaceMargin = 2.5 }.validate() }
    #expect(error?.field == "min_face_margin")
  }

  @Test("of faces that do not fit together, the largest area stays, with a warning")
  func cut() throws {
    let file = try Self.image([(10, 200, 200), (750, 200, 100), (650, 400, 80)])
    let report = try process(file, Self.cropping(100, 200)).report
    #expect(report.faces.count == 3)
    #expect(Self.contains(try #require(report.crop), (10, 200, 200)))
    #expect(report.warnings.map(\.code) == [.facesCut])
    #expect(report.warnings.first?.parameters == ["faces": "3", "kept": "1"])
  }

  @Test("without a face it crops as SMART, with a warning; without FILL nothing is searched")
  func none() throws {
    let file = try Self.image([], change: { samples in for index in 90_000..<120_000 { samples[index] = 0 } })
    let (bytes, report) = try process(file, Self.cropping())
    #expect(report.faces.isEmpty && report.warnings.map(\.code) == [.facesNotFound])
    let smart = try process(file, Self.cropping { $0.gravity = .smart })
    #expect(smart.bytes == bytes && smart.report.crop == report.crop && smart.report.warnings.isEmpty)
    let fitting = try process(file, Self.cropping { $0.resizeMode = .fit }).report
    #expect(fitting.warnings.isEmpty && fitting.crop == nil)
  }

  @Test("faces are those of the image as it is displayed", arguments: [0, 90, 180, 270], [false, true])
  func orientation(rotation: Int, flips: Bool) throws {
    let file = try Self.image([(600, 60, 160)])
    let rotated = try process(
      file, ProcessingConfiguration(preferredFormat: .png, rotation: rotation, flipHorizontal: flips)
    ).bytes
    let asked = Self.cropping { ($0.rotation, $0.flipHorizontal) = (rotation, flips) }
    let ours = try #require(try process(file, asked).report.faces.first)
    let theirs = try #require(try process(rotated, Self.cropping()).report.faces.first)
    #expect(abs(ours.x - theirs.x) <= 12 && abs(ours.y - theirs.y) <= 12, "\(ours) \(theirs)")
  }

  @Test(
    "results of images that differ in their faces alone are the same",
    arguments: [Region.Effect.fill, .pixelate, .blur])
  func hides(effect: Region.Effect) throws {
    let faces = [(x: 100, y: 100, side: 200), (x: 600, y: 300, side: 120)]
    let file = try Self.image(faces)
    // Other levels in the eyes of the faces: enough to show, and too little for the detector.
    let other = try Self.image(faces) { samples in
      for face in faces {
        for row in 0..<8 {
          for column in 0..<8 {
            let first = 3 * ((face.y + face.side / 2 + row) * Self.width + face.x + face.side / 2 + column)
            samples[first] = 34
          }
        }
      }
    }
    let plain = ProcessingConfiguration(maxWidth: 300, preferredFormat: .png)
    #expect(try process(file, plain).bytes != process(other, plain).bytes)
    for change: (inout ProcessingConfiguration) -> Void in [
      { _ in }, { $0.maxWidth = 100 }, { ($0.maxWidth, $0.preferredFormat) = (200, .webp) },
      { ($0.maxWidth, $0.maxHeight, $0.resizeMode, $0.gravity) = (80, 80, .fill, .faces) },
    ] {
      let (bytes, report) = try process(file, Self.hiding(effect, change))
      #expect(report.faces.count == 2 && report.hiddenRegions.count == 2)
      for (hidden, face) in zip(report.hiddenRegions, report.faces) {
        #expect(hidden.x <= face.x - face.width / 4 && hidden.y <= face.y - face.height / 4)
        #expect(hidden.x + hidden.width >= face.x + face.width * 5 / 4)
      }
      guard effect == .fill else { continue }
      #expect(try process(other, Self.hiding(effect, change)).bytes == bytes)
    }
    let pixels = try Grid(decoding: process(file, Self.hiding(.fill)).bytes)
    for face in faces {
      for (x, y) in [(0, 0), (face.side / 2, face.side / 2), (face.side - 1, face.side - 1)] {
        #expect(pixels.pixel(face.x + x, face.y + y).prefix(3).allSatisfy { $0 == 0 })
      }
    }
  }

  @Test("a face of which another region hides a part is found and hidden as a whole")
  func overlapped() throws {
    let file = try Self.image([(100, 100, 200), (600, 300, 120)])
    let bar = Region(
      area: Crop(unit: .pixels, x: 150, y: 200, width: 100, height: 40), effect: .fill,
      color: Color(red: 200, green: 200, blue: 200))
    let alone = try process(file, Self.hiding()).report
    let both = try process(file, Self.hiding { $0.regions = [bar] + ($0.regions ?? []) }).report
    #expect(alone.faces.count == 2 && both.faces == alone.faces && both.hiddenRegions.count == 3)
    // A crop is not chosen by what is hidden.
    let cropped = try process(file, Self.cropping { $0.regions = [bar] }).report
    #expect(cropped.faces.count == 1)
  }

  @Test("without a face nothing is hidden, with a warning, and the image is not passed through")
  func nothing() throws {
    let file = try Self.image([])
    let report = try process(file, Self.hiding { $0.preferredFormat = nil }).report
    #expect(report.hiddenRegions.isEmpty && report.warnings.map(\.code) == [.facesNotFound] && !report.isPassedThrough)
    #expect(report.warnings.first?.parameters == ["field": "regions"])
  }

  @Test("what cannot be hidden is refused, never shown")
  func refused() throws {
    var generator = SeededGenerator(seed: 3)
    let file = GIFAnimation.random(&generator, frameCount: 4).bytes
    let moving = #expect(throws: PipelineError.self) {
      try process(file, Self.hiding { ($0.maxFrames, $0.preferredFormat) = (0, .gif) })
    }
    #expect(moving?.code == .unservedField && moving?.field == "regions")
    let later = #expect(throws: PipelineError.self) { try process(file, Self.hiding { $0.frameIndex = FrameIndex(1) }) }
    #expect(later?.code == .unservedField && later?.field == "frame_index")
    _ = try process(file, Self.hiding())
    // A plan without a search must not exist.
    let unsearched = #expect(throws: PipelineError.self) {
      var reader = ImageReader(limits: ImageLimits())
      let bytes = Fixture.bytes("photo.png")
      _ = try reader.push(bytes.span.bytes, isLast: true)
      _ = try reader.plan(Self.hiding())
    }
    #expect(unsearched?.code == .internalDefect)
    var inspected = ImageReader(limits: ImageLimits())
    inspected.isInspection = true
    inspected.configurations = [Self.hiding()]
    let bytes = Fixture.bytes("photo.png")
    _ = try inspected.push(bytes.span.bytes, isLast: true)
    let plan = try inspected.plan(Self.hiding())
    #expect(plan.passthrough == .decoded)
  }

  @Test("regions of faces have no area, and there is one at most")
  func invalid() {
    let area = Crop(x: 0, y: 0, width: 5, height: 5)
    for (regions, field) in [
      ([Region(shape: .faces, area: area)], "regions[0].area"),
      ([Region(shape: .faces, area: nil), Region(shape: .faces, area: nil)], "regions"),
      ([Region(area: nil)], "regions[0].area.width"),
    ] {
      let error = #expect(throws: PipelineError.self) { try ProcessingConfiguration(regions: regions).validate() }
      #expect(error?.code == .invalidField && error?.field == field)
    }
  }

  @Test("works on every format, within the planned memory", arguments: Fixture.names)
  func fixtures(name: String) throws {
    let bytes = Fixture.bytes(name)
    for configuration in [Self.cropping(40, 15), Self.hiding { $0.maxWidth = 50 }] {
      var reader = ImageReader(limits: ImageLimits())
      reader.configurations = [configuration]
      #expect(try reader.push(bytes.span.bytes, isLast: true).isComplete)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let (whole, report) = try process(bytes, configuration)
      #expect(report.peakMemoryByteCount <= estimate)
      #expect(try process(bytes, configuration, windowByteCount: 4096).bytes == whole)
    }
  }
}

import ImageCodecs
import ImageKernels
import TestSupport
import Testing

@testable import ImagePipeline

@Suite("Plans with overlays")
struct OverlayPlanTests {
  private typealias Picture = OverlayPicture

  // MARK: Requests

  @Test("keep a result from being passed through")
  func passthrough() throws {
    let image = Fixture.bytes("photo-420.jpg")
    let transparent = Overlay(image: "logo", opacity: 0)
    let result = try process(
      image, ProcessingConfiguration(overlays: [transparent]), auxiliary: try Picture.auxiliary(["logo": Picture.logo]))
    #expect(!result.report.isPassedThrough && result.report.peakMemoryByteCount > 0)
    #expect(try process(image, ProcessingConfiguration(overlays: [])).report.isPassedThrough)
  }

  private static let wrong: [(overlays: [Overlay], field: String, code: PipelineError.Code)] = [
    ([Overlay(image: "logo"), Overlay(image: "lgo")], "overlays[1].image", .invalidField),
    ([Overlay](repeating: Overlay(image: "logo"), count: 9), "overlays", .invalidField),
    ([Overlay(image: "")], "overlays[0].image", .invalidField),
    ([Overlay(image: "logo", scale: 0.1, width: 5)], "overlays[0].scale", .invalidField),
    ([Overlay(image: "logo", unit: .fractions, x: 1.5)], "overlays[0].x", .invalidField),
    ([Overlay(image: "text")], "overlays[0].image", .invalidField),
    ([Overlay(image: "cut")], "overlays[0].image", .invalidField),
    ([Overlay(image: "header")], "overlays[0].image", .invalidField),
    ([Overlay(image: "empty")], "overlays[0].image", .invalidField),
    ([Overlay(image: "thin", scale: 1)], "overlays[0].image", .limitExceeded),
  ]

  @Test("that cannot be drawn are errors that name the field", arguments: wrong.indices)
  func errors(index: Int) throws {
    let (overlays, field, code) = Self.wrong[index]
    let png = try Picture.logo.png
    let files: [String: [UInt8]] = [
      "logo": png, "text": Array("no image".utf8), "cut": Array(png.prefix(png.count / 2)),
      "header": Array(png.prefix(20)), "empty": [], "thin": try Picture.plain(1, 2000, [1, 2, 3]).png,
    ]
    let auxiliary = AuxiliaryImages(files.map { AuxiliaryImage(name: $0, bytes: $1) })
    let image = try Picture.noise(40, 30, channels: 3).png
    let error = #expect(throws: PipelineError.self) {
      try process(image, ProcessingConfiguration(preferredFormat: .png, overlays: overlays), auxiliary: auxiliary)
    }
    #expect(
      error?.code == code && error?.field == field && error?.message.contains(field) == true,
      "\(String(describing: error))")
  }

  @Test("of a rendition fail alone, and are decoded once for those of the same size")
  func renditions() throws {
    let overlay = Overlay(image: "logo", gravity: .northWest)
    let configurations = [
      ProcessingConfiguration(preferredFormat: .png, overlays: [overlay]),
      ProcessingConfiguration(preferredFormat: .png, overlays: [Overlay(image: "none")]),
      ProcessingConfiguration(maxWidth: 20, preferredFormat: .png, overlays: [Overlay(image: "logo", scale: 0.5)]),
    ]
    let image = Picture.noise(40, 30, channels: 3)
    let results = try process(try image.png, configurations, auxiliary: try Picture.auxiliary(["logo": Picture.logo]))
      .results
    var expected = image
    expected.draw(Picture.logo, left: 0, top: 0)
    #expect(Picture.difference(try Picture(decoding: results[0].get().bytes), expected) == 0)
    #expect(throws: PipelineError.self) { try results[1].get() }
    #expect(try Picture(decoding: results[2].get().bytes).width == 20)
  }

  @Test("are drawn on each frame of an animation")
  func animation() throws {
    let frames = (0..<3).map { Picture.noise(24, 20, channels: 4, seed: $0 * 13) }
    let (bytes, _) = try encodedAnimation(
      frames.map(\.samples), durations: [4, 5, 6], width: 24, height: 20, as: .png)
    let configuration = ProcessingConfiguration(
      preferredFormat: .png, maxFrames: 0, overlays: [Overlay(image: "logo", gravity: .southEast)])
    let result = try process(bytes, configuration, auxiliary: try Picture.auxiliary(["logo": Picture.logo]))
    let drawn = try Pixels.decode(result.bytes, frames: (0, 0))
    #expect(drawn.frames.count == 3)
    for (samples, frame) in zip(drawn.frameBytes, frames) {
      var expected = frame
      expected.draw(Picture.logo, left: 15, top: 14)
      let picture = Picture(width: 24, height: 20, channels: 4, samples: samples)
      #expect(Picture.difference(expected, picture) <= 1)
    }
  }

  @Test("are smaller on previews, at the same place")
  func preview() throws {
    let image = try Picture.plain(1200, 600, [0, 0, 255]).png
    let configuration = ProcessingConfiguration(
      overlays: [
        Overlay(image: "logo", gravity: .southEast, x: 100, y: 40),
        Overlay(image: "logo", width: 200, gravity: .northWest),
      ])
    var reader = ImageReader(limits: ImageLimits())
    reader.auxiliary = try Picture.auxiliary(["logo": Picture.plain(400, 200, [255, 0, 0, 255])])
    let consumed = try reader.push(image.span.bytes, isLast: true).consumedByteCount
    let plan = try reader.previewPlan(configuration)
    let route = try reader.takeRoute(plan, cancellation: Cancellation())
    var output: [UInt8] = []
    let isDone = try route.push(image.span.bytes.extracting(consumed..<image.count), isLast: true) { _, bytes in
      bytes.withUnsafeBytes { output.append(contentsOf: $0) }
    }
    #expect(isDone)
    let pixels = try Pixels.decode(output)
    #expect(pixels.layout[0].width == 300 && pixels.layout[0].height == 150)
    // 100x50 at 25 and 10 from the corner, and 50x25 in the other one.
    for (x, y, isRed) in [
      (180, 95, true), (270, 135, true), (170, 120, false), (280, 120, false), (220, 85, false), (220, 145, false),
      (45, 20, true), (55, 20, false), (20, 30, false),
    ] { #expect((pixels.color(x: x, y: y)[0] > 128) == isRed, "\(x), \(y)") }
  }

  @Test("are part of the working set: never less than is used, and at most twice as much")
  func workingSet() throws {
    let files = ["photo-progressive.jpg", "photo-420.jpg", "alpha.png", "photo.png", "deep-alpha.png", "lossless.webp"]
    for name in files {
      let auxiliary = AuxiliaryImages([AuxiliaryImage(name: "logo", bytes: Fixture.bytes(name))])
      for (scale, tile) in [(0.2, false), (1, false), (0.1, true)] {
        let configuration = ProcessingConfiguration(
          maxWidth: 200, compressionQuality: 0.8, preferredFormat: .jpeg,
          overlays: [Overlay(image: "logo", scale: scale, tile: tile)])
        let image = Fixture.bytes("photo-444.jpg")
        var reader = ImageReader(limits: ImageLimits())
        reader.auxiliary = auxiliary
        _ = try reader.push(image.span.bytes, isLast: true)
        let estimate = try reader.plan(configuration).workingSetByteCount
        let peak = try process(image, configuration, auxiliary: auxiliary).report.peakMemoryByteCount
        #expect(peak <= estimate && estimate <= 2 * peak + 64 * 1024, "\(name) \(scale): \(peak), expected \(estimate)")
      }
    }
  }

  @Test(
    "are part of the working set together with what converts the image's colors and hides its regions",
    .enabled(if: ImageFormat.avif.isDecodable))
  func workingSetOfAll() throws {
    let displayP3 = Fixture.bytes("display-p3.icc")
    var other = displayP3
    let entry = try #require(other.indices.dropLast(4).first { other[$0..<$0 + 4].elementsEqual("rXYZ".utf8) })
    other[Int(other[entry + 6]) << 8 + Int(other[entry + 7]) + 8] ^= 0x20  // a red that no standard has
    let auxiliary = AuxiliaryImages([AuxiliaryImage(name: "logo", bytes: Fixture.bytes("photo.avif"))])
    let region = Region(area: Crop(x: 10, y: 10, width: 100, height: 60), effect: .blur)
    for (profile, space) in [(displayP3, ColorSpacePolicy.srgb), (other, .keep)] {
      for regions in [[], [region]] {
        var configuration = ProcessingConfiguration(
          maxWidth: 20, preferredFormat: .png, colorSpace: space, overlays: [Overlay(image: "logo", width: 10)])
        configuration.regions = regions
        let image = Container.jpeg(Fixture.bytes("photo-444.jpg"), adding: Container.profileSegments(profile))
        var reader = ImageReader(limits: ImageLimits())
        reader.auxiliary = auxiliary
        _ = try reader.push(image.span.bytes, isLast: true)
        let estimate = try reader.plan(configuration).workingSetByteCount
        let peak = try process(image, configuration, auxiliary: auxiliary).report.peakMemoryByteCount
        #expect(peak <= estimate && estimate <= 2 * peak, "\(space) \(regions.count): \(peak), expected \(estimate)")
      }
    }
  }

  @Test("count as work, so that a request cannot ask for any number of them")
  func work() throws {
    let overlays = [Overlay](repeating: Overlay(image: "logo", tile: true), count: 8)
    let image = try Picture.noise(400, 300, channels: 3).png
    let configuration = ProcessingConfiguration(preferredFormat: .png, overlays: overlays)
    let auxiliary = try Picture.auxiliary(["logo": Picture.plain(1, 1, [1, 2, 3, 4])])
    #expect(throws: PipelineError.self) {
      try process(image, configuration, limits: ImageLimits(maxWorkPixels: 8 * 400 * 300), auxiliary: auxiliary)
    }
    _ = try process(image, configuration, limits: ImageLimits(maxWorkPixels: 300 * 400 * 300), auxiliary: auxiliary)
  }

  @Test("are shared by images, and replaced when there are too many")
  func cache() throws {
    let byteCount = 9 * 6 * 4 + 1024
    let cache = OverlayCache(maxByteCount: 4 * byteCount)
    let auxiliary = try Picture.auxiliary(["logo": Picture.logo], cache: cache)
    let image = try Picture.noise(40, 30, channels: 3).png
    func result(_ overlay: Overlay) throws -> [UInt8] {
      try process(
        image, ProcessingConfiguration(preferredFormat: .png, overlays: [overlay]), auxiliary: auxiliary
      ).bytes
    }
    let first = try result(Overlay(image: "logo"))
    #expect(cache.byteCount == byteCount)
    #expect(try result(Overlay(image: "logo")) == first && cache.byteCount == byteCount)
    for opacity in [0.1, 0.2, 0.3, 0.4, 0.5] { _ = try result(Overlay(image: "logo", opacity: opacity)) }
    #expect(cache.byteCount == 4 * byteCount)
    _ = try result(Overlay(image: "logo", width: 30))  // more than a quarter
    #expect(cache.byteCount == 4 * byteCount)
    #expect(try result(Overlay(image: "logo")) == first)
  }

  @Test("are read from the command line")
  func text() throws {
    let overlay = try Overlay(
      text:
        "logo.png,scale=0.25,gravity=south-east,unit=fractions,x=0.1,y=-0.2,opacity=0.5,blend=multiply,rotation=90,tile",
      field: "--overlay")
    #expect(
      overlay
        == Overlay(
          image: "logo.png", opacity: 0.5, scale: 0.25, gravity: .southEast, unit: .fractions, x: 0.1, y: -0.2,
          blend: .multiply, rotation: 90, tile: true))
    for wrong in ["logo,size=3", "logo,opacity=2", "logo,opacity", "logo,rotation=45", "", "logo,width=0"] {
      #expect(throws: (any Error).self, "\(wrong)") { try Overlay(text: wrong, field: "--overlay") }
    }
  }
}

import ImageCodecs
import ImageKernels
import TestSupport
import Testing

@testable import ImagePipeline

@Suite("Overlays")
struct OverlayTests {
  private typealias Picture = OverlayPicture

  /// Draws overlays on an image, and decodes the result, a PNG.
  private static func result(
    _ image: Picture, _ overlays: [Overlay], _ pictures: [String: Picture] = ["logo": Picture.logo],
    change: (inout ProcessingConfiguration) -> Void = { _ in }
  ) throws -> Picture {
    var configuration = ProcessingConfiguration(preferredFormat: .png, overlays: overlays)
    change(&configuration)
    let bytes = try process(try image.png, configuration, auxiliary: try Picture.auxiliary(pictures)).bytes
    return try Picture(decoding: bytes)
  }

  // MARK: Place

  private static let places: [(Gravity, Double, Double, left: Int, top: Int)] = [
    (.northWest, 0, 0, 0, 0), (.northWest, 3, 4, 3, 4), (.northEast, 3, 4, 28, 4), (.southEast, 3, 4, 28, 20),
    (.southWest, 0, 0, 0, 24), (.center, 0, 0, 16, 12), (.center, 5, -2, 21, 10), (.east, 1, 2, 30, 14),
    (.north, 0, 1, 16, 1), (.northWest, -4, -2, -4, -2), (.southEast, -5, -3, 36, 27), (.northWest, 100, 0, 100, 0),
    (.northWest, -9, 0, -9, 0),
  ]

  @Test("lie where gravity and offsets say, and end at the edges of the result", arguments: places.indices)
  func place(index: Int) throws {
    let (gravity, x, y, left, top) = Self.places[index]
    var expected = Picture.noise(40, 30, channels: 3)
    let drawn = try Self.result(expected, [Overlay(image: "logo", gravity: gravity, x: x, y: y)])
    expected.draw(Picture.logo, left: left, top: top)
    #expect(Picture.difference(drawn, expected) == 0)
  }

  @Test("lie at fractions of the result")
  func fractions() throws {
    var expected = Picture.noise(40, 30, channels: 3)
    let overlay = Overlay(image: "logo", gravity: .southEast, unit: .fractions, x: 0.1, y: 0.2)
    let drawn = try Self.result(expected, [overlay])
    expected.draw(Picture.logo, left: 40 - 9 - 4, top: 30 - 6 - 6)
    #expect(Picture.difference(drawn, expected) == 0)
  }

  @Test("are tiled over the whole result, from their place on")
  func tiles() throws {
    var expected = Picture.noise(40, 30, channels: 3)
    let drawn = try Self.result(expected, [Overlay(image: "logo", gravity: .northWest, x: 4, y: 20, tile: true)])
    for top in stride(from: 20 - 6 * 4, to: 30, by: 6) {
      for left in stride(from: 4 - 9, to: 40, by: 9) { expected.draw(Picture.logo, left: left, top: top) }
    }
    #expect(Picture.difference(drawn, expected) == 0)
  }

  @Test("are rotated clockwise", arguments: [0, 90, 180, 270])
  func rotation(degrees: Int) throws {
    var expected = Picture.noise(40, 30, channels: 3)
    let drawn = try Self.result(expected, [Overlay(image: "logo", gravity: .northWest, x: 2, y: 1, rotation: degrees)])
    let rotated = (0..<degrees / 90).reduce(Picture.logo) { picture, _ in picture.rotated }
    expected.draw(rotated, left: 2, top: 1)
    #expect(Picture.difference(drawn, expected) == 0)
  }

  private static let sizes: [(Overlay, width: Int, height: Int)] = [
    (Overlay(image: "logo", scale: 0.5), 20, 15), (Overlay(image: "logo", width: 8), 8, 6),
    (Overlay(image: "logo", height: 3), 4, 3), (Overlay(image: "logo", width: 10, height: 2), 10, 2),
    (Overlay(image: "logo"), 12, 9), (Overlay(image: "logo", scale: 0.5, rotation: 90), 20, 27),
    (Overlay(image: "logo", width: 24), 24, 18),
  ]

  @Test("have a size relative to the result, or in pixels", arguments: sizes.indices)
  func size(index: Int) throws {
    let (width, height) = (Self.sizes[index].width, Self.sizes[index].height)
    var overlay = Self.sizes[index].0
    overlay.gravity = .northWest
    let logo = Picture.plain(12, 9, [200, 10, 30, 255])
    var expected = Picture.plain(40, 30, [0, 0, 255])
    let drawn = try Self.result(expected, [overlay], ["logo": logo])
    expected.draw(Picture.plain(width, height, [200, 10, 30, 255]), left: 0, top: 0)
    #expect(Picture.difference(drawn, expected) == 0)
  }

  // MARK: Colors

  @Test("are blended on opaque and on transparent rows", arguments: OverlayBlend.allCases, [3, 4])
  func blending(blend: OverlayBlend, channels: Int) throws {
    for opacity in [1, 0.5, 0.03] {
      var expected = Picture.noise(40, 30, channels: channels)
      let overlay = Overlay(image: "logo", opacity: opacity, gravity: .northWest, x: 7, y: 5, blend: blend)
      let drawn = try Self.result(expected, [overlay])
      expected.draw(Picture.logo, left: 7, top: 5, opacity: opacity, blend: blend)
      #expect(Picture.difference(drawn, expected) == 0, "opacity \(opacity)")
    }
  }

  @Test("are drawn in order")
  func order() throws {
    var expected = Picture.noise(40, 30, channels: 3)
    let names = ["red", "green", "red", "blue"]
    let pictures = [
      "red": Picture.plain(9, 9, [255, 0, 0, 200]), "green": Picture.plain(12, 5, [0, 255, 0, 255]),
      "blue": Picture.plain(5, 12, [0, 0, 255, 90]),
    ]
    let overlays = names.enumerated().map {
      Overlay(image: $1, gravity: .northWest, x: Double($0 * 3), y: Double($0 * 2))
    }
    let drawn = try Self.result(expected, overlays, pictures)
    for (index, name) in names.enumerated() {
      expected.draw(try #require(pictures[name]), left: index * 3, top: index * 2)
    }
    #expect(Picture.difference(drawn, expected) == 0)
  }

  @Test("give gray results color, and are upright on rotated and padded ones")
  func displayed() throws {
    let gray = Picture.noise(40, 30, channels: 1)
    let red = ["logo": Picture.plain(9, 6, [255, 0, 0, 255])]
    let drawn = try Self.result(gray, [Overlay(image: "logo", gravity: .northWest)], red) {
      $0.rotation = 90
      $0.pad = true
      ($0.maxWidth, $0.maxHeight) = (60, 50)
      $0.background = Color(red: 0, green: 255, blue: 0)
    }
    #expect(drawn.width == 60 && drawn.height == 50 && drawn.channels == 3)
    for y in 0..<50 { for x in 0..<60 { #expect((drawn.pixel(x, y) == [255, 0, 0]) == (x < 9 && y < 6)) } }
    #expect(drawn.pixel(12, 0) == [0, 255, 0] && drawn.pixel(30, 25)[0] == drawn.pixel(30, 25)[1])
  }

  @Test("change nothing outside of their place, in any format", arguments: ["photo-420.jpg", "orientation-6.jpg"])
  func outside(name: String) throws {
    let image = Fixture.bytes(name)
    // Color is decoded as for any change of pixels.
    let filters = [Filter(name: "brightness", intensity: 0)]
    let plain = try Picture(
      decoding: process(image, ProcessingConfiguration(preferredFormat: .png, filters: filters)).bytes)
    var expected = plain
    expected.draw(Picture.logo, left: expected.width - 9, top: 0)
    let configuration = ProcessingConfiguration(
      preferredFormat: .png, overlays: [Overlay(image: "logo", gravity: .northEast)])
    let drawn = try process(
      image, configuration, windowByteCount: 1000, auxiliary: try Picture.auxiliary(["logo": Picture.logo]))
    #expect(Picture.difference(try Picture(decoding: drawn.bytes), expected) == 0)
  }

  @Test(
    "are drawn on results of every format", arguments: ImageFormat.allCases.filter { $0.isEncodable && $0.isDecodable })
  func formats(format: ImageFormat) throws {
    let configuration = ProcessingConfiguration(
      compressionQuality: 1, preferredFormat: OutputFormat(rawValue: format.rawValue),
      overlays: [Overlay(image: "logo", width: 64, height: 64, gravity: .northWest)])
    let logo = Picture.plain(8, 8, [250, 20, 20, 255])
    let bytes = try process(
      Picture.plain(160, 120, [20, 20, 250]).png, configuration, auxiliary: try Picture.auxiliary(["logo": logo])
    ).bytes
    let pixels = try Pixels.decode(bytes)
    let (inside, outside) = (pixels.color(x: 20, y: 20), pixels.color(x: 120, y: 90))
    #expect(inside[0] > 200 && inside[2] < 70 && outside[0] < 70 && outside[2] > 200, "\(inside) \(outside)")
  }

  @Test(
    "are drawn on the planes of a JPEG as on its pixels", arguments: [0.8, 1], [(0, 0), (13, 7), (-3, 100), (227, 150)])
  func planes(quality: Double, place: (x: Int, y: Int)) throws {
    let image = Fixture.bytes("photo-420.jpg")
    // Smooth, so that compression changes little.
    var logo = Picture.plain(33, 21, [0, 0, 0, 0])
    for y in 0..<21 { for x in 0..<33 { logo.set(x, y, [UInt8(x * 7), UInt8(y * 12), 60, UInt8(55 + x * 6)]) } }
    let overlay = Overlay(image: "logo", gravity: .northWest, x: Double(place.x), y: Double(place.y))
    func result(_ overlays: [Overlay]) throws -> Picture {
      let configuration = ProcessingConfiguration(
        compressionQuality: quality, preferredFormat: .jpeg, alwaysEncode: true, overlays: overlays)
      return try Picture(
        decoding: process(image, configuration, windowByteCount: 777, auxiliary: try Picture.auxiliary(["logo": logo]))
          .bytes)
    }
    var expected = try result([])
    let (plain, drawn) = (expected, try result([overlay]))
    expected.draw(logo, left: place.x, top: place.y)
    let differences = zip(drawn.samples, expected.samples).map { abs(Int($0) - Int($1)) }
    #expect(Double(differences.reduce(0, +)) / Double(differences.count) < 0.3)
    // Blocks without the overlay are the same.
    for (x, y) in [(0, 0), (239, 0), (0, 159), (239, 159), (120, 60)] {
      let isFar = abs(x - place.x - 16) > 50 || abs(y - place.y - 10) > 44
      if isFar { #expect(drawn.pixel(x, y) == plain.pixel(x, y)) }
    }
  }

  @Test("are converted to the colors of the result")
  func colors() throws {
    let configuration = ProcessingConfiguration(
      preferredFormat: .png, colorSpace: .displayP3, overlays: [Overlay(image: "logo", gravity: .northWest)])
    let red = try Picture.auxiliary(["logo": Picture.plain(9, 6, [255, 0, 0, 255])])
    let bytes = try process(try Picture.plain(40, 30, [0, 0, 255]).png, configuration, auxiliary: red).bytes
    let pixel = try Picture(decoding: bytes).pixel(0, 0)
    // Red of sRGB in Display P3.
    #expect(abs(Int(pixel[0]) - 234) <= 2 && abs(Int(pixel[1]) - 51) <= 3 && abs(Int(pixel[2]) - 35) <= 3, "\(pixel)")
  }
}

import ImageCodecs
import ImageKernels
import ImagePipeline
import TestSupport

/// Pixels of RGB or RGBA.
struct OverlayPicture {
  var width: Int
  var height: Int
  var channels: Int
  var samples: [UInt8]

  /// Noise, in RGBA with all kinds of alpha.
  static func noise(_ width: Int, _ height: Int, channels: Int, seed: Int = 0) -> OverlayPicture {
    let samples = Array(noiseSamples(width * height * channels + seed).dropFirst(seed))
    return OverlayPicture(width: width, height: height, channels: channels, samples: samples)
  }

  /// One color.
  static func plain(_ width: Int, _ height: Int, _ pixel: [UInt8]) -> OverlayPicture {
    let samples = (0..<width * height).flatMap { _ in pixel }
    return OverlayPicture(width: width, height: height, channels: pixel.count, samples: samples)
  }

  init(width: Int, height: Int, channels: Int, samples: [UInt8]) {
    (self.width, self.height, self.channels, self.samples) = (width, height, channels, samples)
  }

  init(decoding bytes: [UInt8]) throws {
    let pixels = try Pixels.decode(bytes)
    let (width, height) = (pixels.layout[0].width, pixels.layout[0].height)
    guard pixels.format == .ycc8 else {
      self.init(width: width, height: height, channels: pixels.format.channelCount, samples: pixels.planes[0])
      return
    }
    let colors = (0..<width * height).flatMap { pixels.color(x: $0 % width, y: $0 / width) }
    self.init(width: width, height: height, channels: 3, samples: colors.map { UInt8($0.rounded()) })
  }

  var png: [UInt8] {
    get throws {
      let format: PixelFormat = channels == 1 ? .gray8 : channels == 3 ? .rgb8 : .rgba8
      return try encodedImage(samples, width: width, height: height, pixelFormat: format)
    }
  }

  func pixel(_ x: Int, _ y: Int) -> [UInt8] {
    Array(samples[(y * width + x) * channels..<(y * width + x + 1) * channels])
  }

  mutating func set(_ x: Int, _ y: Int, _ pixel: [UInt8]) {
    samples.replaceSubrange((y * width + x) * channels..<(y * width + x + 1) * channels, with: pixel)
  }

  /// Turned clockwise by a quarter.
  var rotated: OverlayPicture {
    var rotated = OverlayPicture(width: height, height: width, channels: channels, samples: samples)
    for y in 0..<height { for x in 0..<width { rotated.set(height - 1 - y, x, pixel(x, y)) } }
    return rotated
  }

  /// Draws RGBA by the formulas of W3C Compositing and Blending, rounded to nearest.
  mutating func draw(
    _ overlay: OverlayPicture, left: Int, top: Int, opacity: Double = 1, blend: OverlayBlend = .over
  ) {
    for y in 0..<overlay.height where (0..<height).contains(top + y) {
      for x in 0..<overlay.width where (0..<width).contains(left + x) {
        var over = overlay.pixel(x, y)
        if over.count == 3 { over.append(255) }
        over[3] = UInt8((Double(over[3]) * opacity).rounded())
        set(left + x, top + y, Self.mixed(over, pixel(left + x, top + y), blend))
      }
    }
  }

  private static func mixed(_ over: [UInt8], _ under: [UInt8], _ blend: OverlayBlend) -> [UInt8] {
    let (top, bottom) = (Double(over[3]) / 255, under.count == 4 ? Double(under[3]) / 255 : 1)
    let alpha = top + bottom * (1 - top)
    guard alpha > 0 else { return [UInt8](repeating: 0, count: under.count) }
    let colors = (0..<3).map { channel -> UInt8 in
      let (source, backdrop) = (Double(over[channel]) / 255, Double(under[channel]) / 255)
      let mixed =
        switch blend {
        case .over: source
        case .multiply: source * backdrop
        case .screen: source + backdrop - source * backdrop
        }
      let sum = top * (1 - bottom) * source + top * bottom * mixed + (1 - top) * bottom * backdrop
      return UInt8((sum / alpha * 255 + 1e-9).rounded())
    }
    return under.count == 4 ? colors + [UInt8((alpha * 255).rounded())] : colors
  }
}

extension OverlayPicture {
  /// An overlay with all kinds of alpha.
  static let logo = OverlayPicture.noise(9, 6, channels: 4, seed: 5)

  /// The files of pictures as auxiliary images.
  static func auxiliary(_ pictures: [String: OverlayPicture], cache: OverlayCache? = nil) throws -> AuxiliaryImages {
    AuxiliaryImages(
      try pictures.map { AuxiliaryImage(name: $0, bytes: try $1.png, digest: Array($0.utf8)) }, cache: cache)
  }

  /// The largest difference between two pictures of the same size.
  static func difference(_ one: OverlayPicture, _ other: OverlayPicture) -> Int {
    guard one.width == other.width, one.height == other.height, one.channels == other.channels else { return .max }
    // The color of transparent pixels has no meaning.
    let shown = zip(one.samples, other.samples).enumerated().filter { index, _ in
      one.channels != 4 || index % 4 == 3 || one.samples[index / 4 * 4 + 3] > 0
    }
    return shown.map { abs(Int($1.0) - Int($1.1)) }.max() ?? 0
  }
}

import Foundation
import ImagePipeline

/// The filters in double precision, implemented from their definitions without code of the package.
///
/// Colors are three numbers from 0 to 1. The sources are the W3C Filter Effects Module Level 1 ("Filter functions" and
/// `feColorMatrix`, `feComponentTransfer`, `feGaussianBlur`), the W3C Compositing and Blending Level 1 (`multiply`),
/// and IEC 61966-2-1.
struct FilterReference {
  let filter: Filter

  private func value(_ name: String, _ standard: Double) -> Double { filter.parameters[name] ?? standard }

  /// Returns an image of red, green and blue after the filter, mixed by its intensity and clamped, but not rounded.
  func apply(_ image: [[Double]], width: Int) -> [[Double]] {
    let filtered = formula(image, width: width)
    return zip(image, filtered).map { before, after in
      zip(before, after).map { min(1, max(0, $0 + filter.intensity * ($1 - $0))) }
    }
  }

  private func formula(_ image: [[Double]], width: Int) -> [[Double]] {
    let height = image.count / width
    switch filter.name {
    case "blur": return blurred(image, width: width, deviation: value("radius", 4))
    case "sharpen":
      let soft = blurred(image, width: width, deviation: value("radius", 1))
      return zip(image, soft).map { before, after in
        zip(before, after).map {
          abs($0 - $1) <= value("threshold", 0) ? $0 : $0 + value("amount", 1) * ($0 - $1)
        }
      }
    case "pixelate": return blocks(image, width: width, size: Int(value("size", 8)))
    case "vignette":
      return image.enumerated().map { index, color in
        let (x, y) = (Double(index % width) + 0.5, Double(index / width) + 0.5)
        let (right, down) = (2 * x / Double(width) - 1, 2 * y / Double(height) - 1)
        let distance = ((right * right + down * down) / 2).squareRoot()
        let t = min(1, max(0, (distance - value("radius", 0.5)) / value("softness", 0.5)))
        return color.map { $0 * (1 - t * t * (3 - 2 * t)) }
      }
    default: return image.map(color)
    }
  }

  /// Applies a filter to a single pixel, without clamping.
  private func color(_ c: [Double]) -> [Double] {
    let luminance = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]
    switch filter.name {
    case "grayscale": return [luminance, luminance, luminance]
    case "sepia":
      return [
        0.393 * c[0] + 0.769 * c[1] + 0.189 * c[2], 0.349 * c[0] + 0.686 * c[1] + 0.168 * c[2],
        0.272 * c[0] + 0.534 * c[1] + 0.131 * c[2],
      ]
    case "invert": return c.map { 1 - $0 }
    case "brightness": return c.map { $0 * value("amount", 1.5) }
    case "contrast": return c.map { value("amount", 1.5) * ($0 - 0.5) + 0.5 }
    case "saturation":
      let gray = 0.213 * c[0] + 0.715 * c[1] + 0.072 * c[2]
      return c.map { gray + value("amount", 1.5) * ($0 - gray) }
    case "hue": return hue(c)
    case "gamma": return c.map { value("amplitude", 1) * pow($0, value("exponent", 1 / 2.2)) + value("offset", 0) }
    case "exposure":
      return c.map { x in
        let light = (x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4)) * pow(2, value("stops", 1))
        return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
      }
    case "tint":
      return [c[0] * value("red", 255), c[1] * value("green", 220), c[2] * value("blue", 180)].map { $0 / 255 }
    case "duotone":
      let dark = [value("dark_red", 20), value("dark_green", 30), value("dark_blue", 90)]
      let light = [value("light_red", 255), value("light_green", 220), value("light_blue", 160)]
      return zip(dark, light).map { ($0 * (1 - luminance) + $1 * luminance) / 255 }
    case "threshold": return c.map { _ in luminance >= value("level", 0.5) ? 1 : 0 }
    default: preconditionFailure("no reference for \(filter.name)")
    }
  }

  /// Applies the matrix of `hueRotate` as in the specification: a constant, a cosine and a sine part.
  private func hue(_ c: [Double]) -> [Double] {
    let constant = [[0.213, 0.715, 0.072], [0.213, 0.715, 0.072], [0.213, 0.715, 0.072]]
    let cosine = [[0.787, -0.715, -0.072], [-0.213, 0.285, -0.072], [-0.213, -0.715, 0.928]]
    let sine = [[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]]
    let angle = value("angle", 90) / 180 * Double.pi
    return (0..<3).map { row in
      (0..<3).reduce(0.0) { sum, column in
        sum + c[column] * (constant[row][column] + cos(angle) * cosine[row][column] + sin(angle) * sine[row][column])
      }
    }
  }

  private func blurred(_ image: [[Double]], width: Int, deviation: Double) -> [[Double]] {
    let height = image.count / width
    let reach = Int((5 * deviation).rounded(.up))
    let raw = (-reach...reach).map { exp(-Double($0 * $0) / (2 * deviation * deviation)) }
    let sum = raw.reduce(0, +)
    func pass(_ image: [[Double]], _ place: (_ index: Int, _ offset: Int) -> Int) -> [[Double]] {
      image.indices.map { index in
        var color = [0.0, 0.0, 0.0]
        for (tap, weight) in raw.enumerated() {
          let other = image[place(index, tap - reach)]
          for channel in 0..<3 { color[channel] += weight / sum * other[channel] }
        }
        return color
      }
    }
    let across = pass(image) { index, offset in
      index / width * width + min(width - 1, max(0, index % width + offset))
    }
    return pass(across) { index, offset in min(height - 1, max(0, index / width + offset)) * width + index % width }
  }

  private func blocks(_ image: [[Double]], width: Int, size: Int) -> [[Double]] {
    var members: [[Int]: [Int]] = [:]
    for index in image.indices { members[[index % width / size, index / width / size], default: []].append(index) }
    var result = image
    for indices in members.values {
      let mean = (0..<3).map { channel in
        indices.reduce(0) { $0 + image[$1][channel] } / Double(indices.count)
      }
      for index in indices { result[index] = mean }
    }
    return result
  }
}

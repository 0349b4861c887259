import ImageCodecs
import TestSupport
import Testing

/// An image's transforms apply to its alpha too, whatever the alpha's own properties are.
@Suite("Alpha of AVIF", .enabled(if: ImageFormat.avif.isDecodable))
struct HEIFAlphaTests {
  private static let coded = HEIFFile.Coded(fixture: "photo.avif")
  private static let sizeless = HEIFFile.Coded(fixture: "photo.avif", without: ["ispe"])
  private static let transforms: [[HEIFFile.Box]] = [
    [], [.rotation(quarters: 1)], [.rotation(quarters: 2)], [.mirror(axis: 0)], [.mirror(axis: 1)],
    [.crop(width: 20, height: 10)], [.crop(width: 20, height: 10), .rotation(quarters: 3), .mirror(axis: 1)],
  ]

  /// Decodes an image that uses its own luma as alpha.
  private static func decode(
    _ transforms: [HEIFFile.Box], alpha: HEIFFile.Coded, alphaTransforms: [HEIFFile.Box], isEssential: Bool = true
  ) throws -> Pixels {
    var file = HEIFFile(brand: "avif")
    let image = file.add(coded, properties: transforms, isEssential: isEssential)
    let part = file.add(alpha, properties: [.alpha] + alphaTransforms, isEssential: isEssential)
    file.refer("auxl", from: part, to: [image])
    return try Pixels.decode(file.bytes)
  }

  @Test("is transformed as its image is", arguments: transforms.indices)
  func own(index: Int) throws {
    let transforms = Self.transforms[index]
    let whole = try Self.decode(transforms, alpha: Self.coded, alphaTransforms: transforms)
    #expect(whole.format == .rgba8)
    for alpha in [Self.coded, Self.sizeless] {
      for alphaTransforms in Self.transforms {
        let pixels = try Self.decode(transforms, alpha: alpha, alphaTransforms: alphaTransforms)
        #expect(pixels.layout == whole.layout && pixels.format == .rgba8)
        #expect(pixels.planes == whole.planes)
      }
    }
  }

  @Test("transforms apply even if they are not marked as essential", arguments: transforms.indices)
  func optional(index: Int) throws {
    let transforms = Self.transforms[index]
    let whole = try Self.decode(transforms, alpha: Self.coded, alphaTransforms: transforms)
    for alphaTransforms in [transforms, []] {
      let pixels = try Self.decode(
        transforms, alpha: Self.coded, alphaTransforms: alphaTransforms, isEssential: false)
      #expect(pixels.layout == whole.layout && pixels.planes == whole.planes)
    }
  }

  @Test("of another size is left to libheif")
  func otherSize() throws {
    var file = HEIFFile(brand: "avif")
    let image = file.add(Self.coded)
    file.refer("auxl", from: file.add(Self.sizeless, properties: [.size(31, 22), .alpha]), to: [image])
    #expect(try Pixels.decode(file.bytes).format == .rgb8)
  }
}

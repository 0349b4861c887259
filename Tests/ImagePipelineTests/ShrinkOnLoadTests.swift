import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Data that decoders skip for images that are strongly reduced, and the compensation for it.
@Suite("Shrinking on load")
struct ShrinkOnLoadTests {
  private static let side = 1600

  /// Returns a PNM with a wave of brightness across the image; `period` is in pixels.
  private static func wave(period: Double) -> [UInt8] {
    let row = (0..<side).map { UInt8((128 + 80 * cos(2 * .pi * Double($0) / period)).rounded()) }
    return Array("P5\n\(side) 64\n255\n".utf8) + (0..<64).flatMap { _ in row }
  }

  /// Returns the standard deviation of the middle row's samples.
  private static func contrast(_ png: [UInt8]) throws -> Double {
    let pixels = try Pixels.decode(png)
    let row = (0..<pixels.layout[0].width).map { pixels.color(x: $0, y: pixels.layout[0].height / 2)[0] }
    let mean = row.reduce(0, +) / Double(row.count)
    return (row.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(row.count)).squareRoot()
  }

  @Test("at 1/8, fine detail has the same contrast as in a full decode", arguments: [46.0, 53, 80, 160])
  func contrastAtAnEighth(period: Double) throws {
    let source = Self.wave(period: period)
    let jpeg = try process(source, ProcessingConfiguration(compressionQuality: 1, preferredFormat: .jpeg)).bytes
    // At full quality, scale 1/8 is used if it is still 2.5 times the result.
    let small = ProcessingConfiguration(maxWidth: Self.side / 20, preferredFormat: .png)
    let (reduced, whole) = (try process(jpeg, small).bytes, try process(source, small).bytes)
    let ratio = try Self.contrast(reduced) / Self.contrast(whole)
    #expect((0.985...1.03).contains(ratio))
  }

  @Test("a WebP's block edges are smoothed unless all results are at most a quarter of the image")
  func blocks() throws {
    let bytes = Fixture.bytes("photo.webp")
    let width = Fixture.named("photo.webp").width
    func result(_ reduction: Int, beside others: [ProcessingConfiguration] = []) throws -> [UInt8] {
      let small = ProcessingConfiguration(
        maxWidth: width / reduction, compressionQuality: 0.8, preferredFormat: .png)
      return try process(bytes, [small] + others).results[0].get().bytes
    }
    let whole = ProcessingConfiguration(preferredFormat: .png)
    #expect(try result(5) != result(5, beside: [whole]))
    #expect(try result(3) == result(3, beside: [whole]))
  }
}

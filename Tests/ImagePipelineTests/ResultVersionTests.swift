import Foundation
import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

/// Compares results with a table of hashes for the version that produced them.
///
/// The hashes cover the decoded samples of JPEG and PNG results, not their bytes: compression by the libraries differs
/// by version, while decoders, kernels and the transforms of both formats give the same samples everywhere.
/// No row needs an optional library.
@Suite("Result version")
struct ResultVersionTests {
  private static let fixtures = [
    "photo-420.jpg", "photo-progressive.jpg", "photo-gray.jpg", "orientation-6.jpg", "alpha.png", "gray-16.png",
    "photo.bmp", "rle.tga", "text.ppm",
  ]

  private static let configurations: [(name: String, ProcessingConfiguration)] = [
    ("png", ProcessingConfiguration(preferredFormat: .png, alwaysEncode: true)),
    (
      "thumbnail", ProcessingConfiguration(maxWidth: 50, maxHeight: 50, compressionQuality: 0.8, preferredFormat: .jpeg)
    ),
    ("fine", ProcessingConfiguration(maxWidth: 31, compressionQuality: 1, preferredFormat: .jpeg)),
    (
      "fill",
      ProcessingConfiguration(
        maxWidth: 24, maxHeight: 40, preferredFormat: .png, resizeMode: .fill, allowUpscale: true, gravity: .northWest)
    ),
    (
      "stretch",
      ProcessingConfiguration(
        maxWidth: 70, maxHeight: 20, preferredFormat: .png, resizeMode: .stretch, flipVertical: true)
    ),
    (
      "pad",
      ProcessingConfiguration(
        maxWidth: 40, maxHeight: 40, preferredFormat: .jpeg,
        crop: Crop(unit: .fractions, x: 0.1, y: 0, width: 0.5, height: 0.9),
        pad: true, rotation: 90, background: Color(red: 1, green: 90, blue: 200))
    ),
    (
      "filters",
      ProcessingConfiguration(
        maxWidth: 40, preferredFormat: .png,
        filters: [
          Filter(name: "blur", intensity: 0.7, parameters: ["radius": 2]), Filter(name: "saturation", intensity: 0.5),
          Filter(name: "sepia", intensity: 0.3),
        ])
    ),
    (
      "bytes",
      ProcessingConfiguration(maxWidth: 60, preferredFormat: .jpeg, maxBytes: 1500, allowSmallerDimensions: true)
    ),
  ]

  private static let table = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("ResultHashes.txt")

  private static func rows() throws -> [String] {
    try configurations.flatMap { name, configuration in
      try fixtures.map { fixture in
        let pixels = try Pixels.decode(try process(Fixture.bytes(fixture), configuration).bytes)
        let sizes = pixels.layout.map { "\($0.width)x\($0.height)" }.joined(separator: "+")
        return "\(name) \(fixture) \(sizes) \(hash(pixels.planes.flatMap(\.self)))"
      }
    }
  }

  /// Returns the 64-bit FNV-1a hash.
  private static func hash(_ bytes: [UInt8]) -> String {
    let hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    return String(hash, radix: 16)
  }

  @Test("changed results have another version")
  func version() throws {
    let rows = try Self.rows()
    let current = (["version \(ResultVersion.current)"] + rows).joined(separator: "\n") + "\n"
    if ProcessInfo.processInfo.environment["WRITE_RESULT_HASHES"] != nil {
      try Data(current.utf8).write(to: Self.table)
    }
    let lines = try String(contentsOf: Self.table, encoding: .utf8).split(separator: "\n").map(String.init)
    guard lines.first == "version \(ResultVersion.current)" else {
      Issue.record("the table is of \(lines.first ?? "nothing"); write it anew with WRITE_RESULT_HASHES=1")
      return
    }
    let changed = Set(rows).symmetricDifference(lines.dropFirst())
    #expect(
      changed.isEmpty,
      "Results changed: increase ResultVersion.current, then write the table anew with WRITE_RESULT_HASHES=1")
  }
}

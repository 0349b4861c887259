import Foundation
import ImageCodecs
import ImageKernels
import TestSupport
import Testing

@Suite("Cascades")
struct FaceCascadeTests {
  /// Replacements that damage the detector's text, and the reasons.
  private static let damages: [(old: String, new: String, reason: String)] = [
    ("HAAR", "LBP", "its features are not of the type HAAR"),
    ("<width>20", "<width>2", "the sides of its window are not 8 to 64"),
    (
      "<width>20", "<width>20000000000000000000000000000000000",
      "an element has too many numbers, or one that cannot be read"
    ),
    ("<tilted>0", "<tilted>1", "it has tilted features, which are not supported"),
    ("0 -1 0 -1.6e+00", "0 -1 9 -1.6e+00", "a node has no feature of two or three rectangles"),
    ("0 -1 0 -1.6e+00", "0 -1 -1 -1.6e+00", "a node has no feature"),
    ("0 -1 0 -1.6e+00", "0 -1 0", "a tree is out of place, or does not have one or two nodes in their usual order"),
    (
      "0 1 1 -5.0e-01", "1 1 1 -5.0e-01",
      "a tree is out of place, or does not have one or two nodes in their usual order"
    ),
    ("1. -1.</leafValues>", "1.</leafValues>", "leaves are out of place, or not one more than nodes"),
    (
      "<leafValues>1. -1.</leafValues>", "",
      "a tree is out of place, or does not have one or two nodes in their usual order"
    ),
    ("5 5 10 10 4.", "5 5 10 16 4.", "a feature does not have two or three weighted rectangles in the window"),
    ("5 5 10 10 4.", "-1 5 10 10 4.", "a feature does not have two or three weighted rectangles in the window"),
    ("5 5 10 10 4.", "5 5 10 10 nan", "an element has too many numbers, or one that cannot be read"),
    ("</opencv_storage>", "<opencv", "it ends in a tag"),
    ("<stages>", "<stages><_><stageThreshold>1</stageThreshold></_>", "a stage has no trees"),
  ]

  @Test("a text that is no cascade is an error with its reason", arguments: damages.indices)
  func damaged(index: Int) throws {
    let damage = Self.damages[index]
    #expect(SquareFaces.cascade.contains(damage.old))
    let range = try #require(SquareFaces.cascade.firstRange(of: damage.old))
    let text = SquareFaces.cascade.replacingCharacters(in: range, with: damage.new)
    let error = #expect(throws: FaceModelError.self) { try FaceModel(bytes: Array(text.utf8)) }
    #expect(error?.reason == damage.reason)
  }

  @Test("a text that ends early is an error")
  func truncated() throws {
    let text = SquareFaces.cascade
    let end = text.utf8.count - "</features>".utf8.count
    for count in stride(from: 0, to: end - 150, by: 7) {
      #expect(throws: FaceModelError.self) { try FaceModel(bytes: Array(text.utf8.prefix(count))) }
    }
  }

  @Test("texts that differ have other identities")
  func identity() throws {
    let one = try FaceModel(bytes: Array(SquareFaces.cascade.utf8))
    #expect(one.identity == (try FaceModel(bytes: Array(SquareFaces.cascade.utf8))).identity)
    #expect(one.identity != (try FaceModel(bytes: Array((SquareFaces.cascade + " ").utf8))).identity)
  }

  @Test("finds faces of several sizes, whatever the portions of rows are", arguments: [1, 7, 240])
  func finds(rowCount: Int) throws {
    let cascade = try FaceModel(bytes: Array(SquareFaces.cascade.utf8))
    let (width, height) = (900, 600)
    let faces = [(x: 500, y: 100, side: 300), (x: 40, y: 50, side: 120), (x: 150, y: 400, side: 80)]
    let samples = SquareFaces.samples(width: width, height: height, faces)
    let budget = ImageBudget(limit: 1 << 26)
    let finder = try FaceFinder(width: width, height: height, of: .rgb8, model: cascade, budget: budget)
    let buffer = try RowBuffer(rowByteCount: 3 * width, rowCount: height, budget: budget)
    samples.withUnsafeBytes { bytes in
      if let base = bytes.baseAddress { buffer.unsafeRow(0).copyMemory(from: base, byteCount: bytes.count) }
    }
    for portion in buffer.rows(count: height).portions(of: rowCount) { finder.push(portion) }
    let found = try finder.faces(.up)
    #expect(found.count == faces.count)
    for (face, expected) in zip(found, faces) {
      #expect(abs(face.x * Double(width) - Double(expected.x)) < 0.15 * Double(expected.side), "\(face)")
      #expect(abs(face.y * Double(height) - Double(expected.y)) < 0.15 * Double(expected.side), "\(face)")
      #expect(abs(face.width * Double(width) / Double(expected.side) - 1) < 0.2, "\(face)")
    }
    let mirrored = try finder.faces(.mirrored)
    #expect(mirrored.count == faces.count)
    #expect(abs(mirrored[0].x + mirrored[0].width + found[0].x - 1) < 0.02)
    #expect(throws: CodecError.self) {
      try FaceFinder(
        width: width, height: height, of: .rgb8, model: cascade, budget: ImageBudget(limit: 1000))
    }
  }
}

import CPixels
import Foundation
import Testing

@Suite("Faces by each instruction set")
struct FacesTests {
  private static let (width, height) = (240, 170)

  /// A detector of dark squares in bright ones.
  private static func cascade() throws -> OpaquePointer {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fuzz/seeds/squares.cascade")
    let text = try String(contentsOf: file, encoding: .utf8)
    var reason: UnsafePointer<CChar>?
    return try #require(cpixels_cascade_create(text, text.utf8.count, &reason))
  }

  /// Rectangles of any size and level, of which some are in the middle of others.
  private static func image(seed: UInt64) -> [UInt8] {
    var state = seed
    func next(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }
    var samples = (0..<width * height).map { UInt8(120 + $0 % 7) }
    for _ in 0..<12 {
      let side = 16 + 4 * next(20)
      let (x, y) = (next(width - side), next(height - side))
      let (outer, inner) = (UInt8(150 + next(100)), UInt8(next(100)))
      for row in 0..<side {
        for column in 0..<side {
          let isInner = [row, column].allSatisfy { $0 >= side / 4 && $0 < side - side / 4 }
          samples[(y + row) * width + x + column] = isInner ? inner : outer
        }
      }
    }
    return samples
  }

  private static func faces(_ samples: [UInt8], _ cascade: OpaquePointer, _ isa: cpixels_isa) -> [[Float]] {
    let workspace = UnsafeMutableRawPointer.allocate(
      byteCount: cpixels_faces_workspace(UInt32(width), UInt32(height)), alignment: 64)
    defer { workspace.deallocate() }
    var found = [cpixels_face](repeating: cpixels_face(), count: 50)
    let count = cpixels_faces_find(
      cascade, samples, UInt32(width), UInt32(height), workspace, isa, &found, found.count)
    return found[..<count].map { [$0.x, $0.y, $0.width, $0.height] }
  }

  @Test("all instruction sets find what the scalar version finds", arguments: 0..<20 as Range<UInt64>)
  func same(seed: UInt64) throws {
    let cascade = try Self.cascade()
    defer { cpixels_cascade_destroy(cascade) }
    let samples = Self.image(seed: seed)
    let expected = Self.faces(samples, cascade, CPIXELS_ISA_SCALAR)
    #expect(!expected.isEmpty)
    for isa in [CPIXELS_ISA_BEST, CPIXELS_ISA_AVX2] where cpixels_isa_is_available(isa) {
      #expect(Self.faces(samples, cascade, isa) == expected)
    }
  }
}

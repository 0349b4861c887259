import CPixels
import Foundation
import Testing

@Suite("Networks by each instruction set")
struct NetworkTests {
  private static let maxSide = Int(CPIXELS_NETWORK_MAX_SIDE)

  /// A network that takes bright spots for faces.
  private static func network() throws -> OpaquePointer {
    let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fuzz/seeds/spots.network")
    let bytes = try [UInt8](Data(contentsOf: url))
    var reason: UnsafePointer<CChar>?
    return try #require(cpixels_network_create(bytes, bytes.count, &reason))
  }

  /// A dark image with a bright square.
  private static func image(width: Int, height: Int) -> [UInt8] {
    (0..<width * height).flatMap { index in
      let (x, y) = (index % width, index / width)
      let isBright = (width / 3..<width / 3 + 30).contains(x) && (height / 4..<height / 4 + 26).contains(y)
      return isBright ? [250, 240, 230] : [UInt8(50 + index % 11), 60, UInt8(40 + y % 9)] as [UInt8]
    }
  }

  private static func faces(
    _ network: OpaquePointer, width: Int, height: Int, _ isa: cpixels_isa, maxCount: Int = 50
  ) -> [[Float]] {
    let samples = image(width: width, height: height)
    let byteCount = cpixels_network_workspace(network, UInt32(width), UInt32(height))
    let workspace = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 64)
    defer { workspace.deallocate() }
    // What the memory contained before makes no difference.
    workspace.initializeMemory(as: UInt8.self, repeating: 0xff, count: byteCount)
    var found = [cpixels_face](repeating: cpixels_face(), count: maxCount)
    let count = cpixels_network_find(
      network, samples, UInt32(width), UInt32(height), workspace, isa, &found, maxCount)
    return found[..<count].map { [$0.x, $0.y, $0.width, $0.height] }
  }

  @Test(
    "all instruction sets find what the scalar version finds, up to rounding",
    arguments: [(224, 224), (224, 149), (97, 224), (64, 64), (45, 33)])
  func same(width: Int, height: Int) throws {
    let network = try Self.network()
    defer { cpixels_network_destroy(network) }
    let expected = Self.faces(network, width: width, height: height, CPIXELS_ISA_SCALAR)
    #expect(!expected.isEmpty)
    for isa in [CPIXELS_ISA_BEST, CPIXELS_ISA_AVX2, CPIXELS_ISA_NEON] where cpixels_isa_is_available(isa) {
      let found = Self.faces(network, width: width, height: height, isa)
      #expect(found.count == expected.count)
      for (edge, other) in zip(found.joined(), expected.joined()) { #expect(abs(edge - other) < 0.01) }
    }
  }

  @Test("stores as many faces as there is room for, and searches no image that is too large or empty")
  func limits() throws {
    let network = try Self.network()
    defer { cpixels_network_destroy(network) }
    #expect(Self.faces(network, width: 200, height: 160, CPIXELS_ISA_BEST).count > 1)
    #expect(Self.faces(network, width: 200, height: 160, CPIXELS_ISA_BEST, maxCount: 1).count == 1)
    #expect(Self.faces(network, width: Self.maxSide + 1, height: 100, CPIXELS_ISA_BEST).isEmpty)
    #expect(Self.faces(network, width: 0, height: 100, CPIXELS_ISA_BEST).isEmpty)
  }

  @Test("converts gray, color and transparent pixels")
  func colors() {
    var rgb = [UInt8](repeating: 1, count: 6)
    cpixels_network_rgb([7, 200], 2, 1, &rgb)
    #expect(rgb == [7, 7, 7, 200, 200, 200])
    cpixels_network_rgb([1, 2, 3, 4, 5, 6], 2, 3, &rgb)
    #expect(rgb == [1, 2, 3, 4, 5, 6])
    cpixels_network_rgb([9, 9, 9, 0, 10, 20, 30, 255], 2, 4, &rgb)
    #expect(rgb == [255, 255, 255, 10, 20, 30])
  }
}

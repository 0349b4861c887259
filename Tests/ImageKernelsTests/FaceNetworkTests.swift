import ImageCodecs
import ImageKernels
import TestSupport
import Testing

@Suite("Networks that find faces")
struct FaceNetworkTests {
  private static let (width, height) = (190, 140)

  /// Bright spots, and the faces that TensorFlow Lite finds: left, top, width and height in pixels.
  private static let references: [(spots: [(x: Int, y: Int, side: Int)], faces: [[Double]])] = [
    (
      [(40, 30, 36)],
      [
        [54.934, 41.269, 37.405, 34.753], [41.301, 35.146, 36.544, 34.775], [30.442, 51.279, 36.964, 33.451],
        [53.365, 22.419, 36.109, 34.236], [30.483, 19.298, 36.939, 33.423],
      ]
    ),
    (
      [(0, 0, 30), (100, 60, 44), (150, 100, 24)],
      [
        [115.274, 82.084, 37.155, 34.384], [103.604, 67.339, 36.564, 34.811], [147.932, 99.034, 36.592, 34.604],
        [119.986, 58.117, 36.765, 34.426], [0.303, 1.553, 36.544, 34.621], [87.492, 75.296, 36.726, 34.104],
        [94.462, 91.288, 36.954, 33.436], [126.466, 75.29, 36.949, 33.432], [95.054, 50.201, 35.158, 34.475],
        [10.712, 0.0, 36.891, 25.41], [0.0, 9.949, 13.57, 22.767],
      ]
    ),
    ([], []),
  ]

  private static func finder(
    _ spots: [(x: Int, y: Int, side: Int)], scale: Int = 1, limit: Int = 1 << 26
  ) throws -> FaceFinder {
    let (width, height) = (width * scale, height * scale)
    let samples = SpotFaces.samples(
      width: width, height: height, spots.map { ($0.x * scale, $0.y * scale, $0.side * scale) })
    let buffer = try RowBuffer(rowByteCount: 3 * width, rowCount: height, budget: ImageBudget(limit: 1 << 26))
    samples.withUnsafeBytes { bytes in
      if let base = bytes.baseAddress { buffer.unsafeRow(0).copyMemory(from: base, byteCount: bytes.count) }
    }
    let finder = try FaceFinder(
      width: width, height: height, of: .rgb8, model: FaceModel(bytes: SpotFaces.network),
      budget: ImageBudget(limit: limit))
    finder.push(buffer.rows(count: height))
    return finder
  }

  @Test("finds what TensorFlow Lite finds", arguments: references.indices)
  func reference(index: Int) throws {
    let reference = Self.references[index]
    let found = try Self.finder(reference.spots).faces(.up)
    #expect(found.count == reference.faces.count)
    for (face, expected) in zip(found, reference.faces) {
      let edges = [
        face.x * Double(Self.width), face.y * Double(Self.height), face.width * Double(Self.width),
        face.height * Double(Self.height),
      ]
      for (edge, other) in zip(edges, expected) { #expect(abs(edge - other) < 0.02, "\(edges)") }
    }
  }

  @Test("finds faces in larger images, and as they are displayed")
  func sizes() throws {
    let spots = [(x: 60, y: 40, side: 30)]
    let large = try Self.finder(spots, scale: 4)
    let found = try large.faces(.up)
    func isOnSpot(_ face: FoundFace, mirrored: Bool = false) -> Bool {
      let x = (face.x + face.width / 2) * Double(Self.width)
      let y = (face.y + face.height / 2) * Double(Self.height)
      return abs((mirrored ? Double(Self.width) - x : x) - 75) < 30 && abs(y - 55) < 30
    }
    #expect(!found.isEmpty && found.allSatisfy { isOnSpot($0) })
    let mirrored = try large.faces(.mirrored)
    #expect(!mirrored.isEmpty && mirrored.allSatisfy { isOnSpot($0, mirrored: true) })
  }

  @Test("the memory of a search is part of the image's budget")
  func budget() throws {
    let finder = try Self.finder([(60, 40, 30)], limit: 600_000)
    #expect(throws: CodecError.self) { try finder.faces(.up) }
  }

  @Test("a file that ends early is an error, and damaged ones are an error or a network")
  func damaged() throws {
    let bytes = SpotFaces.network
    for count in stride(from: 0, to: bytes.count - 64, by: 61) {
      #expect(throws: FaceModelError.self) { try FaceModel(bytes: Array(bytes.prefix(count))) }
    }
    var errorCount = 0
    for index in stride(from: 8, to: bytes.count, by: 7) {
      var damaged = bytes
      damaged[index] ^= 0xff
      do { _ = try FaceModel(bytes: damaged) } catch { errorCount += 1 }
    }
    #expect(errorCount > 100)
    let empty: [UInt8] = [8, 0, 0, 0] + Array("TFL3".utf8) + [0, 0, 0, 0]
    let error = #expect(throws: FaceModelError.self) { try FaceModel(bytes: empty) }
    #expect(error?.reason == "it is not one graph")
  }

  @Test("a network has an identity, and searches smaller images than a cascade")
  func identity() throws {
    let model = try FaceModel(bytes: SpotFaces.network)
    #expect(model.identity == (try FaceModel(bytes: SpotFaces.network)).identity && model.identity != 0)
    #expect(model.maxSide == 224)
    #expect(try FaceModel(bytes: Array(SquareFaces.cascade.utf8)).maxSide == 320)
  }
}

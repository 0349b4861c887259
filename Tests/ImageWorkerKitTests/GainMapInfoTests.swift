import ImageWorkerKit
import TestSupport
import Testing

@Suite("Gain maps of ImageWorkerKit")
struct GainMapInfoTests {
  @Test(
    "an inspection describes the map of a whole file, and a report has its size", arguments: GainMapImage.List.allCases)
  func listed(list: GainMapImage.List) async throws {
    let image = Container.jpeg(
      Fixture.bytes("photo-420.jpg"), adding: [(0xE1, Array("Exif\0\0".utf8) + Container.exif(orientation: 6))])
    var file = GainMapImage(image: image, map: Fixture.bytes("photo-gray.jpg"), styles: [.iso])
    file.lists = [list]
    let processor = ImageProcessor()
    let own = try processor.inspect(file.map)
    let info = try processor.inspect(file.bytes)
    let map = try #require(info.gainMap)
    #expect(map.kind == "iso" && map.description == "iso \(own.height)x\(own.width)")
    #expect(map.width == own.height && map.height == own.width)
    #expect(abs((map.headroom ?? 0) - 5.657) < 0.001)
    let beginning = try processor.inspect(Array(file.bytes.prefix(file.imageByteCount)))
    #expect(own.gainMap == nil && beginning.gainMap == nil && beginning.width == info.width)

    var configuration = ProcessingConfiguration()
    configuration.maxWidth = 40
    #expect(try await processor.process(file.bytes, as: configuration).report.gainMapByteCount == 0)
    try configuration.set("gain_map", to: "keep")
    let result = try await processor.process(file.bytes, as: configuration)
    #expect(result.report.gainMapByteCount == UInt64(try #require(GainMapImage.parts(of: result.bytes)).map.count))
  }
}

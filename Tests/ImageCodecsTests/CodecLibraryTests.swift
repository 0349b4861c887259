import ImageCodecs
import Testing

@Suite("CodecLibrary")
struct CodecLibraryTests {
  @Test("each linked library has a name and a version")
  func all() throws {
    let libraries = CodecLibrary.all
    #expect(Set(libraries.map(\.name)).count == libraries.count)
    #expect(Set(libraries.map(\.name)).isSuperset(of: ["libjpeg-turbo", "zlib", "libwebp"]))
    for library in libraries {
      let parts = library.version.split(separator: ".").compactMap { Int($0) }
      #expect(parts.count == 3 && parts[0] + parts[1] > 0 && parts.allSatisfy { $0 < 1000 }, "\(library)")
    }
  }

  @Test("libraries of optional formats are listed if the format is built in")
  func optional() {
    let names = Set(CodecLibrary.all.map(\.name))
    for (format, name) in [(ImageFormat.tiff, "libtiff"), (.heic, "libheif"), (.jxl, "libjxl")] {
      #expect(names.contains(name) == format.isDecodable, "\(name)")
    }
  }
}

import Testing

@testable import ImageCodecs

@Suite("XMP of gain maps")
struct GainMapXMPTests {
  private static func packet(_ attributes: String) -> [UInt8] {
    Array(
      """
      <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
      <rdf:Description xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" xmlns:z="u" z:a="1"\(attributes)/></rdf:RDF></x:xmpmeta>
      """.utf8)
  }

  @Test("cleaned of other properties, it is smaller")
  func cleaned() throws {
    let packet = Self.packet(" hdrgm:GainMapMax=\"2\"")
    let cleaned = try #require(GainMapXMP.cleaned(packet))
    #expect(cleaned.count < packet.count && !cleaned.contains(text: "z:a") && cleaned.contains(text: "GainMapMax"))
  }

  @Test("it is left out where attributes lack their spaces, and it would grow")
  func growth() {
    let packet = Self.packet(" " + String(repeating: "hdrgm:GainMapMax=\"2\"", count: 100))
    #expect(GainMapXMP.cleaned(packet) == nil)
  }
}

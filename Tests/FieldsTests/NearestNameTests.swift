import Fields
import Testing

/// The name that a misspelled one was meant to be.
@Suite("Nearest name")
struct NearestNameTests {
  private static let names = ["sepia", "blur", "grayscale", "hue"]

  @Test(
    "a name of few wrong letters has a suggestion",
    arguments: [("sepa", "sepia"), ("Sepia", "sepia"), ("greyscal", "grayscale"), ("hu", "hue")])
  func near(text: String, name: String) {
    #expect(NearestName.of(text, in: Self.names) == name)
    #expect(NearestName.question(text, in: Self.names) == "; did you mean \(name)?")
  }

  @Test("a name that is like none has no suggestion", arguments: ["bogus", "", "watermark"])
  func far(text: String) {
    #expect(NearestName.of(text, in: Self.names) == nil)
    #expect(NearestName.question(text, in: Self.names) == "")
  }
}

import GRPCCore
import Testing

@testable import WorkerOperations

@Suite("MetadataExtractor")
struct MetadataExtractorTests {
  @Test("joins the values of one key into a list, in their order")
  func values() {
    var metadata: Metadata = ["traceparent": "00-a-b-01"]
    metadata.addString("x=1", forKey: "tracestate")
    metadata.addString("y=2", forKey: "tracestate")
    let extractor = MetadataExtractor()
    #expect(extractor.extract(key: "traceparent", from: metadata) == "00-a-b-01")
    #expect(extractor.extract(key: "tracestate", from: metadata) == "x=1,y=2")
    #expect(extractor.extract(key: "baggage", from: metadata) == nil)
  }
}

import HTTPTypes
import HummingbirdCore
import NIOCore
import Testing

@testable import WorkerPlayground

@Suite("Request gate")
struct RequestGateTests {
  private func request(
    _ method: HTTPRequest.Method = .get, host: String?, path: String = "/api/state", origin: String? = nil,
    site: String? = nil
  ) throws -> Request {
    var headers = HTTPFields()
    headers[.origin] = origin
    headers[try #require(HTTPField.Name("Sec-Fetch-Site"))] = site
    let head = HTTPRequest(method: method, scheme: "http", authority: host, path: path, headerFields: headers)
    return Request(head: head, body: RequestBody(buffer: ByteBuffer()))
  }

  @Test(
    "serves names of this machine, on any port",
    arguments: ["localhost:8080", "127.0.0.1:8080", "127.1.2.3", "[::1]:9"])
  func local(host: String) throws {
    #expect(try RequestGate(isLocal: true).refusal(request(host: host)) == nil)
    #expect(try RequestGate(isLocal: false).refusal(request(host: host)) == nil)
  }

  @Test(
    "refuses names that somebody else can let resolve to this machine",
    arguments: ["example.com", "localhost.example.com", "127.0.0.1.example.com:8080", "127.0.0.256", "1.2.3", "", nil])
  func rebinding(host: String?) throws {
    #expect(try RequestGate(isLocal: true).refusal(request(host: host)) != nil)
    #expect(try RequestGate(isLocal: false).refusal(request(host: host)) != nil)
  }

  @Test("serves other addresses only where others may connect", arguments: ["192.168.1.7:8080", "[fe80::1]:8080"])
  func others(host: String) throws {
    #expect(try RequestGate(isLocal: true).refusal(request(host: host)) != nil)
    #expect(try RequestGate(isLocal: false).refusal(request(host: host)) == nil)
  }

  @Test("refuses requests of other origins, and changes without one")
  func origins() throws {
    let gate = RequestGate(isLocal: true)
    let host = "127.0.0.1:8080"
    #expect(try gate.refusal(request(.post, host: host, origin: "http://\(host)")) == nil)
    for origin in ["http://example.com", "http://127.0.0.1:8081", "https://\(host)", "null", nil] {
      #expect(try gate.refusal(request(.post, host: host, origin: origin)) != nil)
      #expect(try gate.refusal(request(.delete, host: host, origin: origin)) != nil)
    }
    #expect(try gate.refusal(request(host: host, origin: "http://example.com")) != nil)
  }

  @Test("refuses what another site embeds, and follows its links to the page alone")
  func sites() throws {
    let gate = RequestGate(isLocal: true)
    for site in ["same-origin", "none"] { #expect(try gate.refusal(request(host: "localhost", site: site)) == nil) }
    #expect(try gate.refusal(request(host: "localhost", site: "cross-site")) != nil)
    #expect(try gate.refusal(request(host: "localhost", path: "/", site: "cross-site")) == nil)
  }
}

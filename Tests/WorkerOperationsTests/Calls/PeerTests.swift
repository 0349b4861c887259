import Testing

@testable import WorkerOperations

@Suite("Peer")
struct PeerTests {
  @Test(
    "separates the address from the port",
    arguments: [
      ("ipv4:127.0.0.1:50051", "127.0.0.1", 50051), ("ipv6:[::1]:80", "::1", 80), ("unix:/run/s", "/run/s", nil),
      ("in-process", "in-process", nil), ("", "", nil), ("ipv4:10.0.0.1", "10.0.0.1", nil),
    ] as [(String, String, Int?)])
  func parts(text: String, address: String, port: Int?) {
    #expect(Peer(text).address == address && Peer(text).port == port)
  }
}

/// A wait that came to nothing.
package struct WaitTimeout: Error, CustomStringConvertible {
  package var description: String
}

/// Waits until the condition holds.
/// - Throws: `WaitTimeout` when it does not within the time limit, so that a test fails instead of hanging.
package func waitUntil(
  _ what: String, within limit: Duration = .seconds(30), _ condition: () -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while !condition() {
    guard ContinuousClock.now < deadline else { throw WaitTimeout(description: "waited \(limit) until \(what)") }
    try await Task.sleep(for: .milliseconds(1))
  }
}

/// A condition that did not become true within the time limit.
package struct WaitTimeout: Error, CustomStringConvertible {
  package var description: String
}

/// Waits until the condition is true.
///
/// Throws `WaitTimeout` if the time limit passes, so that a test fails instead of hanging.
package func waitUntil(
  _ what: String, within limit: Duration = .seconds(120), _ condition: () -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while !condition() {
    guard ContinuousClock.now < deadline else { throw WaitTimeout(description: "waited \(limit) until \(what)") }
    try await Task.sleep(for: .milliseconds(1))
  }
}

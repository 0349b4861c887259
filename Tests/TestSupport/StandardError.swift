internal import Foundation

/// Returns everything that any thread writes to standard error while `body` runs.
package func standardError(_ body: () throws -> Void) throws -> String {
  let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
  defer { try? FileManager.default.removeItem(at: file) }
  let saved = dup(STDERR_FILENO)
  let descriptor = open(file.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
  dup2(descriptor, STDERR_FILENO)
  defer {
    dup2(saved, STDERR_FILENO)
    close(saved)
    close(descriptor)
  }
  try body()
  return String(decoding: try Data(contentsOf: file), as: UTF8.self)
}

import Foundation
import Logging
import Synchronization

@testable import ResultCache

/// A directory that is removed when the test ends.
final class Scratch: Sendable {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("result-cache-\(UUID().uuidString)").path

  deinit { try? FileManager.default.removeItem(atPath: path) }

  var results: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.filter { $0.hasSuffix(".result") }.map { "\(path)/\($0)" }.sorted()
  }

  /// Total size in bytes of all result files.
  var byteCount: Int { results.reduce(0) { $0 + (FileManager.default.contents(atPath: $1)?.count ?? 0) } }

  /// Modifies the file's bytes.
  func damage(_ file: String, _ change: (inout Data) -> Void) throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    change(&bytes)
    try bytes.write(to: URL(fileURLWithPath: file))
  }
}

/// Records log messages.
final class Log: Sendable {
  private let state = Mutex<[String]>([])

  var lines: [String] { state.withLock { $0 } }

  var logger: Logger {
    var logger = Logger(label: "test") { [self] _ in Handler(log: self) }
    logger.logLevel = .warning
    return logger
  }

  private struct Handler: LogHandler {
    let log: Log
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { log.state.withLock { $0.append("\(event.message)") } }
  }
}

extension CacheKey {
  static func of(_ text: String) -> CacheKey {
    var hasher = InputHasher()
    Array(text.utf8).withUnsafeBytes { hasher.update($0) }
    return CacheKey(input: hasher, configuration: [])
  }
}

extension ResultCache {
  /// Adds a result of `byteCount` bytes to the cache and to the disk.
  func put(_ text: String, byteCount: Int) {
    let collector = collector()
    var rest = byteCount
    while rest > 0 {
      collector.append([UInt8](repeating: UInt8(text.utf8.first ?? 0), count: min(rest, 65536)))
      rest -= min(rest, 65536)
    }
    collector.seal(metadata: Array(text.utf8))
    collector.keep(as: .of(text))
    collector.persist()
  }

  /// Returns whether the result is present and unchanged.
  func has(_ text: String) -> Bool {
    guard let result = result(for: .of(text)) else { return false }
    return result.metadata == Array(text.utf8) && result.chunks.allSatisfy { $0.allSatisfy { $0 == text.utf8.first } }
  }
}

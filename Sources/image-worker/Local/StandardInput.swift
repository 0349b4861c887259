internal import Synchronization
internal import SystemPackage

/// The image on standard input.
///
/// It can be read once, so that the bytes which its plan needed are kept for its results.
final class StandardInput: Sendable {
  /// The path that stands for standard input and standard output.
  static let name = "-"

  private let planned = Mutex<[[UInt8]]>([])

  /// Reads the next bytes for a plan; none at the end.
  func readAhead(byteCount: Int) throws -> [UInt8] {
    let part = try FileSystem.readPart(of: .standardInput, byteCount: byteCount)
    planned.withLock { $0.append(part) }
    return part
  }

  /// Reads the next bytes for results, from the first one on; none at the end.
  func read(byteCount: Int) throws -> [UInt8] {
    let part = planned.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    return try part ?? FileSystem.readPart(of: .standardInput, byteCount: byteCount)
  }
}

internal import FoundationEssentials
internal import LibC

/// Properties of this machine and process.
enum SystemInfo {
  /// Processors that are online, at least 1.
  static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// An identifier that no other process has, as telemetry names it.
  static var attributes: [(key: String, value: String)] {
    let process = ProcessInfo.processInfo
    return [
      ("service.instance.id", UUID().uuidString.lowercased()), ("host.name", process.hostName),
      ("process.pid", "\(process.processIdentifier)"), ("process.executable.name", "image-worker"),
    ]
  }
}

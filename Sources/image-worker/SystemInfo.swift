internal import FoundationEssentials
internal import LibC

/// What this machine is.
enum SystemInfo {
  /// Processors that are online, at least 1.
  static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// What tells this process from others, as telemetry names it.
  static var attributes: [(key: String, value: String)] {
    let process = ProcessInfo.processInfo
    return [
      ("service.instance.id", UUID().uuidString.lowercased()), ("host.name", process.hostName),
      ("process.pid", "\(process.processIdentifier)"), ("process.executable.name", "image-worker"),
    ]
  }
}

internal import FoundationEssentials
internal import LibC

/// Resource usage of this process, as reported by the system.
enum ProcessStatus {
  /// Resident memory in bytes; 0 if the system does not report it.
  static var residentByteCount: Double { field("VmRSS").map { $0 * 1024 } ?? 0 }

  /// Number of threads; 0 if the system does not report it.
  static var threadCount: Double { field("Threads") ?? 0 }

  /// User and system CPU time in seconds; POSIX defines the clock's unit as a microsecond.
  static var cpuSeconds: Double { Double(clock()) / 1e6 }

  /// Returns a number from `/proc/self/status`, in the unit used there.
  private static func field(_ name: String) -> Double? {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
  }
}

extension MetricRegistry {
  /// Starts to report the memory, threads, CPU time and age of the process.
  package func observeProcess() {
    let began = ContinuousClock.now
    observe("imageworker.build_info", [Dimension("version", WorkerVersion.current)]) { 1 }
    observe("process.memory.usage") { ProcessStatus.residentByteCount }
    observe("process.threads") { ProcessStatus.threadCount }
    observe("process.cpu.time") { ProcessStatus.cpuSeconds }
    observe("process.uptime") { began.duration(to: .now) / .seconds(1) }
  }

  /// Starts to report how much telemetry was exported and dropped.
  package func observe(_ telemetry: Telemetry) {
    for (signal, counts) in telemetry.counts {
      let signal = Dimension("signal", signal.rawValue)
      observe("imageworker.telemetry.exported", [signal]) { Double(counts.exported) }
      for reason in ExportCounts.Reason.allCases {
        observe("imageworker.telemetry.dropped", [signal, Dimension("reason", reason.rawValue)]) {
          Double(counts.dropped[reason] ?? 0)
        }
      }
    }
  }
}

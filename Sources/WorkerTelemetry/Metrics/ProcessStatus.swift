internal import FoundationEssentials

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// What the system says of this process.
enum ProcessStatus {
  /// Resident bytes; 0 where the system does not tell.
  static var residentByteCount: Double { field("VmRSS").map { $0 * 1024 } ?? 0 }

  /// Threads; 0 where the system does not tell.
  static var threadCount: Double { field("Threads") ?? 0 }

  /// Seconds of CPU time, user and system; POSIX fixes the clock's unit at a microsecond.
  static var cpuSeconds: Double { Double(clock()) / 1e6 }

  /// A number of `/proc/self/status`, in the unit that stands there.
  private static func field(_ name: String) -> Double? {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) }
  }
}

extension MetricRegistry {
  /// Begins to tell the process' memory, threads, CPU time and age.
  package func observeProcess() {
    let began = ContinuousClock.now
    observe("process.memory.usage") { ProcessStatus.residentByteCount }
    observe("process.threads") { ProcessStatus.threadCount }
    observe("process.cpu.time") { ProcessStatus.cpuSeconds }
    observe("process.uptime") { began.duration(to: .now) / .seconds(1) }
  }

  /// Begins to tell what became of exported telemetry.
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

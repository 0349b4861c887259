internal import FoundationEssentials
internal import LibC

extension MetricRegistry {
  /// Starts to report the memory, threads, CPU time and age of the process.
  package func observeProcess() {
    let began = ContinuousClock.now
    observe("imageworker.build_info", [Dimension("version", WorkerVersion.current)]) { 1 }
    observe("process.memory.usage") { 1024 * Self.processStatus("VmRSS") }
    observe("process.threads") { Self.processStatus("Threads") }
    // POSIX defines the clock's unit as a microsecond.
    observe("process.cpu.time") { Double(clock()) / 1e6 }
    observe("process.uptime") { began.duration(to: .now) / .seconds(1) }
  }

  /// Returns a number from `/proc/self/status`, in the unit used there; 0 if the system does not report it.
  private static func processStatus(_ name: String) -> Double {
    guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return 0 }
    let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0
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

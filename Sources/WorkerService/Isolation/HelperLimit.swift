internal import ImagePipeline
internal import LibC
internal import WorkerIsolation

/// The limits that the system enforces on the helper of one image.
struct HelperLimit {
  /// The private memory in bytes that a helper may use before its image is admitted, and beyond what is charged
  /// afterwards: for libraries that allocate by themselves.
  private static let uncountedByteCount: UInt64 = 256 << 20
  /// The unit of the memory limit in bytes, so that it is the same for most images.
  private static let unitByteCount: UInt64 = 64 << 20

  /// The CPU time of the image in seconds; `nil` for no limit.
  let cpuSeconds: UInt64?
  /// The private memory in bytes.
  let byteCount: UInt64

  /// Creates the limits of an image that was admitted with `admitted` bytes.
  init(_ limits: ImageLimits, admitted: UInt64) {
    cpuSeconds = limits.maxCPUTime.map { UInt64(clamping: $0.components.seconds) + 1 }
    // Blocks are reused with some waste, so that twice the charged memory is still no leak.
    byteCount = ((Self.uncountedByteCount + 2 * admitted) / Self.unitByteCount + 1) * Self.unitByteCount
  }
}

/// The CPU time that a helper has used for one image, in nanoseconds.
struct HelperCPUTime {
  /// The time that the helper had used before the image.
  var before: UInt64 = 0
  private var used: UInt64 = 0
  private var taken: UInt64 = 0

  init(before: UInt64 = 0) { self.before = before }

  /// Notes how much the helper has used by now.
  mutating func note(_ process: HelperProcess) {
    let now = process.cpuTime
    if now > before { used = max(used, now - before) }
  }

  /// Returns the time that was noted since the last call.
  mutating func take() -> Duration {
    defer { taken = used }
    return .nanoseconds(Int64(clamping: used - taken))
  }
}

extension PipelineError {
  /// The error of a request that is larger than a message to a helper can be.
  init(messageByteCount: Int) {
    let limit = HelperLayout.messageByteCount
    self.init(
      .limitExceeded,
      "the fields of the request take \(messageByteCount) bytes for the process that works on the image; at most "
        + "\(limit) are accepted; send the renditions in several requests, or with fewer fields",
      limit: PipelineError.Limit(
        name: "request_bytes_for_process", limit: UInt64(limit), value: UInt64(messageByteCount)))
  }

  /// The error of an image whose helper was lost.
  init(_ loss: HelperLoss) {
    switch loss {
    case .notStarted, .orphaned:
      self.init(.overloaded, "the process that works on the image ended: \(loss); try again later")
    case .exited, .misbehaved:
      self.init(.codecCrashed, "the process that worked on the image failed: \(loss)")
    case .signaled(SIGKILL):
      self.init(
        .codecCrashed, "the process that worked on the image was killed, possibly because the system has no memory left"
      )
    case .signaled: self.init(.codecCrashed, "the codec crashed on the image: \(loss)")
    case .exceededCPUTime:
      self.init(.codecStopped, "the codec was stopped because \(loss), max_cpu_seconds_per_image")
    case .exceededMemory, .stalled: self.init(.codecStopped, "the codec was stopped because \(loss)")
    }
  }
}

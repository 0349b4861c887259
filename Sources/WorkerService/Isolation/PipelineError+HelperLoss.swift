internal import ImagePipeline
internal import WorkerIsolation

extension PipelineError {
  /// The error of an image whose helper was lost.
  init(_ loss: HelperLoss) {
    switch loss {
    case .notStarted: self.init(.overloaded, "the process that works on the image ended: \(loss); try again later")
    case .exited, .misbehaved:
      self.init(.codecCrashed, "the process that worked on the image failed: \(loss)")
    case .signaled(let signal) where signal == HelperLoss.killSignal:
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

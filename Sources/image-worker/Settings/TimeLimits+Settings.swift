internal import WorkerOperations
internal import WorkerService

extension TimeLimits {
  /// Reads how long clients may take; uploads may take as long as the worker's limits say.
  init(_ source: inout SettingSource, _ limits: WorkerLimits) throws(SettingsError) {
    self.init()
    upload = limits.uploadTimeout
    minBytesPerSecond = limits.minBytesPerSecond
    download = try Settings.timeLimit(
      &source, "downloadTimeoutSeconds", default: 30,
      "Cancel a call whose client falls this far behind --min-bytes-per-second in reading its results; 0 for never.")
    handshake = try Settings.timeLimit(
      &source, "handshakeTimeoutSeconds", default: 10,
      "Close a connection that has not sent its HTTP/2 settings after this time; 0 for never.")
    idle = try Settings.timeLimit(
      &source, "connectionIdleSeconds", default: 300,
      "Close a connection that has had no calls for this time; 0 for never.")
    keepalive = try Settings.timeLimit(
      &source, "keepaliveSeconds", default: 60,
      "Ping a client that has calls and has sent nothing for this time; 0 for never.")
    keepaliveAnswer = .seconds(
      try source.integer(
        "keepaliveTimeoutSeconds", in: 1...3600, default: 20, unit: "seconds",
        "Close a connection that does not answer such a ping within this time."))
    age = try Settings.timeLimit(
      &source, "connectionAgeSeconds", default: 3600,
      "Close a connection gracefully at this age, a tenth more or less; 0 for never.")
    grace = try Settings.timeLimit(
      &source, "connectionGraceSeconds", default: 3600,
      "Limit the time that calls may take to finish on a connection that is too old; 0 for no limit.")
  }
}

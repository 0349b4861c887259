/// The descriptions of all metrics of this worker.
///
/// Code that records metrics uses the same names. A test compares them with what a running worker exports, and with
/// what the dashboard and the alerts in `deploy` query.
package enum MetricCatalog {
  /// Histogram bounds in seconds, from the duration of a small image to that of a stalled upload.
  static let seconds: [Double] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  ]
  /// Histogram bounds in bytes, from 64 KiB to 1 GiB.
  static let bytes: [Double] = (0...7).map { Double(1 << (16 + 2 * $0)) }

  /// All descriptions, sorted by name.
  package static let all = (calls + security + images + cache + memory + helpers + process + telemetry).sorted {
    $0.name < $1.name
  }

  private static let calls: [MetricDescription] = [
    .histogram(
      "rpc.server.call.duration", "s", seconds, "Duration of calls from first to last byte, by method and status code"),
    .gauge("imageworker.calls.active", "{call}", "Calls in progress"),
  ]

  private static let security: [MetricDescription] = [
    .counter(
      "imageworker.tls.handshakes", "{handshake}", "TLS handshakes, by outcome: ok or the reason of the failure"),
    .gauge("imageworker.tls.certificate.expiry", "s", "Time at which the certificate expires, since 1970-01-01 UTC"),
    .counter("imageworker.authentication.failures", "{call}", "Calls refused because of their caller, by reason"),
    .counter("imageworker.identity.images", "{image}", "Images begun, by identity"),
    .counter("imageworker.identity.refusals", "{image}", "Images refused because of a quota, by identity"),
    .counter("imageworker.identity.input", "By", "Bytes of images received, by identity"),
    .counter("imageworker.identity.cpu.time", "s", "CPU time spent on images, by identity"),
  ]

  private static let images: [MetricDescription] = [
    .counter("imageworker.images", "{image}", "Images requested, by outcome: ok or the error's reason"),
    .counter("imageworker.renditions", "{rendition}", "Renditions requested, by outcome: ok or the error's reason"),
    .counter(
      "imageworker.previews", "{preview}", "Previews requested, by outcome; cancelled if the result was ready first"),
    .counter("imageworker.refusals", "{image}", "Images refused before decoding, by reason"),
    .counter("imageworker.cancellations", "{image}", "Images abandoned because the client cancelled or disconnected"),
    .histogram(
      "imageworker.image.duration", "s", seconds,
      "Duration from the first byte of an image to the last byte of its result"),
    .histogram("imageworker.stage.duration", "s", seconds, "Busy time of a stage per image, by stage and format"),
    .histogram("imageworker.queue.wait", "s", seconds, "Time that an image waited for a thread and memory"),
    .histogram(
      "imageworker.wait.duration", "s", seconds,
      "Time that images, uploads and messages waited, by what they waited for"),
    .gauge("imageworker.queue.length", "{image}", "Images waiting for a thread or memory"),
    .counter("imageworker.input", "By", "Bytes of images read, by format"),
    .counter("imageworker.output", "By", "Bytes of results written, by format"),
    .counter("imageworker.input.pixels", "{pixel}", "Pixels of images read, by format"),
    .counter("imageworker.output.pixels", "{pixel}", "Pixels of results written, by format"),
    .histogram("imageworker.image.memory", "By", bytes, "Maximum size of an image's working set"),
  ]

  private static let cache: [MetricDescription] = [
    .counter("imageworker.cache.requests", "{request}", "Cache lookups, by outcome: hit or miss"),
    .gauge(
      "imageworker.cache.memory", "By", "Memory used by cached results and by results being collected for the cache"),
    .gauge("imageworker.cache.disk", "By", "Disk space used by cached results"),
  ]

  private static let memory: [MetricDescription] = [
    .gauge("imageworker.memory.budget.limit", "By", "Memory limit of all images together"),
    .gauge("imageworker.memory.budget.used", "By", "Memory reserved for images"),
    .gauge("imageworker.memory.budget.peak", "By", "Maximum memory reserved for images since the worker started"),
    .gauge("imageworker.messages.received", "By", "Memory of received messages"),
    .gauge(
      "imageworker.messages.waiting", "{message}",
      "Messages that wait for memory before their clients may send the rest"),
    .gauge("imageworker.connections.active", "{connection}", "Open connections"),
    .counter(
      "imageworker.connections.refused", "{connection}",
      "Connections that were closed at once, because too many were open"),
  ]

  private static let helpers: [MetricDescription] = [
    .gauge(
      "imageworker.helpers", "{process}",
      "Processes that codecs run in, including idle ones; 0 where they run in the worker itself"),
    .counter("imageworker.helpers.started", "{process}", "Processes started for codecs"),
    .counter("imageworker.helpers.lost", "{process}", "Processes that ended while they worked on an image"),
    .counter(
      "imageworker.zygotes.replaced", "{process}",
      "Processes that start helpers, replaced because they were stopped or had ended"),
  ]

  private static let process: [MetricDescription] = [
    .gauge("imageworker.build_info", "", "Version of the worker, as an attribute; the value is always 1"),
    .gauge("imageworker.library_info", "", "Version of a codec library, as attributes; the value is always 1"),
    .gauge("process.memory.usage", "By", "Resident memory of the process"),
    .gauge("process.threads", "{thread}", "Threads of the process"),
    .counter("process.cpu.time", "s", "CPU time of the process"),
    .gauge("imageworker.descriptors.open", "{descriptor}", "Open file descriptors of the process"),
    .gauge("imageworker.descriptors.limit", "{descriptor}", "File descriptors that the process may have open"),
    .gauge("process.uptime", "s", "Time since the worker started"),
  ]

  private static let telemetry: [MetricDescription] = [
    .counter(
      "imageworker.telemetry.exported", "{item}",
      "Spans, data points and log records that the collector accepted, by signal"),
    .counter(
      "imageworker.telemetry.dropped", "{item}",
      "Spans, data points and log records that were dropped, by signal and reason"),
  ]
}

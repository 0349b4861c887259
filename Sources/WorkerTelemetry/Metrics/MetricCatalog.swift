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

  private static let calls = [
    MetricDescription(
      "rpc.server.call.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Duration of calls from first to last byte, by method and status code"),
    MetricDescription(
      "imageworker.calls.active", unit: "{call}", kind: .gauge, help: "Calls in progress"),
  ]

  private static let security = [
    MetricDescription(
      "imageworker.tls.handshakes", unit: "{handshake}", kind: .counter,
      help: "TLS handshakes, by outcome: ok or the reason of the failure"),
    MetricDescription(
      "imageworker.tls.certificate.expiry", unit: "s", kind: .gauge,
      help: "Time at which the certificate expires, since 1970-01-01 UTC"),
    MetricDescription(
      "imageworker.authentication.failures", unit: "{call}", kind: .counter,
      help: "Calls refused because of their caller, by reason"),
    MetricDescription(
      "imageworker.identity.images", unit: "{image}", kind: .counter, help: "Images begun, by identity"),
    MetricDescription(
      "imageworker.identity.refusals", unit: "{image}", kind: .counter,
      help: "Images refused because of a quota, by identity"),
    MetricDescription(
      "imageworker.identity.input", unit: "By", kind: .counter, help: "Bytes of images received, by identity"),
    MetricDescription(
      "imageworker.identity.cpu.time", unit: "s", kind: .counter, help: "CPU time spent on images, by identity"),
  ]

  private static let images = [
    MetricDescription(
      "imageworker.images", unit: "{image}", kind: .counter,
      help: "Images requested, by outcome: ok or the error's reason"),
    MetricDescription(
      "imageworker.renditions", unit: "{rendition}", kind: .counter,
      help: "Renditions requested, by outcome: ok or the error's reason"),
    MetricDescription(
      "imageworker.previews", unit: "{preview}", kind: .counter,
      help: "Previews requested, by outcome; cancelled if the result was ready first"),
    MetricDescription(
      "imageworker.refusals", unit: "{image}", kind: .counter,
      help: "Images refused before decoding, by reason"),
    MetricDescription(
      "imageworker.cancellations", unit: "{image}", kind: .counter,
      help: "Images abandoned because the client cancelled or disconnected"),
    MetricDescription(
      "imageworker.image.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Duration from the first byte of an image to the last byte of its result"),
    MetricDescription(
      "imageworker.stage.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Busy time of a stage per image, by stage and format"),
    MetricDescription(
      "imageworker.queue.wait", unit: "s", kind: .histogram(bounds: seconds),
      help: "Time that an image waited for a thread and memory"),
    MetricDescription(
      "imageworker.wait.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Time that images, uploads and messages waited, by what they waited for"),
    MetricDescription(
      "imageworker.queue.length", unit: "{image}", kind: .gauge, help: "Images waiting for a thread or memory"),
    MetricDescription(
      "imageworker.input", unit: "By", kind: .counter, help: "Bytes of images read, by format"),
    MetricDescription(
      "imageworker.output", unit: "By", kind: .counter, help: "Bytes of results written, by format"),
    MetricDescription(
      "imageworker.input.pixels", unit: "{pixel}", kind: .counter, help: "Pixels of images read, by format"),
    MetricDescription(
      "imageworker.output.pixels", unit: "{pixel}", kind: .counter, help: "Pixels of results written, by format"),
    MetricDescription(
      "imageworker.image.memory", unit: "By", kind: .histogram(bounds: bytes),
      help: "Maximum size of an image's working set"),
  ]

  private static let cache = [
    MetricDescription(
      "imageworker.cache.requests", unit: "{request}", kind: .counter,
      help: "Cache lookups, by outcome: hit or miss"),
    MetricDescription(
      "imageworker.cache.memory", unit: "By", kind: .gauge,
      help: "Memory used by cached results and by results being collected for the cache"),
    MetricDescription("imageworker.cache.disk", unit: "By", kind: .gauge, help: "Disk space used by cached results"),
  ]

  private static let memory = [
    MetricDescription(
      "imageworker.memory.budget.limit", unit: "By", kind: .gauge, help: "Memory limit of all images together"),
    MetricDescription(
      "imageworker.memory.budget.used", unit: "By", kind: .gauge, help: "Memory reserved for images"),
    MetricDescription(
      "imageworker.memory.budget.peak", unit: "By", kind: .gauge,
      help: "Maximum memory reserved for images since the worker started"),
    MetricDescription(
      "imageworker.messages.received", unit: "By", kind: .gauge, help: "Memory of received messages"),
    MetricDescription(
      "imageworker.messages.waiting", unit: "{message}", kind: .gauge,
      help: "Messages that wait for memory before their clients may send the rest"),
    MetricDescription(
      "imageworker.connections.active", unit: "{connection}", kind: .gauge, help: "Open connections"),
    MetricDescription(
      "imageworker.connections.refused", unit: "{connection}", kind: .counter,
      help: "Connections that were closed at once, because too many were open"),
  ]

  private static let helpers = [
    MetricDescription(
      "imageworker.helpers", unit: "{process}", kind: .gauge,
      help: "Processes that codecs run in, including idle ones; 0 where they run in the worker itself"),
    MetricDescription(
      "imageworker.helpers.started", unit: "{process}", kind: .counter, help: "Processes started for codecs"),
    MetricDescription(
      "imageworker.helpers.lost", unit: "{process}", kind: .counter,
      help: "Processes that ended while they worked on an image"),
    MetricDescription(
      "imageworker.zygotes.replaced", unit: "{process}", kind: .counter,
      help: "Processes that start helpers, replaced because they were stopped or had ended"),
  ]

  private static let process = [
    MetricDescription(
      "imageworker.build_info", unit: "", kind: .gauge,
      help: "Version of the worker, as an attribute; the value is always 1"),
    MetricDescription(
      "imageworker.library_info", unit: "", kind: .gauge,
      help: "Version of a codec library, as attributes; the value is always 1"),
    MetricDescription(
      "process.memory.usage", unit: "By", kind: .gauge, help: "Resident memory of the process"),
    MetricDescription("process.threads", unit: "{thread}", kind: .gauge, help: "Threads of the process"),
    MetricDescription("process.cpu.time", unit: "s", kind: .counter, help: "CPU time of the process"),
    MetricDescription(
      "imageworker.descriptors.open", unit: "{descriptor}", kind: .gauge, help: "Open file descriptors of the process"),
    MetricDescription(
      "imageworker.descriptors.limit", unit: "{descriptor}", kind: .gauge,
      help: "File descriptors that the process may have open"),
    MetricDescription("process.uptime", unit: "s", kind: .gauge, help: "Time since the worker started"),
  ]

  private static let telemetry = [
    MetricDescription(
      "imageworker.telemetry.exported", unit: "{item}", kind: .counter,
      help: "Spans, data points and log records that the collector accepted, by signal"),
    MetricDescription(
      "imageworker.telemetry.dropped", unit: "{item}", kind: .counter,
      help: "Spans, data points and log records that were dropped, by signal and reason"),
  ]
}

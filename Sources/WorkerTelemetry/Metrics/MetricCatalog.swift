/// Every metric of this worker.
///
/// Code that measures names them by the same names; a test compares them to what a working worker exports, and to what
/// the dashboard and the alerts in `deploy` ask for.
package enum MetricCatalog {
  /// Seconds, from what a small picture takes to what a stalled upload takes.
  static let seconds: [Double] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
  ]
  /// Bytes, from 64 KiB to 1 GiB.
  static let bytes: [Double] = (0...7).map { Double(1 << (16 + 2 * $0)) }

  /// In the order of their names.
  package static let all = (calls + pictures + cache + memory + process + telemetry).sorted { $0.name < $1.name }

  private static let calls = [
    MetricDescription(
      "rpc.server.call.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Time from the first byte of a call to its last, by method and status code"),
    MetricDescription(
      "imageworker.calls.active", unit: "{call}", kind: .gauge, help: "Calls that are being served"),
  ]

  private static let pictures = [
    MetricDescription(
      "imageworker.pictures", unit: "{picture}", kind: .counter,
      help: "Pictures that were asked for, by outcome: ok, or the reason of the error"),
    MetricDescription(
      "imageworker.renditions", unit: "{rendition}", kind: .counter,
      help: "Renditions of pictures of which several were asked for, by outcome as of pictures"),
    MetricDescription(
      "imageworker.previews", unit: "{preview}", kind: .counter,
      help: "Previews of pictures, by outcome as of pictures; cancelled where the result was there first"),
    MetricDescription(
      "imageworker.refusals", unit: "{picture}", kind: .counter,
      help: "Pictures that were refused before any of them was decoded, by reason"),
    MetricDescription(
      "imageworker.cancellations", unit: "{picture}", kind: .counter,
      help: "Pictures that were given up because their caller left or cancelled"),
    MetricDescription(
      "imageworker.picture.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Time from a picture's first byte to the last byte of its result"),
    MetricDescription(
      "imageworker.stage.duration", unit: "s", kind: .histogram(bounds: seconds),
      help: "Time that a stage was busy with one picture, by stage and format"),
    MetricDescription(
      "imageworker.queue.wait", unit: "s", kind: .histogram(bounds: seconds),
      help: "Time that a picture waited for a thread and memory"),
    MetricDescription(
      "imageworker.queue.length", unit: "{picture}", kind: .gauge, help: "Pictures that wait for a thread or memory"),
    MetricDescription(
      "imageworker.input", unit: "By", kind: .counter, help: "Bytes of pictures read, by format"),
    MetricDescription(
      "imageworker.output", unit: "By", kind: .counter, help: "Bytes of results written, by format"),
    MetricDescription(
      "imageworker.input.pixels", unit: "{pixel}", kind: .counter, help: "Pixels of pictures read, by format"),
    MetricDescription(
      "imageworker.output.pixels", unit: "{pixel}", kind: .counter, help: "Pixels of results written, by format"),
    MetricDescription(
      "imageworker.picture.memory", unit: "By", kind: .histogram(bounds: bytes),
      help: "Most bytes that one picture's working set held at once"),
  ]

  private static let cache = [
    MetricDescription(
      "imageworker.cache.requests", unit: "{request}", kind: .counter,
      help: "Results that were looked for among those that are kept, by outcome: hit or miss"),
    MetricDescription(
      "imageworker.cache.memory", unit: "By", kind: .gauge,
      help: "Memory of results that are kept or on their way to be"),
    MetricDescription("imageworker.cache.disk", unit: "By", kind: .gauge, help: "Files of results that are kept"),
  ]

  private static let memory = [
    MetricDescription(
      "imageworker.memory.budget.limit", unit: "By", kind: .gauge, help: "Bytes that all pictures together may hold"),
    MetricDescription(
      "imageworker.memory.budget.used", unit: "By", kind: .gauge, help: "Bytes that are set aside for pictures"),
    MetricDescription(
      "imageworker.memory.budget.peak", unit: "By", kind: .gauge,
      help: "Most bytes that were set aside at once since the worker began"),
  ]

  private static let process = [
    MetricDescription(
      "process.memory.usage", unit: "By", kind: .gauge, help: "Resident memory of the process"),
    MetricDescription("process.threads", unit: "{thread}", kind: .gauge, help: "Threads of the process"),
    MetricDescription("process.cpu.time", unit: "s", kind: .counter, help: "CPU time of the process"),
    MetricDescription("process.uptime", unit: "s", kind: .gauge, help: "Time since the worker began"),
  ]

  private static let telemetry = [
    MetricDescription(
      "imageworker.telemetry.exported", unit: "{item}", kind: .counter,
      help: "Spans, data points and log records that the collector took, by signal"),
    MetricDescription(
      "imageworker.telemetry.dropped", unit: "{item}", kind: .counter,
      help: "Spans, data points and log records that were lost, by signal and reason"),
  ]
}

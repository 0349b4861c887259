internal import Synchronization

/// Writes the work of pipeline stages as Chrome trace events, strip by strip.
///
/// Perfetto opens the file and shows one lane for each stage on each thread. Events are written as they occur, so that
/// memory does not grow with the length of the trace. Source: "Trace Event Format", JSON array of complete events.
package final class ChromeTrace: Sendable {
  private struct Lane: Hashable {
    var stage: String
    var thread: UInt
  }

  private struct State {
    var text = "["
    var isFirst = true
    var lanes: [Lane: Int] = [:]
    var threads: [UInt: Int] = [:]
  }

  private static let portionByteCount = 64 * 1024
  /// Order of the lanes, from top to bottom.
  private static let order = ["image", "decode", "resize", "filter", "encode"]

  private let began = ContinuousClock.now
  private let write: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// Creates a trace.
  ///
  /// - Parameter write: The destination of the file's text, called with one portion at a time and never concurrently.
  package init(write: @escaping @Sendable (String) -> Void) {
    self.write = write
  }

  /// Records one portion of a stage's work.
  ///
  /// - Parameters:
  ///   - stage: The name of the lane.
  ///   - thread: Any number that identifies the thread.
  ///   - began: The start time, not before the creation of the trace.
  ///   - ended: The end time.
  ///   - image: The image that was processed.
  package func record(
    _ stage: String, thread: UInt, from began: ContinuousClock.Instant, to ended: ContinuousClock.Instant,
    image: String
  ) {
    let start = Self.microseconds(self.began.duration(to: began))
    let duration = Self.microseconds(began.duration(to: ended))
    state.withLock { state in
      let lane = lane(Lane(stage: stage, thread: thread), &state)
      append(
        "\"name\":\(stage.jsonQuoted),\"cat\":\"stage\",\"ph\":\"X\",\"ts\":\(start),\"dur\":\(duration),\"pid\":1,"
          + "\"tid\":\(lane),\"args\":{\"image\":\(image.jsonQuoted)}", &state)
      if state.text.utf8.count >= Self.portionByteCount { flush(&state) }
    }
  }

  /// Writes the end of the file.
  package func finish() {
    state.withLock { state in
      state.text += "\n]\n"
      flush(&state)
    }
  }

  private func lane(_ key: Lane, _ state: inout State) -> Int {
    if let lane = state.lanes[key] { return lane }
    let thread = state.threads[key.thread] ?? state.threads.count + 1
    state.threads[key.thread] = thread
    let lane = state.lanes.count + 1
    state.lanes[key] = lane
    let place = thread * 16 + (Self.order.firstIndex(of: key.stage) ?? Self.order.count)
    let head = "\"ph\":\"M\",\"pid\":1,\"tid\":\(lane)"
    let name = "\(key.stage), thread \(thread)".jsonQuoted
    append("\"name\":\"thread_name\",\(head),\"args\":{\"name\":\(name)}", &state)
    append("\"name\":\"thread_sort_index\",\(head),\"args\":{\"sort_index\":\(place)}", &state)
    return lane
  }

  private func append(_ fields: String, _ state: inout State) {
    state.text += state.isFirst ? "\n{\(fields)}" : ",\n{\(fields)}"
    state.isFirst = false
  }

  private func flush(_ state: inout State) {
    write(state.text)
    state.text = ""
  }

  private static func microseconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return Double(seconds * 1_000_000_000 + attoseconds / 1_000_000_000) / 1000
  }
}

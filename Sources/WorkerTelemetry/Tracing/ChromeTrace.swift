internal import Synchronization

/// Writes what stages did, strip by strip, as Chrome trace events: a file that Perfetto opens, with one lane for each
/// stage on each thread.
///
/// Source: "Trace Event Format", JSON array of complete events. Written as it comes, so that its length costs no memory.
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
  /// Where lanes stand, from above.
  private static let order = ["image", "decode", "resize", "filter", "encode"]

  private let began = ContinuousClock.now
  private let write: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - `write`: takes the file's text, portion by portion; never called by two threads at once.
  package init(write: @escaping @Sendable (String) -> Void) {
    self.write = write
  }

  /// Notes one portion of a stage's work.
  /// - Parameters:
  ///   - stage: what the lane is called.
  ///   - thread: which one worked; any number that tells threads apart.
  ///   - began: when it began, not before this trace did.
  ///   - ended: when it ended.
  ///   - image: what it worked on.
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

  /// Ends the file.
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

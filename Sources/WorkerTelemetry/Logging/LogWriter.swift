internal import Dispatch
internal import FoundationEssentials
internal import LibC
internal import Logging
internal import Synchronization

/// Writes log lines to a file in order, on its own thread.
///
/// Logging therefore never waits for the reader of the log. The number of waiting bytes is limited: lines above the
/// limit are dropped, and a line in their place reports how many.
package final class LogWriter: Sendable {
  /// The writer for the standard error of the process.
  package static let standardError = LogWriter(file: STDERR_FILENO)

  private enum Entry {
    case line(String)
    case dropped(count: Int, LogFormat)

    var text: String {
      switch self {
      case .line(let line): line
      case .dropped(let count, let format):
        format.format(
          LogLine(
            time: Date(), level: .warning, label: "log",
            message: "log lines were dropped because the reader of the log was too slow",
            metadata: [("dropped", .stringConvertible(count))]))
      }
    }
  }

  private struct State {
    var waiting: [Entry] = []
    /// Number of entries that are waiting or being written.
    var entryCount = 0
    /// Total size of these entries' lines in bytes.
    var byteCount = 0
    /// Whether the thread is running or was signalled to run.
    var isBusy = false

    mutating func add(_ entry: Entry) {
      waiting.append(entry)
      entryCount += 1
    }
  }

  /// Microseconds after which the thread checks for new lines before it sleeps; waking it costs the logging thread as
  /// much as writing the line.
  private static let linger: UInt32 = 10_000

  /// The maximum size of lines that are written together: what a pipe takes as a whole (POSIX, PIPE_BUF on Linux).
  private static let maxWriteByteCount = 4096

  private let file: Int32
  private let capacity: Int
  private let state = Mutex(State())
  private let wake = DispatchSemaphore(value: 0)

  /// Creates a writer and starts its thread, which runs until the process exits.
  ///
  /// - Parameters:
  ///   - file: A file descriptor, owned by the caller.
  ///   - capacity: The maximum total size in bytes of the lines that are waiting.
  package init(file: Int32, capacity: Int = 1 << 20) {
    self.file = file
    self.capacity = capacity
    DispatchQueue(label: "log").async { [self] in
      while true {
        wake.wait()
        writeAll()
      }
    }
  }

  /// Appends a line to the queue without waiting.
  ///
  /// - Parameters:
  ///   - line: The line, including its line feed.
  ///   - format: The format of the line that reports dropped lines.
  func write(_ line: String, format: LogFormat) {
    let byteCount = line.utf8.count
    let isIdle = state.withLock { state in
      if state.byteCount + byteCount <= capacity {
        state.byteCount += byteCount
        state.add(.line(line))
      } else if case .dropped(let count, let format) = state.waiting.last {
        state.waiting[state.waiting.count - 1] = .dropped(count: count + 1, format)
      } else {
        state.add(.dropped(count: 1, format))
      }
      defer { state.isBusy = true }
      return !state.isBusy
    }
    if isIdle { wake.signal() }
  }

  /// Waits until all lines are written, or until no line has been written for as long as `timeout`.
  package func flush(timeout: Duration = .seconds(5)) {
    var left = state.withLock { $0.entryCount }
    var deadline = ContinuousClock.now + timeout
    while left > 0, .now < deadline {
      usleep(1000)
      let now = state.withLock { $0.entryCount }
      if now != left { deadline = .now + timeout }
      left = now
    }
  }

  private func writeAll() {
    while true {
      var entries = state.withLock { state in
        defer { state.waiting = [] }
        return state.waiting[...]
      }
      while !entries.isEmpty { writeSome(&entries) }
      usleep(Self.linger)
      let isDone = state.withLock { state in
        if state.waiting.isEmpty { state.isBusy = false }
        return !state.isBusy
      }
      if isDone { return }
    }
  }

  /// Writes the first entries, as many as one system call may contain but at least one, and removes them.
  private func writeSome(_ entries: inout ArraySlice<Entry>) {
    var (lines, entryCount, byteCount) = ([UInt8](), 0, 0)
    while let entry = entries.first {
      let line = entry.text.utf8
      guard lines.isEmpty || lines.count + line.count <= Self.maxWriteByteCount else { break }
      lines += line
      entryCount += 1
      if case .line = entry { byteCount += line.count }
      entries.removeFirst()
    }
    put(lines)
    state.withLock { state in
      state.entryCount -= entryCount
      state.byteCount -= byteCount
    }
  }

  /// Writes lines in one system call, so that they do not mix with the output of other processes.
  ///
  /// If the system accepts only a part, further calls write the rest.
  private func put(_ lines: [UInt8]) {
    lines.withUnsafeBytes { bytes in
      var rest = bytes
      while !rest.isEmpty {
        let count = systemWrite(file, rest.baseAddress, rest.count)
        // A log that cannot be written is no reason to stop.
        guard count > 0 || errno == EINTR else { return }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(max(0, count)))
      }
    }
  }
}

private func systemWrite(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(file, bytes, count) }

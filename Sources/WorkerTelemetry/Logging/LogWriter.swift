internal import Dispatch
internal import FoundationEssentials
internal import Logging
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Writes lines of the log to a file, in their order and on a thread of its own, so that nobody who logs waits for whoever
/// reads them.
///
/// What waits is bounded: lines beyond it are dropped, and a line in their place tells how many.
package final class LogWriter: Sendable {
  /// The process' own.
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
    /// Those that wait, and those that are being written.
    var entryCount = 0
    /// Of their lines.
    var byteCount = 0
    /// Whether the thread is at work, or will be.
    var isBusy = false

    mutating func add(_ entry: Entry) {
      waiting.append(entry)
      entryCount += 1
    }
  }

  /// Microseconds after which the thread looks once more before it sleeps: to wake it costs who logs as much as to write.
  private static let linger: UInt32 = 10_000

  private let file: Int32
  private let capacity: Int
  private let state = Mutex(State())
  private let wake = DispatchSemaphore(value: 0)

  /// Starts the thread, which stays as long as the process.
  ///
  /// - Parameters:
  ///   - file: a descriptor, which stays the caller's.
  ///   - capacity: bytes of lines that may wait.
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

  /// Takes a line, its end included, and does not wait.
  /// - `format`: how a line looks that tells of dropped ones.
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

  /// Waits until all that was logged is written, or until none of it has been for as long as `patience`.
  package func flush(patience: Duration = .seconds(5)) {
    var left = state.withLock { $0.entryCount }
    var deadline = ContinuousClock.now + patience
    while left > 0, .now < deadline {
      usleep(1000)
      let now = state.withLock { $0.entryCount }
      if now != left { deadline = .now + patience }
      left = now
    }
  }

  private func writeAll() {
    while true {
      for entry in takeWaiting() {
        put(entry.text)
        state.withLock { state in
          state.entryCount -= 1
          if case .line(let line) = entry { state.byteCount -= line.utf8.count }
        }
      }
      usleep(Self.linger)
      let isDone = state.withLock { state in
        if state.waiting.isEmpty { state.isBusy = false }
        return !state.isBusy
      }
      if isDone { return }
    }
  }

  private func takeWaiting() -> [Entry] {
    state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
  }

  /// One call for a line, so that it does not mix with what other processes write there.
  ///
  /// What the system does not take at once is written by further calls.
  private func put(_ line: String) {
    var line = line
    line.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let count = systemWrite(file, rest.baseAddress, rest.count)
        // A log that nobody takes is no reason to stop.
        guard count > 0 || errno == EINTR else { return }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(max(0, count)))
      }
    }
  }
}

private func systemWrite(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int { write(file, bytes, count) }

internal import NIOCore

/// The flow-control window with which a connection's streams begin.
///
/// A client may send as much with the headers of a call, before the worker has decided about the call. So the window is
/// small while calls of the connection are refused or their messages wait: these bytes would otherwise take more of the
/// link than the messages whose turn it is, and the headers of further calls would arrive after them.
///
/// The HTTP/2 handler is not informed of a smaller window: it only finds that the client sends less than it may.
struct FirstWindow {
  /// The sender of a SETTINGS frame that the client has not acknowledged.
  enum Sender: Equatable {
    case handler
    case guarding(byteCount: Int)
  }

  /// The window under load, in bytes; enough for the prefix of a message, and for messages that are not
  /// charged.
  static let smallByteCount = MessageAssembler.maxFreeByteCount
  /// The time without a refusal or a wait after which the window is as usual.
  private static let calmTime = TimeAmount.seconds(10)

  private let usualByteCount: Int
  /// The window that the client uses, in bytes.
  private(set) var byteCount: Int
  /// The window that was announced last, in bytes.
  private var announced: Int
  private var lastLoad: NIODeadline?
  private var unacknowledged: [Sender] = []

  /// - `byteCount`: the usual window, which the HTTP/2 handler announces.
  init(_ byteCount: Int) {
    usualByteCount = byteCount
    self.byteCount = byteCount
    announced = byteCount
  }

  /// Notes a call that is refused or waits; returns the window to announce, if another one.
  mutating func noteLoad(_ now: NIODeadline) -> Int? {
    lastLoad = now
    return announce(min(Self.smallByteCount, usualByteCount))
  }

  /// Returns the window to announce when there was no load for a while, if another one.
  mutating func check(_ now: NIODeadline) -> Int? {
    guard let lastLoad, now - lastLoad >= Self.calmTime else { return nil }
    return announce(usualByteCount)
  }

  private mutating func announce(_ byteCount: Int) -> Int? {
    guard byteCount != announced else { return nil }
    announced = byteCount
    unacknowledged.append(.guarding(byteCount: byteCount))
    return byteCount
  }

  /// Notes settings that the HTTP/2 handler has sent.
  mutating func noteSettingsOfHandler() { unacknowledged.append(.handler) }

  /// Notes that the client has acknowledged the oldest settings.
  ///
  /// - Returns: By how much the windows of the connection's streams change; `nil` if the settings are those of the handler.
  mutating func acknowledge() -> Int? {
    guard !unacknowledged.isEmpty, case .guarding(let byteCount) = unacknowledged.removeFirst() else { return nil }
    defer { self.byteCount = byteCount }
    return byteCount - self.byteCount
  }
}

extension ConnectionGuard {
  /// Lets clients send less with the headers of calls, because one was refused or waits.
  func noteLoad() { announce(firstWindow.noteLoad(.now())) }

  /// Announces a first window, if another one.
  func announce(_ byteCount: Int?) {
    if let byteCount { write { $0.writeFirstWindow(byteCount) } }
  }
}

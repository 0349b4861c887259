internal import NIOCore

/// Limits on the time that clients take; `nil` stands for none.
package struct TimeLimits: Sendable {
  /// Maximum time until a new connection has sent its preface and settings.
  package var handshake: Duration? = .seconds(10)
  /// Maximum time without calls until a connection is closed.
  package var idle: Duration? = .seconds(300)
  /// Time without received bytes, while calls are open, after which the client is pinged.
  package var keepalive: Duration? = .seconds(60)
  /// Maximum time until such a ping is answered.
  package var keepaliveAnswer: Duration = .seconds(20)
  /// Age at which a connection is closed gracefully; a tenth more or less, so that not all clients return at once.
  package var age: Duration? = .seconds(3600)
  /// Maximum time that calls may take after that.
  package var grace: Duration? = .seconds(3600)
  /// Maximum time until a client answers that it knows of a drain, after which it can open no more calls.
  ///
  /// A client that does not read, for example an idle one, must not delay the shutdown.
  package var drainAnswer: Duration = .seconds(1)
  /// Maximum time by which the upload of a message may fall behind `minBytesPerSecond`.
  package var upload: Duration? = .seconds(30)
  /// Maximum time by which the reading of results may fall behind `minBytesPerSecond`.
  package var download: Duration? = .seconds(30)
  /// The minimum rate of uploads and of reading results in bytes per second; 0 for any progress.
  package var minBytesPerSecond = 4096
  /// The maximum time that the upload of one message may take at a constant rate.
  package var message: Duration = .seconds(300)
  /// How often connections and calls are checked.
  package var checkInterval: Duration = .seconds(1)

  /// Creates the default limits.
  package init() {}
}

/// Decides when a connection has been idle, silent or open for too long.
struct ConnectionWatch {
  enum Action: Equatable {
    case none
    case ping
    /// Let the open calls finish, then close the connection.
    case drain(String)
    /// Close the connection now, for this reason.
    case cut(String)
  }

  /// The traffic of a connection since the last check.
  struct Observation {
    var hasReceived = false
    var hasHandshaken = true
    var callCount = 0
    var isWritable = true
  }

  private let limits: TimeLimits
  private let opened: NIODeadline
  private let age: Duration?
  private var lastReceived: NIODeadline
  private var lastCall: NIODeadline
  private var lastWritable: NIODeadline
  private var pinged: NIODeadline?
  private var drained: NIODeadline?

  /// - `jitter`: between -1 and 1, where the maximum age lies within its range.
  init(limits: TimeLimits, now: NIODeadline, jitter: Double = .random(in: -1...1)) {
    self.limits = limits
    opened = now
    age = limits.age.map { $0 * (1 + jitter / 10) }
    (lastReceived, lastCall, lastWritable) = (now, now, now)
  }

  mutating func check(_ seen: Observation, at now: NIODeadline) -> Action {
    note(seen, now)
    if !seen.hasHandshaken, let limit = limits.handshake, Duration(now - opened) >= limit {
      return .cut("handshake_timeout")
    }
    if let limit = limits.download, Duration(now - lastWritable) >= limit { return .cut("client_reads_too_slowly") }
    if let pinged, Duration(now - pinged) >= limits.keepaliveAnswer { return .cut("keepalive_timeout") }
    if let drained {
      if let limit = limits.grace, Duration(now - drained) >= limit { return .cut("max_age_grace") }
    } else if let age, Duration(now - opened) >= age {
      drained = now
      return .drain("the connection has reached its maximum age; call again")
    } else if let limit = limits.idle, Duration(now - lastCall) >= limit {
      drained = now
      return .drain("the connection was idle")
    }
    if let limit = limits.keepalive, pinged == nil, seen.callCount > 0, Duration(now - lastReceived) >= limit {
      pinged = now
      return .ping
    }
    return .none
  }

  private mutating func note(_ seen: Observation, _ now: NIODeadline) {
    if seen.hasReceived {
      lastReceived = now
      pinged = nil
    }
    if seen.callCount > 0 { lastCall = now }
    if seen.isWritable { lastWritable = now }
  }
}

/// How far a transfer has fallen behind its minimum rate.
struct TransferLag {
  /// The time that the transfer lacks.
  private var lag = Duration.zero

  /// Adds a period in which `byteCount` bytes were transferred; returns whether the lag has reached the limit.
  mutating func add(_ elapsed: Duration, byteCount: Int, minBytesPerSecond: Int, limit: Duration) -> Bool {
    if minBytesPerSecond == 0 {
      lag = byteCount > 0 ? .zero : lag + elapsed
    } else {
      lag = max(.zero, lag + elapsed - .seconds(Double(byteCount) / Double(minBytesPerSecond)))
    }
    return lag >= limit
  }
}

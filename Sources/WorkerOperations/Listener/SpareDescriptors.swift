internal import LibC
internal import NIOCore
internal import Synchronization

/// Keeps some file descriptors of the process from connections.
///
/// libdispatch ends the process if it finds none when it looks at its threads. Descriptors are counted only as often as
/// the connections since the last count could have used them up.
package struct SpareDescriptors {
  /// How many descriptors connections leave for everything else.
  static let reserve = 16
  /// While fewer are left, those that others open and close matter, so that they are counted every second.
  private static let fewCount = 500

  /// The limit and the number in use, when they were counted last.
  private(set) var limit = 0
  private(set) var usedCount = 0
  /// How many connections may be accepted before the next count.
  private var allowance = 0
  private var counted = NIODeadline.distantPast

  /// Returns whether more connections may be accepted, after `count` others since the last call.
  mutating func remain(
    after count: Int, now: NIODeadline = .now(), limit: Int = Self.limit, used: () -> Int? = Self.usedCount
  ) -> Bool {
    allowance -= count
    let isStale = allowance < Self.fewCount && now - counted > .seconds(1)
    guard allowance <= 0 || limit != self.limit || isStale else { return true }
    self.limit = limit
    counted = now
    // Where they cannot be counted, the error of the system remains.
    guard let used = used() else {
      allowance = Self.fewCount
      return true
    }
    usedCount = used
    let left = limit - used - Self.reserve
    allowance = left > 1 ? left / 2 : left
    return allowance > 0
  }

  /// The process's limit of descriptors.
  package static var limit: Int {
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    return getrlimit(resource, &limit) == 0 ? Int(clamping: limit.rlim_cur) : .max
  }

  /// Counts the process's descriptors; `nil` if the system does not list them.
  package static func usedCount() -> Int? {
    // Without one for the list itself, all are in use.
    guard let directory = opendir("/dev/fd") else { return errno == EMFILE ? limit : nil }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // Without ".", ".." and the directory itself.
    return count - 3
  }
}

/// Whether a listener without `AcceptPause` may keep the connections that it accepts.
package final class ConnectionRoom: Sendable {
  private let spare = Mutex(SpareDescriptors())

  /// Creates the room of one listener.
  package init() {}

  /// Returns whether a connection that was accepted leaves enough descriptors.
  package func suffices() -> Bool { spare.withLock { $0.remain(after: 1) } }
}

/// An error from the result cache.
package enum CacheError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The directory cannot be created or read; the text contains its path and the reason.
  case directory(String)
  /// The wait for a result was ended early, for example because the client disconnected.
  case stopped

  package var description: String {
    switch self {
    case .directory(let reason): reason
    case .stopped: "the wait for a cached result was stopped"
    }
  }
}

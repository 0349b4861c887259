/// Why a cache can't be used, or does not give a result.
package enum CacheError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The directory for the files can't be made or read; the text says which, and why.
  case directory(String)
  /// The wait for a result was ended from outside.
  case stopped

  package var description: String {
    switch self {
    case .directory(let reason): reason
    case .stopped: "the wait for a cached result was stopped"
    }
  }
}

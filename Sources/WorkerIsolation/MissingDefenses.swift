internal import CSandbox

/// The defenses that helpers lack because the system does not offer them; the system call filter is always there.
package struct MissingDefenses: OptionSet, Sendable, Hashable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// User, process, network and IPC namespaces of their own.
  static let namespaces = MissingDefenses(rawValue: CSANDBOX_NAMESPACES.rawValue)
  /// Landlock, which refuses access to files.
  static let landlock = MissingDefenses(rawValue: CSANDBOX_LANDLOCK.rawValue)

  /// The names of the missing defenses, for people.
  package var names: [String] {
    (contains(.namespaces) ? ["namespaces"] : []) + (contains(.landlock) ? ["Landlock"] : [])
  }
}

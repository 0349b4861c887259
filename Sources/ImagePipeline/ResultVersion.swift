/// The version of the results that this module produces.
///
/// Results that were stored under another version are never served.
package enum ResultVersion {
  /// The current version; increase it whenever the same image and configuration produce a different result.
  ///
  /// `ResultVersionTests` compares results with the hashes that its table contains for this version.
  package static let current: UInt64 = 26
}

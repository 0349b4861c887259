/// The version of what this module makes of an image.
///
/// Results that were stored under another version are never served.
package enum ResultVersion {
  /// Increase it whenever the same image and configuration give another result.
  ///
  /// `ResultVersionTests` compares results with the hashes that its table has for this version.
  package static let current: UInt64 = 3
}

/// The layout of the memory that the worker shares with a helper.
package enum HelperLayout {
  /// The size of the first part, which contains the flag that cancels the work.
  static let headByteCount = 4096
  /// The maximum number of an image's bytes in one request.
  ///
  /// A request and its response cost 50 to 100 microseconds, so most photographs need two.
  package static let inputByteCount = 4096 * 1024
  /// The maximum number of a result's bytes in one response: what a pipeline produces before it pauses, and a strip.
  package static let outputByteCount = 640 * 1024
  /// The maximum size of a message.
  static let messageByteCount = 160 * 1024

  static let inputOffset = headByteCount
  static let outputOffset = inputOffset + inputByteCount
  static let byteCount = outputOffset + outputByteCount
}

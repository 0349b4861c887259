internal import CSandbox

/// The layout of the memory that the worker shares with a helper.
///
/// Each part begins with a page, so that the memory of one can be returned to the system without another's.
package struct HelperLayout: Sendable, Hashable {
  /// The maximum number of an image's bytes in one request.
  ///
  /// A request and its response cost 50 to 200 microseconds, so most photographs are one request.
  package static let inputByteCount = 4096 * 1024
  /// The maximum number of a result's bytes in one response: what a pipeline produces before it pauses, and a strip.
  package static let outputByteCount = 640 * 1024
  /// The maximum size of a message.
  package static let messageByteCount = 160 * 1024
  /// The layout for the pages of this system.
  static let current = HelperLayout(pageByteCount: csandbox_page_size())

  /// The size of the first part, which contains the flag that cancels the work: one page.
  package let headByteCount: Int

  /// - `pageByteCount`: the size of a page: 4, 16 or 64 KiB.
  package init(pageByteCount: Int) { headByteCount = pageByteCount }

  /// Where the image's bytes begin.
  package var inputOffset: Int { headByteCount }
  /// Where the result's bytes begin.
  package var outputOffset: Int { inputOffset + Self.inputByteCount }
  /// The size of all parts.
  package var byteCount: Int { outputOffset + Self.outputByteCount }
}

internal import ImageCodecs

/// The properties of the bytes that follow an image's header, if all of them are known.
package struct FollowingBytes: Sendable, Hashable {
  /// The number of bytes.
  package var byteCount: UInt64
  /// Whether they contain the end marker of a JPEG; `false` for other formats.
  package var hasEndMarker: Bool

  package init(byteCount: UInt64, hasEndMarker: Bool) {
    self.byteCount = byteCount
    self.hasEndMarker = hasEndMarker
  }

  /// Examines the bytes that follow a header.
  /// - Parameters:
  ///   - bytes: All bytes of the image that were not consumed.
  ///   - formatName: The name of the image's format, as `ImageReader.formatName` returns it.
  package init(_ bytes: RawSpan, formatName: String?) {
    byteCount = UInt64(bytes.byteCount)
    hasEndMarker = formatName.flatMap(ImageFormat.init(rawValue:))?.hasEndMarker(bytes) ?? false
  }
}

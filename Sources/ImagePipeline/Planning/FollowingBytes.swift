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

  /// Examines the last bytes of an image, without those before them that also follow its header.
  ///
  /// Returns `nil` for a JPEG without an end marker in them: it may be in the bytes before, or between both.
  package init?(last bytes: RawSpan, formatName: String?) {
    self.init(bytes, formatName: formatName)
    guard hasEndMarker || formatName.flatMap(ImageFormat.init(rawValue:)) != .jpeg else { return nil }
  }
}

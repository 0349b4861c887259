public import FoundationEssentials
package import SystemPackage

/// An image to upload.
public struct ImageSource: Sendable {
  enum Kind: Sendable {
    case bytes(Data)
    case file(FilePath)
    case stream(@Sendable () -> Reader)
  }

  let kind: Kind

  /// The bytes of an image file.
  public static func bytes(_ bytes: Data) -> ImageSource { ImageSource(kind: .bytes(bytes)) }

  /// The bytes of an image file.
  public static func bytes(_ bytes: [UInt8]) -> ImageSource { .bytes(Data(bytes)) }

  /// The path of an image file, which is read while it is sent.
  public static func file(_ path: String) -> ImageSource { .file(FilePath(path)) }

  /// The path of an image file, which may have bytes that are not UTF-8.
  package static func file(_ path: FilePath) -> ImageSource { ImageSource(kind: .file(path)) }

  /// The bytes of an image file in parts.
  ///
  /// The image is sent once: a stream cannot be read again, so errors are not retried after it was begun.
  public static func stream<Parts: AsyncSequence & Sendable>(_ parts: Parts) -> ImageSource
  where Parts.Element == Data {
    ImageSource(
      kind: .stream {
        var iterator = parts.makeAsyncIterator()
        return Reader { try await iterator.next() }
      })
  }
}

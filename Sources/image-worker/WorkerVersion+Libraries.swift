internal import ImageCodecs
internal import ImagePipeline
internal import WorkerService

/// A library that this program is linked with, and its version.
struct LinkedLibrary {
  /// The name of the library, as in `libwebp`.
  let name: String
  /// Major, minor and patch number, as in `1.2.4`.
  let version: String

  /// The libraries that decode, encode and draw texts, and that of the sandbox.
  static let all: [LinkedLibrary] =
    CodecLibrary.all.map { LinkedLibrary(name: $0.name, version: $0.version) }
    + TextOverlay.libraries.map { LinkedLibrary(name: $0.name, version: $0.version) }
    + [HelperPool.libraryVersion].compactMap { $0.map { LinkedLibrary(name: "libseccomp", version: $0) } }
}

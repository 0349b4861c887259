internal import CCodecs

/// A library that decodes or encodes, and the version with which this process runs.
///
/// libjpeg-turbo and isa-l do not report it; theirs is the version of the build.
package struct CodecLibrary: Sendable, Hashable {
  /// The name of the library, as in `libwebp`.
  package let name: String
  /// Major, minor and patch number, as in `1.2.4`.
  package let version: String

  /// All linked libraries.
  package static let all: [CodecLibrary] = {
    var libraries: [CodecLibrary] = []
    var library = ccodecs_library()
    while ccodecs_linked_library(libraries.count, &library) {
      libraries.append(
        CodecLibrary(
          name: String(cString: library.name), version: "\(library.major).\(library.minor).\(library.patch)"))
    }
    return libraries
  }()
}

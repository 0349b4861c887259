internal import SystemPackage

/// An address where a file is expected.
enum URLArgument {
  /// The error of a path that is the address of an image elsewhere; `nil` for any other path.
  static func problem(_ text: String) -> String? {
    guard let colon = text.firstRange(of: "://"), colon.lowerBound > text.startIndex,
      text[..<colon.lowerBound].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }),
      !FileSystem.isThere(FilePath(text: text))
    else { return nil }
    return "\(text) is a URL, and image-worker reads files; download it first, as in "
      + "'curl -sSfL URL | image-worker process - --out small.jpg'"
  }
}

internal import LibC
internal import SystemPackage

extension FilePath {
  init(text: String) {
    self.init(platformString: PathText.bytes(of: text).map(CChar.init(bitPattern:)) + [0])
  }

  var text: String { withPlatformString { PathText.text(of: $0) } }

  /// The last component as text; `nil` if there is none.
  var nameText: String? { lastComponent.map { FilePath(root: nil, [$0]).text } }

  /// The last component without its extension, as text; `nil` if there is none.
  var stemText: String? {
    lastComponent.map { name in
      var path = FilePath(root: nil, [name])
      path.extension = nil
      return path.text
    }
  }

  func appending(text: String) -> FilePath { pushing(FilePath(text: text)) }
}

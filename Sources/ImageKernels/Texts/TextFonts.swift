internal import CText

/// Fonts for texts, which are loaded once and never change.
///
/// All threads can use them at the same time: what a text needs beyond them belongs to the call that draws it.
package final class TextFonts: @unchecked Sendable {
  // C's functions only read what it points to, and it lives as long as this object.
  private let handle: OpaquePointer

  /// Loads the fonts of the system, and those of a directory; returns `nil` if there are none.
  package init?(directory: String? = nil) {
    guard let handle = ctext_fonts_load(directory) else { return nil }
    self.handle = handle
  }

  deinit { ctext_fonts_destroy(handle) }

  /// Whether this build draws texts.
  package static var isSupported: Bool { ctext_is_supported() }

  /// The libraries that texts are drawn with, and their versions.
  package static let libraries: [(name: String, version: String)] = {
    var libraries: [(name: String, version: String)] = []
    var library = ctext_library()
    while ctext_linked_library(libraries.count, &library) {
      libraries.append((String(cString: library.name), "\(library.major).\(library.minor).\(library.patch)"))
    }
    return libraries
  }()

  /// The names of the families, sorted, each once.
  package var families: [String] {
    var names: [String] = []
    var index = 0
    while let name = ctext_fonts_family(handle, index).map({ String(cString: $0) }) {
      if names.last != name { names.append(name) }
      index += 1
    }
    return names
  }

  /// Returns the size in pixels of a drawn text.
  package func size(of style: TextStyle) throws(TextError) -> (width: Int, height: Int) {
    var (width, height): (UInt32, UInt32) = (0, 0)
    let status = style.withHandle { ctext_measure(handle, $0, &width, &height) }
    if let error = TextError(status, width: width, height: height) { throw error }
    return (Int(width), Int(height))
  }

  /// Draws a text.
  /// - Parameters:
  ///   - style: The text.
  ///   - opacity: The factor of alpha, 0 to 1.
  ///   - isInterrupted: Called before each letter; returns whether to stop.
  /// - Returns: The pixels, of the size that `size(of:)` returns. Their memory is not charged.
  /// - Throws: The errors of `size(of:)`, `interrupted`, `failed`.
  package func pixels(
    _ style: TextStyle, opacity: Double, isInterrupted: @escaping () -> Bool
  ) throws(TextError) -> OverlayPixels {
    let (width, height) = try size(of: style)
    let interruption = Interruption(isInterrupted)
    var status = CTEXT_FAILED
    let pixels = OverlayPixels(width: width, height: height) { bytes in
      var handle = ctext_interruption(
        is_interrupted: { context in
          context.map { Unmanaged<Interruption>.fromOpaque($0).takeUnretainedValue().isInterrupted() } ?? false
        }, context: Unmanaged.passUnretained(interruption).toOpaque())
      status = style.withHandle {
        ctext_draw(self.handle, $0, opacity, bytes, UInt32(width), UInt32(height), &handle)
      }
    }
    withExtendedLifetime(interruption) {}
    if let error = TextError(status) { throw error }
    return pixels
  }

  /// A function that C calls.
  private final class Interruption {
    let isInterrupted: () -> Bool

    init(_ isInterrupted: @escaping () -> Bool) { self.isInterrupted = isInterrupted }
  }
}

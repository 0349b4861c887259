internal import CCodecs

/// Options for GIF output, which no configuration sets directly.
package struct GIFOptions: Sendable, Hashable {
  /// The maximum number of colors of a palette, 2 to 256, one of which may be transparent.
  package var colorCount = 256
  /// Whether a result with several frames is spooled until its end, so that its size is known before its first byte.
  package var isSpooled = false

  package init() {}

  var handle: ccodecs_gif_options {
    ccodecs_gif_options(color_count: UInt16(clamping: colorCount), is_spooled: isSpooled)
  }
}

internal import CText
package import Fields

/// How a text is drawn.
///
/// Lengths are in pixels.
package struct TextStyle: Sendable, Hashable {
  /// The alignment of lines with each other.
  package enum Alignment: String, Sendable, Hashable, CaseIterable {
    /// At the side where a line begins: on the right for scripts from right to left.
    case start
    /// In the middle.
    case center
    /// At the side where a line ends.
    case end
  }

  /// The distance of a color around letters from them.
  package struct Outline: Sendable, Hashable {
    /// The distance.
    package var width: Double
    /// Red, green and blue of sRGB.
    package var color: SIMD3<UInt8>

    package init(width: Double, color: SIMD3<UInt8>) {
      self.width = width
      self.color = color
    }
  }

  /// A background, and its distance from the lines.
  package struct Box: Sendable, Hashable {
    /// Red, green and blue of sRGB.
    package var color: SIMD3<UInt8>
    /// The distance.
    package var padding: Double

    package init(color: SIMD3<UInt8>, padding: Double) {
      self.color = color
      self.padding = padding
    }
  }

  /// The text; has no control characters other than line feeds.
  @Exact package var text: String
  /// Families and style in Pango's notation, as in `DejaVu Sans Bold`.
  @Exact package var font: String
  /// The size of the font's em square, above 0.
  package var size: Double
  /// The width above which lines are wrapped.
  package var maxWidth: Double
  /// The alignment of lines with each other.
  package var alignment = Alignment.start
  /// The color of letters: red, green and blue of sRGB.
  package var color = SIMD3<UInt8>(repeating: 255)
  /// The outline of letters; `nil` for none.
  package var outline: Outline?
  /// The background; `nil` for none.
  package var box: Box?
  /// The number of clockwise quarter turns, after everything else.
  package var quarterTurns = 0

  package init(text: String, font: String, size: Double, maxWidth: Double) {
    self.text = text
    self.font = font
    self.size = size
    self.maxWidth = maxWidth
  }

  /// The maximum size of a text in bytes.
  package static let maxByteCount = CTEXT_MAX_TEXT_BYTES
  /// The maximum width and height of a drawn text.
  package static let maxSide = CTEXT_MAX_SIDE
  /// The maximum memory in bytes that measuring or drawing a text takes, in addition to its pixels.
  package static let overheadByteCount = CTEXT_OVERHEAD

  /// Calls `body` with the style as C has it, which is valid only during the call.
  func withHandle<Result>(_ body: (UnsafePointer<ctext_style>) -> Result) -> Result {
    let bytes = Array(text.utf8CString)
    return bytes.withUnsafeBufferPointer { text in
      font.withCString { font in
        var handle = ctext_style()
        handle.text = text.baseAddress
        handle.byte_count = text.count - 1
        handle.font = font
        handle.size = size
        handle.max_width = maxWidth
        handle.alignment = alignment.handle
        handle.color = Self.handle(color)
        handle.outline_width = outline?.width ?? 0
        handle.outline_color = Self.handle(outline?.color ?? SIMD3())
        handle.has_box = box != nil
        handle.box_color = Self.handle(box?.color ?? SIMD3())
        handle.box_padding = box?.padding ?? 0
        handle.quarter_turns = UInt32(quarterTurns)
        return body(&handle)
      }
    }
  }

  private static func handle(_ color: SIMD3<UInt8>) -> ctext_color {
    ctext_color(red: color.x, green: color.y, blue: color.z)
  }
}

extension TextStyle.Alignment {
  fileprivate var handle: ctext_alignment {
    switch self {
    case .start: CTEXT_START
    case .center: CTEXT_CENTER
    case .end: CTEXT_END
    }
  }
}

/// The reason why a text is not drawn.
package enum TextError: Error, Hashable {
  /// No font has one of the families.
  case unknownFamily
  /// The font has a size, or something else that is neither a family nor a style.
  case invalidFont
  /// A side exceeds `TextStyle.maxSide`.
  case tooLarge(width: Int, height: Int)
  /// Its caller has asked to stop.
  case interrupted
  /// The system has no memory.
  case failed

  init?(_ status: ctext_status, width: UInt32 = 0, height: UInt32 = 0) {
    switch status {
    case CTEXT_OK: return nil
    case CTEXT_UNKNOWN_FAMILY: self = .unknownFamily
    case CTEXT_INVALID_FONT: self = .invalidFont
    case CTEXT_TOO_LARGE: self = .tooLarge(width: Int(width), height: Int(height))
    case CTEXT_INTERRUPTED: self = .interrupted
    default: self = .failed
    }
  }
}

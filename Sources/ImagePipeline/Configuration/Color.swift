package import Fields

/// An opaque sRGB color with 8 bits per channel.
package struct Color: Sendable, Hashable {
  /// Red, 0 to 255.
  package var red: UInt8
  /// Green, 0 to 255.
  package var green: UInt8
  /// Blue, 0 to 255.
  package var blue: UInt8

  package init(red: UInt8, green: UInt8, blue: UInt8) {
    self.red = red
    self.green = green
    self.blue = blue
  }

  /// Opaque white.
  package static let white = Color(red: 255, green: 255, blue: 255)
}

extension Color: FieldRecord {
  /// Creates black, the color of a message without values.
  package init() { self.init(red: 0, green: 0, blue: 0) }

  package static let fields: [Field<Color>] = [
    Field("red", \.red), Field("green", \.green), Field("blue", \.blue),
  ]

  /// Parses a color in CSS notation: `#ffffff` or `#fff`.
  package init(text: String, field: String) throws(FieldError) {
    let digits = text.dropFirst().compactMap(\.hexDigitValue)
    let isWhole = text.first == "#" && digits.count == text.count - 1
    switch digits.count {
    case 6 where isWhole:
      let channels = [0, 2, 4].map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
      self.init(red: channels[0], green: channels[1], blue: channels[2])
    case 3 where isWhole:
      let channels = digits.map { UInt8($0 * 17) }
      self.init(red: channels[0], green: channels[1], blue: channels[2])
    default: throw Self.unreadable(text, field: field)
    }
  }

  package static var textForm: String { "a color as #rrggbb or #rgb" }
}

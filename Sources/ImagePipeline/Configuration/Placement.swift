package import Fields
package import ImageKernels

/// The way in which an image is resized to its bounds.
package enum ResizeMode: String, Sendable, Hashable, FieldChoice {
  /// Keep the aspect ratio; neither side exceeds its bound.
  case fit
  /// Keep the aspect ratio; both sides reach their bounds, and the excess is cropped.
  case fill
  /// Scale to exactly the bounds, regardless of the aspect ratio.
  case stretch
}

extension ResamplingKernel: FieldChoice {}

/// A side or corner of the displayed image, or its center.
package enum Gravity: String, Sendable, Hashable, FieldChoice {
  case center, north
  case northEast = "north_east"
  case east
  case southEast = "south_east"
  case south
  case southWest = "south_west"
  case west
  case northWest = "north_west"
  /// The part that attracts attention; the center where the pixels of the image are not known.
  case smart
  /// The faces; as `smart` without one.
  case faces

  /// Other accepted spellings.
  package static let synonyms: [String: Gravity] = [
    "top": .north, "top-right": .northEast, "right": .east, "bottom-right": .southEast, "bottom": .south,
    "bottom-left": .southWest, "left": .west, "top-left": .northWest,
  ]

  package static var textForm: String {
    "center, smart, faces, or a side or corner as in north or north-west, top or top-left"
  }

  /// The fraction of the free columns that lies to the left, 0 to 1.
  package var x: Double {
    switch self {
    case .northWest, .west, .southWest: 0
    case .north, .center, .south, .smart, .faces: 0.5
    case .northEast, .east, .southEast: 1
    }
  }

  /// The fraction of the free rows that lies above, 0 to 1.
  package var y: Double {
    switch self {
    case .northWest, .north, .northEast: 0
    case .west, .center, .east, .smart, .faces: 0.5
    case .southWest, .south, .southEast: 1
    }
  }
}

/// A position in the displayed image, in fractions of its width and height from the upper left corner.
package struct Point: Sendable, Hashable {
  /// The horizontal position from the left edge, 0 to 1.
  package var x: Double
  /// The vertical position from the top edge, 0 to 1.
  package var y: Double

  package init(x: Double, y: Double) {
    self.x = x
    self.y = y
  }

}

extension Point: FieldRecord {
  /// Creates the upper left corner, the position of a message without values.
  package init() { self.init(x: 0, y: 0) }

  package static let fields: [Field<Point>] = [
    Field("x", \.x, .values("between 0 and 1") { (0...1).contains($0) }),
    Field("y", \.y, .values("between 0 and 1") { (0...1).contains($0) }),
  ]

  /// Parses a position such as `0.3,0.7`.
  package init(text: String, field: String) throws(FieldError) {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).compactMap { Double($0) }
    guard numbers.count == 2, text.filter({ $0 == "," }).count == 1 else { throw Self.unreadable(text, field: field) }
    self.init(x: numbers[0], y: numbers[1])
  }

  package static var textForm: String { "x,y, each between 0 and 1, as in 0.3,0.7" }
}

/// A rectangular part of the displayed image.
package struct Crop: Sendable, Hashable {
  /// The unit of a crop's numbers.
  package enum Unit: String, Sendable, Hashable, FieldChoice {
    /// Pixels of the displayed image.
    case pixels
    /// Fractions of the width and height of the displayed image.
    case fractions
  }

  /// The unit of the other fields.
  package var unit: Unit
  /// The left edge, at least 0.
  package var x: Double
  /// The top edge, at least 0.
  package var y: Double
  /// The width, above 0.
  package var width: Double
  /// The height, above 0.
  package var height: Double

  package init(unit: Unit = .pixels, x: Double = 0, y: Double = 0, width: Double, height: Double) {
    self.unit = unit
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }

  /// Returns the crop of an image of `size`, rounded to whole pixels and at least one pixel on each axis.
  /// - Throws: `invalidField` if the crop extends beyond the image.
  func window(in size: PixelSize) throws(PipelineError) -> Window {
    let horizontal = try Self.span(x, width, size.width, unit, ("x", "width"))
    let vertical = try Self.span(y, height, size.height, unit, ("y", "height"))
    return Window(x: horizontal.start, y: vertical.start, width: horizontal.length, height: vertical.length)
  }

  private static func span(
    _ start: Double, _ length: Double, _ whole: Int, _ unit: Unit, _ names: (start: String, length: String)
  ) throws(PipelineError) -> (start: Double, length: Double) {
    let largest = unit == .pixels ? Double(whole) : 1
    let scale = unit == .pixels ? 1 : Double(whole)
    // Fractions such as 0.7 and 0.3 add up to a little more than 1.
    guard start < largest, start + length <= largest * (1 + 1e-9) else {
      let field = start < largest ? names.length : names.start
      throw PipelineError(
        .invalidField,
        "crop.\(names.start) \(start) and crop.\(names.length) \(length) exceed the image's \(largest)",
        field: "crop.\(field)")
    }
    let first = min((start * scale).rounded(), Double(whole - 1))
    let last = min(max(((start + length) * scale).rounded(), first + 1), Double(whole))
    return (first, last - first)
  }
}

extension Crop: FieldRecord {
  /// Creates an empty crop, the crop of a message without values.
  package init() { self.init(width: 0, height: 0) }

  package static let fields: [Field<Crop>] = [
    Field("unit", \.unit), Field("x", \.x, start), Field("y", \.y, start), Field("width", \.width, length),
    Field("height", \.height, length),
  ]

  private static let start = FieldRule<Double>.values("a finite number of at least 0") { $0 >= 0 && $0.isFinite }
  private static let length = FieldRule<Double>.values("a finite number above 0") { $0 > 0 && $0.isFinite }

  /// Parses a crop such as `10,20,300x200` in pixels, or `0.1,0.1,0.5x0.5` in fractions if a number has a decimal
  /// point.
  package init(text: String, field: String) throws(FieldError) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    let sides = parts.last?.split(separator: "x", omittingEmptySubsequences: false) ?? []
    let numbers = (parts.dropLast() + sides).compactMap { Double($0) }
    guard parts.count == 3, sides.count == 2, numbers.count == 4 else { throw Self.unreadable(text, field: field) }
    self.init(
      unit: text.contains(".") ? .fractions : .pixels, x: numbers[0], y: numbers[1], width: numbers[2],
      height: numbers[3])
  }

  package static var textForm: String {
    "x,y,WIDTHxHEIGHT in pixels, as in 10,20,300x200; or, if a number has a decimal point, in fractions of the "
      + "image, as in 0.1,0.1,0.5x0.5"
  }

  /// Checks everything that does not depend on the size of the image.
  func checkNumbers(_ field: String) throws(FieldError) {
    try validate(field)
    guard unit == .fractions else { return }
    do throws(PipelineError) { _ = try window(in: PixelSize(width: 1 << 20, height: 1 << 20)) } catch {
      throw FieldError(error.message, field: error.field ?? field)
    }
  }
}

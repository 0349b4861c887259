/// A side or corner of the shown picture, or its middle.
package enum Gravity: String, Sendable, Hashable, CaseIterable {
  case center, north, northEast, east, southEast, south, southWest, west, northWest

  /// The share of free columns that lies to the left.
  package var x: Double {
    switch self {
    case .northWest, .west, .southWest: 0
    case .north, .center, .south: 0.5
    case .northEast, .east, .southEast: 1
    }
  }

  /// The share of free rows that lies above.
  package var y: Double {
    switch self {
    case .northWest, .north, .northEast: 0
    case .west, .center, .east: 0.5
    case .southWest, .south, .southEast: 1
    }
  }
}

/// A place in the shown picture, in fractions of its width and height from its upper left corner.
package struct Point: Sendable, Hashable {
  package var x: Double
  package var y: Double

  package init(x: Double, y: Double) {
    self.x = x
    self.y = y
  }

  func validate(_ field: String) throws(PipelineError) {
    for (name, value) in [("x", x), ("y", y)] where !(0...1).contains(value) {
      throw PipelineError(
        .invalidField, "\(field).\(name) is \(value); it must be between 0 and 1", field: "\(field).\(name)")
    }
  }
}

/// A part of the shown picture, from its upper left corner.
package struct Crop: Sendable, Hashable {
  /// What the numbers count in.
  package enum Unit: String, Sendable, Hashable, CaseIterable {
    /// Pixels of the shown picture.
    case pixels
    /// Fractions of its width and height.
    case fractions
  }

  package var unit: Unit
  package var x: Double
  package var y: Double
  package var width: Double
  package var height: Double

  package init(unit: Unit = .pixels, x: Double = 0, y: Double = 0, width: Double, height: Double) {
    self.unit = unit
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }

  /// What can be said without the picture.
  func validate() throws(PipelineError) {
    for (name, value) in [("x", x), ("y", y)] where !(value >= 0 && value.isFinite) {
      throw PipelineError(
        .invalidField, "crop.\(name) is \(value); it must be a finite number of at least 0", field: "crop.\(name)")
    }
    for (name, value) in [("width", width), ("height", height)] where !(value > 0 && value.isFinite) {
      throw PipelineError(
        .invalidField, "crop.\(name) is \(value); it must be a finite number above 0", field: "crop.\(name)")
    }
    if unit == .fractions { _ = try window(in: PixelSize(width: 1 << 20, height: 1 << 20)) }
  }

  /// The whole pixels that are nearest to this part of a picture, at least one on each axis.
  /// - Throws: `invalidField` when it reaches beyond the picture.
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
        "crop.\(names.start) \(start) and crop.\(names.length) \(length) reach beyond the picture's \(largest)",
        field: "crop.\(field)")
    }
    let first = min((start * scale).rounded(), Double(whole - 1))
    let last = min(max(((start + length) * scale).rounded(), first + 1), Double(whole))
    return (first, last - first)
  }
}

package import Fields

/// A part of the displayed image to hide.
package struct Region: Sendable, Hashable {
  /// The shape of a region.
  package enum Shape: String, Sendable, Hashable, FieldChoice {
    /// The whole area.
    case rectangle
    /// The ellipse in the area.
    case ellipse
  }

  /// What a region shows instead of its pixels.
  package enum Effect: String, Sendable, Hashable, FieldChoice {
    /// A gradient between the colors of blocks.
    case blur
    /// The colors of blocks.
    case pixelate
    /// The color of the region.
    case fill
  }

  /// The shape.
  package var shape: Shape
  /// The rectangle, or the one around the ellipse.
  package var area: Crop
  /// What the region shows.
  package var effect: Effect
  /// The color of `fill`.
  package var color: Color

  package init(
    shape: Shape = .rectangle, area: Crop, effect: Effect = .fill, color: Color = Color(red: 0, green: 0, blue: 0)
  ) {
    self.shape = shape
    self.area = area
    self.effect = effect
    self.color = color
  }

  /// The maximum number of regions.
  package static let maxCount = 100
}

extension Region: FieldRecord {
  /// Creates an empty region, the region of a message without values.
  package init() { self.init(area: Crop()) }

  package static let fields: [Field<Region>] = [
    Field("shape", \.shape), Field("area", \.area), Field("effect", \.effect), Field("color", \.color),
  ]

  /// Parses a region such as `10,20,300x200`, `0.1,0.1,0.5x0.5,ellipse,blur` or `0,0,50x50,#ff0000`.
  package init(text: String, field: String) throws(FieldError) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count >= 3 else { throw Self.unreadable(text, field: field) }
    do throws(FieldError) {
      self.init(area: try Crop(text: parts[..<3].joined(separator: ","), field: field))
      try area.validate(field)
    } catch { throw Self.unreadable(text, field: field) }
    for part in parts[3...].map(String.init) {
      if let shape = Shape(rawValue: part) {
        self.shape = shape
      } else if let effect = Effect(rawValue: part) {
        self.effect = effect
      } else if let color = try? Color(text: part, field: field) {
        self.color = color
      } else {
        throw Self.unreadable(text, field: field)
      }
    }
  }

  package static var textForm: String {
    "x,y,WIDTHxHEIGHT, in pixels or fractions as for --crop; then, as needed, ellipse, blur or pixelate, or a color as "
      + "#rrggbb"
  }
}

extension ProcessingConfiguration {
  /// Checks the number of regions, and what does not depend on the size of the image.
  /// - Throws: `invalidField` with the path of the first invalid value.
  package func validateRegions() throws(PipelineError) {
    guard let regions else { return }
    guard regions.count <= Region.maxCount else {
      throw PipelineError(
        .invalidField, "regions has \(regions.count) entries; at most \(Region.maxCount) are accepted", field: "regions"
      )
    }
    for (index, region) in regions.enumerated() {
      do throws(FieldError) { try region.area.validate("regions[\(index)].area") } catch { throw PipelineError(error) }
    }
  }

  /// Whether pixels of the image are hidden.
  var hidesPixels: Bool { !(regions ?? []).isEmpty }
}

package import Fields

/// A part of the displayed image to hide.
package struct Region: Sendable, Hashable {
  /// The shape of a region.
  package enum Shape: String, Sendable, Hashable, FieldChoice {
    /// The whole area.
    case rectangle
    /// The ellipse in the area.
    case ellipse
    /// Each face that is found in the image.
    case faces
  }

  /// The effect that a region shows instead of its pixels.
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
  /// The rectangle, or the one around the ellipse; `nil` for faces.
  package var area: Crop?
  /// The effect of the region.
  package var effect: Effect
  /// The color of `fill`.
  package var color: Color

  package init(
    shape: Shape = .rectangle, area: Crop?, effect: Effect = .fill, color: Color = Color(red: 0, green: 0, blue: 0)
  ) {
    self.shape = shape
    self.area = area
    self.effect = effect
    self.color = color
  }

  /// The maximum number of regions.
  package static let maxCount = 100
  /// The maximum number of faces that are found in an image.
  package static let maxFaceCount = 100
  /// The maximum number of rectangles that regions hide: one of them may stand for all faces.
  package static let maxHiddenCount = maxCount + maxFaceCount
}

extension Region: FieldRecord {
  /// Creates an empty region, the region of a message without values.
  package init() { self.init(area: nil) }

  package static let fields: [Field<Region>] = [
    Field("shape", \.shape), Field("area", \.area), Field("effect", \.effect), Field("color", \.color),
  ]

  /// Parses a region such as `10,20,300x200`, `0.1,0.1,0.5x0.5,ellipse,blur`, `0,0,50x50,#ff0000` or `faces,blur`.
  package init(text: String, field: String) throws(FieldError) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    let hidesFaces = parts[0] == Shape.faces.rawValue
    guard hidesFaces || parts.count >= 3 else { throw Self.unreadable(text, field: field) }
    if hidesFaces {
      self.init(shape: .faces, area: nil)
    } else {
      do throws(FieldError) {
        let area = try Crop(text: parts[..<3].joined(separator: ","), field: field)
        try area.validate(field)
        self.init(area: area)
      } catch { throw Self.unreadable(text, field: field) }
    }
    for part in parts[(hidesFaces ? 1 : 3)...].map(String.init) {
      if !hidesFaces, let shape = Shape(rawValue: part), shape != .faces {
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
    "x,y,WIDTHxHEIGHT, in pixels or fractions as for --crop, or faces; then, as needed, ellipse, blur or pixelate, or a "
      + "color as #rrggbb"
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
    guard regions.count(where: { $0.shape == .faces }) <= 1 else {
      throw PipelineError(
        .invalidField, "regions has several entries of the shape FACES; one hides all faces", field: "regions")
    }
    for (index, region) in regions.enumerated() {
      let field = "regions[\(index)].area"
      guard region.shape != .faces else {
        guard region.area == nil else {
          throw PipelineError(
            .invalidField, "\(field) is set for the shape FACES, whose areas are found; leave it unset", field: field)
        }
        continue
      }
      do throws(FieldError) { try (region.area ?? Crop()).validate(field) } catch { throw PipelineError(error) }
    }
  }

  /// Whether pixels of the image are hidden.
  var hidesPixels: Bool { !(regions ?? []).isEmpty }
}

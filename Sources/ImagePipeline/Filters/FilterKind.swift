/// The available filters, by the names that requests use.
///
/// Colors are sRGB values between 0 and 1, as stored and not linear, unless a filter states otherwise; the filter
/// functions of CSS use the same values. The result of a filter is mixed with its input according to the intensity, and
/// then clamped.
package enum FilterKind: String, Sendable, Hashable, CaseIterable {
  /// Filter Effects Module Level 1 (W3C), `grayscale()`.
  case grayscale
  /// Filter Effects Module Level 1, `sepia()`.
  case sepia
  /// Filter Effects Module Level 1, `invert()`.
  case invert
  /// Filter Effects Module Level 1, `brightness()`.
  case brightness
  /// Filter Effects Module Level 1, `contrast()`.
  case contrast
  /// Filter Effects Module Level 1, `saturate()`.
  case saturation
  /// Filter Effects Module Level 1, `hue-rotate()`.
  case hue
  /// Filter Effects Module Level 1, `feFuncR`, `feFuncG` and `feFuncB` of type `gamma`.
  case gamma
  /// Multiplies linear light, computed with the transfer function of sRGB (IEC 61966-2-1).
  case exposure
  /// Compositing and Blending Level 1 (W3C), blend mode `multiply`, with an image of one color.
  case tint
  /// Maps luminance, as defined by `grayscale`, to the line between two colors.
  case duotone
  /// Multiplies by 1 - s, where s rises smoothly from the radius outwards: 0 is the center, 1 the corners.
  case vignette
  /// Filter Effects Module Level 1, `feGaussianBlur` with `edgeMode` `duplicate`.
  case blur
  /// Unsharp mask: color + amount * (color - blurred).
  case sharpen
  /// Replaces every pixel of a block by the mean of the block.
  case pixelate
  /// White if luminance, as defined by `grayscale`, is at least the level; otherwise black.
  case threshold

  /// A description in one sentence, to help choose a filter.
  package var summary: String {
    switch self {
    case .grayscale: "Convert to gray of the same luminance."
    case .sepia: "Tint in the brown of old photographs."
    case .invert: "Invert colors."
    case .brightness: "Multiply colors."
    case .contrast: "Multiply the distance from middle gray."
    case .saturation: "Multiply the distance from gray of the same luminance."
    case .hue: "Rotate the hue and keep luminance."
    case .gamma: "Apply a tone curve: amplitude * color ^ exponent + offset."
    case .exposure: "Multiply linear light by 2 ^ stops."
    case .tint: "Multiply by a color, like light through colored glass."
    case .duotone: "Map luminance to a mix of a dark and a light color."
    case .vignette: "Darken toward the corners."
    case .blur: "Apply a Gaussian blur, also to alpha."
    case .sharpen: "Apply an unsharp mask."
    case .pixelate: "Fill square blocks with their mean color, starting at the upper left corner."
    case .threshold: "Make pixels white where luminance reaches a level, and black elsewhere."
    }
  }

  /// The parameters of the filter, in listing order.
  package var parameters: [FilterParameter] {
    switch self {
    case .grayscale, .sepia, .invert: []
    case .brightness, .contrast: [FilterParameter("amount", 0...8, default: 1.5, "factor; 1 changes nothing")]
    case .saturation: [FilterParameter("amount", 0...8, default: 1.5, "factor; 0 is gray, 1 changes nothing")]
    case .hue: [FilterParameter("angle", -360...360, default: 90, "degrees")]
    case .gamma:
      [
        FilterParameter("exponent", 0.1...10, default: 1 / 2.2, "below 1 brightens"),
        FilterParameter("amplitude", 0...8, default: 1, "factor"),
        FilterParameter("offset", -1...1, default: 0, "added share of white"),
      ]
    case .exposure: [FilterParameter("stops", -8...8, default: 1, "exposure in stops; each one doubles the light")]
    case .tint: Self.color("", of: "the glass", default: (255, 220, 180))
    case .duotone:
      Self.color("dark_", of: "the dark color", default: (20, 30, 90))
        + Self.color("light_", of: "the light color", default: (255, 220, 160))
    case .vignette:
      [
        FilterParameter("radius", 0...1, default: 0.5, "distance at which it begins; 0 is the center, 1 the corners"),
        FilterParameter("softness", 0.01...2, default: 0.5, "width of the transition to black, in the same unit"),
      ]
    case .blur: [Self.radius(default: 4)]
    case .sharpen:
      [
        Self.radius(default: 1),
        FilterParameter("amount", 0...5, default: 1, "factor of the added difference"),
        FilterParameter("threshold", 0...1, default: 0, "differences up to this share of white are not sharpened"),
      ]
    case .pixelate:
      [
        FilterParameter(
          "size", 1...256, default: 8, isWhole: true, isLength: true, "side of a block in pixels of the result")
      ]
    case .threshold: [FilterParameter("level", 0...1, default: 0.5, "minimum luminance of white")]
    }
  }

  private static func radius(default defaultValue: Double) -> FilterParameter {
    FilterParameter(
      "radius", 0.1...50, default: defaultValue, isLength: true, "standard deviation in pixels of the result")
  }

  private static func color(
    _ prefix: String, of what: String, default color: (Double, Double, Double)
  ) -> [FilterParameter] {
    [("red", color.0), ("green", color.1), ("blue", color.2)].map { name, value in
      FilterParameter("\(prefix)\(name)", 0...255, default: value, "\(name) of \(what)")
    }
  }
}

internal import ImageCodecs

/// A rectangle in an image's pixels; edges may lie inside pixels.
package struct Window: Sendable, Hashable {
  package var x: Double
  package var y: Double
  package var width: Double
  package var height: Double

  package init(x: Double, y: Double, width: Double, height: Double) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }

  package init(_ size: PixelSize) {
    self.init(x: 0, y: 0, width: Double(size.width), height: Double(size.height))
  }

  /// At least one pixel on each axis.
  package var pixelSize: PixelSize {
    PixelSize(width: max(1, Int(width.rounded())), height: max(1, Int(height.rounded())))
  }

  /// Where this window of an image shown with `size` lies in the image as stored.
  func stored(_ orientation: Orientation, shown size: PixelSize) -> Window {
    let (farX, farY) = (Double(size.width) - x - width, Double(size.height) - y - height)
    guard orientation.swapsAxes else {
      return Window(
        x: orientation.reversesColumns ? farX : x, y: orientation.reversesRows ? farY : y, width: width,
        height: height)
    }
    return Window(
      x: orientation.reversesColumns ? farY : y, y: orientation.reversesRows ? farX : x, width: height, height: width)
  }
}

/// What is taken of a shown image, what that becomes, and where it stands in the result.
package struct Framing: Sendable, Hashable {
  /// In pixels of the shown image.
  package let window: Window
  /// What the window becomes.
  package let imageSize: PixelSize
  /// The result; larger than `imageSize` where it is padded.
  package let canvasSize: PixelSize
  /// Where the image's upper left corner stands on the canvas.
  package let left: Int
  /// Rows of padding above the image.
  package let top: Int

  /// Whether the canvas is larger than the image.
  package var isPadded: Bool { imageSize != canvasSize }

  private init(window: Window, imageSize: PixelSize, canvasSize: PixelSize, left: Int, top: Int) {
    self.window = window
    self.imageSize = imageSize
    self.canvasSize = canvasSize
    self.left = left
    self.top = top
  }

  /// The same part of the image at the same place, on a canvas that is `factor` as large, at most 1.
  ///
  /// Edges are rounded to whole pixels; the image and the canvas have at least one on each axis.
  func scaled(by factor: Double) -> Framing {
    func scaled(_ length: Int) -> Int { max(1, Int((Double(length) * factor).rounded())) }
    func placed(_ start: Int, _ length: Int, in canvas: Int) -> (start: Int, length: Int) {
      let first = min(Int((Double(start) * factor).rounded()), canvas - 1)
      return (first, max(1, min(scaled(start + length), canvas) - first))
    }
    let canvas = PixelSize(width: scaled(canvasSize.width), height: scaled(canvasSize.height))
    let (left, width) = placed(left, imageSize.width, in: canvas.width)
    let (top, height) = placed(top, imageSize.height, in: canvas.height)
    return Framing(
      window: window, imageSize: PixelSize(width: width, height: height), canvasSize: canvas, left: left, top: top)
  }

  /// How many times smaller the image becomes than its window, on the axis where it does so less.
  var reduction: Double {
    min(window.width / Double(imageSize.width), window.height / Double(imageSize.height))
  }

  /// Crop, bounds, mode and padding of a configuration, for an image shown with `size`.
  ///
  /// The crop comes first. `fit` then scales both sides by one factor such that both bounds hold; `fill` by one such that
  /// both are reached, and cuts off what overhangs by gravity or around the focus point; `stretch` takes the bounds as
  /// they are. Nothing is enlarged unless `allowUpscale`: `fill` and `stretch` then keep the smaller of bound and side.
  /// Each side is rounded to the nearest pixel, and is at least 1. Bounds are divided by `scaleFactor`, rounded down.
  /// - Throws: `invalidField` for a crop that is not in the image.
  package init(shown size: PixelSize, configuration: ProcessingConfiguration) throws(PipelineError) {
    let factor = configuration.scaleFactor ?? 1
    func bound(_ value: Int?) -> Int? { value.map { max(1, Int(Double($0) / factor)) } }
    let (maxWidth, maxHeight) = (bound(configuration.maxWidth), bound(configuration.maxHeight))
    let crop = try configuration.crop?.window(in: size) ?? Window(size)
    let mayGrow = configuration.allowUpscale ?? false
    let gravity = configuration.gravity ?? .center
    func side(_ bound: Int, _ length: Double) -> Int { mayGrow ? bound : min(bound, max(1, Int(length.rounded()))) }

    var window = crop
    let image: PixelSize
    switch (configuration.resizeMode ?? .fit, maxWidth, maxHeight) {
    case (.stretch, let maxWidth?, let maxHeight?):
      image = PixelSize(width: side(maxWidth, crop.width), height: side(maxHeight, crop.height))
    case (.fill, let maxWidth?, let maxHeight?):
      image = PixelSize(width: side(maxWidth, crop.width), height: side(maxHeight, crop.height))
      window = Self.cover(crop, image, gravity: gravity, focus: configuration.focusPoint, shown: size)
    default:
      image = Self.fit(crop, maxWidth: maxWidth, maxHeight: maxHeight, mayGrow: mayGrow)
    }
    self.window = window
    imageSize = image
    guard configuration.pad ?? false else {
      (canvasSize, left, top) = (image, 0, 0)
      return
    }
    canvasSize = PixelSize(
      width: max(image.width, maxWidth ?? 0), height: max(image.height, maxHeight ?? 0))
    left = Int(Double(canvasSize.width - image.width) * gravity.x)
    top = Int(Double(canvasSize.height - image.height) * gravity.y)
  }

  private static func fit(_ crop: Window, maxWidth: Int?, maxHeight: Int?, mayGrow: Bool) -> PixelSize {
    let scales = [maxWidth.map { Double($0) / crop.width }, maxHeight.map { Double($0) / crop.height }]
    let least = scales.compactMap(\.self).min() ?? 1
    let scale = mayGrow ? least : min(least, 1)
    func side(_ length: Double, _ bound: Int?) -> Int {
      min(max(1, Int((length * scale).rounded())), bound ?? ProcessingConfiguration.maxBound)
    }
    return scale == 1
      ? crop.pixelSize : PixelSize(width: side(crop.width, maxWidth), height: side(crop.height, maxHeight))
  }

  /// The largest part of `crop` with the shape of `target`.
  private static func cover(
    _ crop: Window, _ target: PixelSize, gravity: Gravity, focus: Point?, shown: PixelSize
  ) -> Window {
    let (across, down) = (Double(target.width) / crop.width, Double(target.height) / crop.height)
    let width = across >= down ? crop.width : Double(target.width) / down
    let height = down >= across ? crop.height : Double(target.height) / across
    func start(_ first: Double, _ free: Double, _ share: Double, _ centre: Double?, _ length: Double) -> Double {
      guard let centre else { return first + free * share }
      return min(max(centre - length / 2, first), first + free)
    }
    return Window(
      x: start(crop.x, crop.width - width, gravity.x, focus.map { $0.x * Double(shown.width) }, width),
      y: start(crop.y, crop.height - height, gravity.y, focus.map { $0.y * Double(shown.height) }, height),
      width: width, height: height)
  }
}

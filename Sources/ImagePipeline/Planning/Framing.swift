internal import ImageCodecs
internal import ImageKernels

/// A rectangle in pixel coordinates; its edges may lie between pixel boundaries.
package struct Window: Sendable, Hashable {
  /// The left edge in pixels.
  package var x: Double
  /// The top edge in pixels.
  package var y: Double
  /// The width in pixels.
  package var width: Double
  /// The height in pixels.
  package var height: Double

  package init(x: Double, y: Double, width: Double, height: Double) {
    self.x = x
    self.y = y
    self.width = width
    self.height = height
  }

  /// A window that covers a whole image of `size`.
  package init(_ size: PixelSize) {
    self.init(x: 0, y: 0, width: Double(size.width), height: Double(size.height))
  }

  /// The size rounded to whole pixels, at least 1 on each axis.
  package var pixelSize: PixelSize {
    PixelSize(width: max(1, Int(width.rounded())), height: max(1, Int(height.rounded())))
  }

  /// Returns this window with the pixels of `crop` around it that the kernels of a resize to `size` reach.
  fileprivate func surrounded(within crop: Window, scaledTo size: PixelSize) -> Window {
    func span(_ start: Double, _ length: Double, _ count: Int, _ first: Double, _ whole: Double) -> (Double, Double) {
      if length == Double(count), start == start.rounded() { return (start, length) }
      // And a pixel for rounding.
      let reach = ResamplingKernel.maxRadius * max(1, length / Double(count)) + 1
      let lower = max(first, start - reach)
      return (lower, min(first + whole, start + length + reach) - lower)
    }
    let columns = span(x, width, size.width, crop.x, crop.width)
    let rows = span(y, height, size.height, crop.y, crop.height)
    return Window(x: columns.0, y: rows.0, width: columns.1, height: rows.1)
  }

  /// Returns the position of this window in the stored image, given the size of the displayed image.
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

/// The part of a displayed image to use, its size in the result, and its position there.
package struct Framing: Sendable, Hashable {
  /// The part of the displayed image to use, in its pixels.
  package let window: Window
  /// The part of the displayed image that the result depends on: the window, and what is around it if it is resized
  /// exactly, as then the image is resized before it is cut.
  let source: Window
  /// The size to which the window is scaled, in pixels.
  package let imageSize: PixelSize
  /// The size of the result in pixels; larger than `imageSize` if the result is padded.
  package let canvasSize: PixelSize
  /// The number of columns of padding to the left of the image.
  package let left: Int
  /// The number of rows of padding above the image.
  package let top: Int

  /// Whether the canvas is larger than the image.
  package var isPadded: Bool { imageSize != canvasSize }

  init(window: Window, imageSize: PixelSize, canvasSize: PixelSize, left: Int, top: Int) {
    (self.window, source) = (window, window)
    self.imageSize = imageSize
    self.canvasSize = canvasSize
    self.left = left
    self.top = top
  }

  /// Returns the framing of the same part of the image at the same position, on a canvas scaled by `factor`, at most 1.
  ///
  /// Edges are rounded to whole pixels; the image and the canvas have at least one pixel on each axis.
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

  /// Whether pixels of the result differ from those of the window in size or position.
  var isResampled: Bool {
    window.width != Double(imageSize.width) || window.height != Double(imageSize.height)
      || window.x != window.x.rounded() || window.y != window.y.rounded()
  }

  /// The ratio of the window's size to the image's size, on the axis with the smaller reduction.
  var reduction: Double {
    min(window.width / Double(imageSize.width), window.height / Double(imageSize.height))
  }

  /// Computes the framing of an image that is displayed with `size` from the crop, bounds, resize mode and padding of a
  /// configuration.
  ///
  /// The crop is applied first. Then `fit` scales both sides by one factor so that neither exceeds its bound; `fill`
  /// scales both sides by one factor so that both bounds are reached, and crops the excess according to the gravity or
  /// the focus point, to whole pixels of the result if it is resized exactly; `stretch` scales each side to its bound.
  /// Without `allowUpscale` nothing is enlarged: `fill` and `stretch` then use the smaller of bound and side. Each side
  /// is rounded to the nearest pixel and is at least 1. Bounds are multiplied by `zoom`, divided by `scaleFactor` and
  /// rounded down. An image that `fit` makes smaller than a minimum is scaled to it, and what then exceeds a bound is
  /// cropped as `fill` does.
  /// - Throws: `invalidField` for a crop that extends beyond the image, and for a result with too large a side.
  package init(shown size: PixelSize, configuration: ProcessingConfiguration) throws(PipelineError) {
    let bounds = configuration.bounds
    let (maxWidth, maxHeight) = (bounds.maxWidth, bounds.maxHeight)
    let crop = try configuration.crop?.window(in: size) ?? Window(size)
    let mayGrow = configuration.allowUpscale ?? false
    let (gravity, isExact) = (configuration.gravity ?? .center, configuration.exactResize ?? false)
    func side(_ bound: Int, _ length: Double) -> Int { mayGrow ? bound : min(bound, max(1, Int(length.rounded()))) }

    var window = crop
    var image: PixelSize
    switch (configuration.resizeMode ?? .fit, maxWidth, maxHeight) {
    case (.stretch, let maxWidth?, let maxHeight?):
      image = PixelSize(width: side(maxWidth, crop.width), height: side(maxHeight, crop.height))
    case (.fill, let maxWidth?, let maxHeight?):
      image = PixelSize(width: side(maxWidth, crop.width), height: side(maxHeight, crop.height))
      window = Self.cover(crop, image, gravity, focus: configuration.focusPoint, shown: size, isExact: isExact)
    default:
      image = Self.fit(crop, maxWidth: maxWidth, maxHeight: maxHeight, mayGrow: mayGrow)
      if let raised = try Self.raise(image, of: crop, to: bounds) {
        image = raised
        window = Self.cover(crop, image, gravity, focus: configuration.focusPoint, shown: size, isExact: isExact)
      }
    }
    self.window = window
    source = isExact ? window.surrounded(within: crop, scaledTo: image) : window
    imageSize = image
    canvasSize = try Self.canvas(image, bounds: bounds, configuration)
    left = Int(Double(canvasSize.width - image.width) * gravity.x)
    top = Int(Double(canvasSize.height - image.height) * gravity.y)
  }

  /// Returns the size of the result: that of the image, or the larger one to which it is padded.
  private static func canvas(
    _ image: PixelSize, bounds: ProcessingConfiguration.Bounds, _ configuration: ProcessingConfiguration
  ) throws(PipelineError) -> PixelSize {
    if configuration.pad ?? false {
      return PixelSize(width: max(image.width, bounds.maxWidth ?? 0), height: max(image.height, bounds.maxHeight ?? 0))
    }
    guard let ratio = configuration.extendAspectRatio else { return image }
    let (across, down) = (Double(image.height) * ratio, Double(image.width) / ratio)
    let canvas = PixelSize(
      width: max(image.width, min(Int(across.rounded()), bounds.maxWidth ?? .max)),
      height: max(image.height, min(Int(down.rounded()), bounds.maxHeight ?? .max)))
    try checkSide(canvas, "extend_aspect_ratio \(ratio)", field: "extend_aspect_ratio")
    return canvas
  }

  /// Returns the size of an image that a minimum requires to be larger than `fit` makes it; `nil` if none does.
  private static func raise(
    _ image: PixelSize, of crop: Window, to bounds: ProcessingConfiguration.Bounds
  ) throws(PipelineError) -> PixelSize? {
    let (minWidth, minHeight) = (bounds.minWidth ?? 1, bounds.minHeight ?? 1)
    guard image.width < minWidth || image.height < minHeight else { return nil }
    let scale = max(Double(minWidth) / crop.width, Double(minHeight) / crop.height)
    func side(_ length: Double, _ minimum: Int, _ maximum: Int?) -> Int {
      max(minimum, Int(min((length * scale).rounded(), Double(maximum ?? Plan.maxSide))))
    }
    let raised = PixelSize(
      width: side(crop.width, minWidth, bounds.maxWidth), height: side(crop.height, minHeight, bounds.maxHeight))
    let field = raised.width > raised.height ? "min_height" : "min_width"
    try checkSide(raised, "\(field) \(field == "min_width" ? minWidth : minHeight)", field: field)
    return raised
  }

  private static func checkSide(_ size: PixelSize, _ setting: String, field: String) throws(PipelineError) {
    guard max(size.width, size.height) > ProcessingConfiguration.maxBound else { return }
    throw PipelineError(
      .invalidField,
      "\(setting) makes the result \(size) pixels; a side can have at most \(ProcessingConfiguration.maxBound)",
      field: field)
  }

  private static func fit(_ crop: Window, maxWidth: Int?, maxHeight: Int?, mayGrow: Bool) -> PixelSize {
    let scales = [maxWidth.map { Double($0) / crop.width }, maxHeight.map { Double($0) / crop.height }]
    let minimum = scales.compactMap(\.self).min() ?? 1
    let wanted = mayGrow ? minimum : min(minimum, 1)
    // The side without a bound can have the maximum.
    let maximum = Double(ProcessingConfiguration.maxBound) / max(crop.width, crop.height)
    let scale = wanted == 1 ? 1 : min(wanted, maximum)
    func side(_ length: Double, _ bound: Int?) -> Int {
      min(max(1, Int((length * scale).rounded())), bound ?? ProcessingConfiguration.maxBound)
    }
    return scale == 1
      ? crop.pixelSize : PixelSize(width: side(crop.width, maxWidth), height: side(crop.height, maxHeight))
  }

  /// Returns the largest part of `crop` with the aspect ratio of `target`.
  /// - `isExact`: whether the crop is resized to whole pixels, of which the result is a part.
  private static func cover(
    _ crop: Window, _ target: PixelSize, _ gravity: Gravity, focus: Point?, shown: PixelSize, isExact: Bool
  ) -> Window {
    let (across, down) = (Double(target.width) / crop.width, Double(target.height) / crop.height)
    let focus = focus.map { ($0.x * Double(shown.width), $0.y * Double(shown.height)) }
    if isExact {
      // Rounded as the transforms of torchvision do.
      let whole = PixelSize(
        width: max(target.width, Int(Double(target.height) * crop.width / crop.height)),
        height: max(target.height, Int(Double(target.width) * crop.height / crop.width)))
      let columns = part(crop.width, whole.width, target.width, share: gravity.x, center: focus.map { $0.0 - crop.x })
      let rows = part(crop.height, whole.height, target.height, share: gravity.y, center: focus.map { $0.1 - crop.y })
      return Window(x: crop.x + columns.start, y: crop.y + rows.start, width: columns.length, height: rows.length)
    }
    let width = across >= down ? crop.width : Double(target.width) / down
    let height = down >= across ? crop.height : Double(target.height) / across
    func start(_ first: Double, _ free: Double, _ share: Double, _ center: Double?, _ length: Double) -> Double {
      let start = center.map { min(max($0 - length / 2, first), first + free) } ?? first + free * share
      // What is only cut off leaves the other pixels as they are.
      return max(across, down) == 1 ? max(first, start.rounded(.down)) : start
    }
    return Window(
      x: start(crop.x, crop.width - width, gravity.x, focus?.0, width),
      y: start(crop.y, crop.height - height, gravity.y, focus?.1, height), width: width, height: height)
  }

  /// Returns the part of a side that becomes `count` of the `whole` pixels to which it is resized.
  private static func part(
    _ side: Double, _ whole: Int, _ count: Int, share: Double, center: Double?
  ) -> (start: Double, length: Double) {
    if whole == count { return (0, side) }
    let (pixel, free) = (side / Double(whole), Double(whole - count))
    let start = center.map { min(max($0 / pixel - Double(count) / 2, 0), free) } ?? free * share
    return (start.rounded(.toNearestOrEven) * pixel, Double(count) * side / Double(whole))
  }
}

/// The choice of a window that keeps faces, as it slides along one axis of the image.
struct FaceGravity {
  /// The margin around a face that is kept if it fits, as a fraction of the face's height.
  static let defaultMargin = 0.5

  /// A part of the axis.
  private struct Span {
    var start: Double
    var end: Double
    /// The area of the face.
    let weight: Double

    func isInside(_ start: Double, _ end: Double) -> Bool { self.start >= start && self.end <= end }
  }

  private let window: Window
  private let part: Window
  private let slidesAcross: Bool
  /// The faces without and with their margins, from the start of the part.
  private let faces: [Span]
  private let margins: [Span]

  /// - Parameters:
  ///   - faces: The faces in pixels of the displayed image, at least one of them in the part.
  ///   - margin: The margin as a fraction of a face's height.
  ///   - window: A window in the part that is as wide or as high as the part.
  ///   - part: The part of the displayed image.
  init?(_ faces: [PixelRect], margin: Double, window: Window, part: Window) {
    self.window = window
    self.part = part
    let slidesAcross = part.width - window.width > part.height - window.height
    self.slidesAcross = slidesAcross
    let whole = slidesAcross ? part.width : part.height
    func span(_ face: PixelRect, margin: Double) -> Span? {
      let extra = margin * Double(face.height)
      let first = slidesAcross ? Double(face.x) - part.x : Double(face.y) - part.y
      let length = Double(slidesAcross ? face.width : face.height)
      guard first + length > 0, first < whole else { return nil }
      return Span(
        start: max(0, first - extra), end: min(whole, first + length + extra),
        weight: Double(face.width) * Double(face.height))
    }
    self.faces = faces.compactMap { span($0, margin: 0) }
    margins = faces.compactMap { span($0, margin: margin) }
    if self.faces.isEmpty { return nil }
  }

  private var free: Double { slidesAcross ? part.width - window.width : part.height - window.height }
  private var length: Double { slidesAcross ? window.width : window.height }

  /// The center of the window that keeps the faces with the largest area whole, then with their margins, in its middle.
  var center: (x: Double, y: Double) {
    let offset = offset
    return slidesAcross
      ? (part.x + offset + window.width / 2, part.y + part.height / 2)
      : (part.x + part.width / 2, part.y + offset + window.height / 2)
  }

  private var offset: Double {
    // What a window keeps changes only where it begins or ends with a face.
    let places = (faces + margins).flatMap { [$0.start, $0.end - length] }.map { min(max(0, $0), free) }
    var best = (faces: -1.0, margins: -1.0, place: 0.0)
    for place in places {
      let (kept, withMargin) = (weight(of: faces, at: place), weight(of: margins, at: place))
      if (kept, withMargin) > (best.faces, best.margins) { best = (kept, withMargin, place) }
    }
    guard best.faces > 0 else { return centered(on: faces[0]) }
    // Of all windows that keep the same, the one with the faces in its middle.
    let kept = faces.indices.filter { isKept(faces[$0], at: best.place) }
    let spans = kept.map { isKept(margins[$0], at: best.place) ? margins[$0] : faces[$0] }
    let start = spans.map(\.start).min() ?? 0
    let end = spans.map(\.end).max() ?? 0
    return centered(on: Span(start: start, end: end, weight: 0))
  }

  private func centered(on span: Span) -> Double { min(max(0, (span.start + span.end - length) / 2), free) }

  private func isKept(_ span: Span, at place: Double) -> Bool {
    // Places are sums of what they are compared with.
    span.isInside(place - 1e-6, place + length + 1e-6)
  }

  private func weight(of spans: [Span], at place: Double) -> Double {
    spans.reduce(0) { $0 + (isKept($1, at: place) ? $1.weight : 0) }
  }
}

extension PixelRect {
  /// Whether a window of the same image contains a part of this rectangle.
  func isPartly(in window: Window) -> Bool {
    Double(x) < window.x + window.width && Double(y) < window.y + window.height && Double(x + width) > window.x
      && Double(y + height) > window.y
  }

  /// Whether a window of the same image contains this rectangle, to a pixel.
  func isWhole(in window: Window) -> Bool {
    Double(x) >= window.x - 1 && Double(y) >= window.y - 1 && Double(x + width) <= window.x + window.width + 1
      && Double(y + height) <= window.y + window.height + 1
  }
}

internal import ImageCodecs
internal import ImageKernels

extension ProcessingConfiguration {
  /// Whether the part that `fill` keeps is chosen by what attracts attention, if no face is found.
  var choosesBySaliency: Bool { (gravity == .smart || gravity == .faces) && choosesByPixels }

  /// Whether `smart` and `faces` have an effect.
  var choosesByPixels: Bool { resizeMode == .fill && focusPoint == nil }
}

extension SaliencyMap {
  /// The number of places at which a window is tried.
  private static let placeCount = 128

  /// Finds the window with the most saliency in a part of the displayed image.
  ///
  /// Places in the middle of a window count most, so that what attracts attention is not at its edge, and windows in the
  /// middle of the image, as photographers place their subjects there. Of windows that are equal, the one closest to the
  /// center is taken.
  /// - Parameters:
  ///   - window: A window in the part that is as wide or as high as the part.
  ///   - part: The part of the displayed image.
  ///   - orientation: The orientation of the stored image, to which the map belongs.
  ///   - shown: The size of the displayed image.
  /// - Returns: The center of the window in pixels of the displayed image.
  func center(
    of window: Window, in part: Window, _ orientation: Orientation, shown: PixelSize
  ) -> (x: Double, y: Double) {
    let slidesAcross = part.width - window.width > part.height - window.height
    let free = slidesAcross ? part.width - window.width : part.height - window.height
    let profile = profile(part.stored(orientation, shown: shown), orientation, shown, slidesAcross: slidesAcross)
    let whole = slidesAcross ? part.width : part.height
    let length = (slidesAcross ? window.width : window.height) / whole
    // From the center outward, so that it wins among equals.
    let places = (0...Self.placeCount).sorted {
      (abs(2 * $0 - Self.placeCount), $0) < (abs(2 * $1 - Self.placeCount), $1)
    }
    var best = (score: -1, place: Self.placeCount / 2)
    for place in places {
      let start = (1 - length) * Double(place) / Double(Self.placeCount)
      let score = Self.score(profile, from: start, to: start + length) * Self.weight(ofCenter: start + length / 2)
      if score > best.score { best = (score, place) }
    }
    let offset = free * Double(best.place) / Double(Self.placeCount)
    return slidesAcross
      ? (part.x + offset + window.width / 2, part.y + part.height / 2)
      : (part.x + part.width / 2, part.y + offset + window.height / 2)
  }

  /// Returns the sums of the cells across the axis on which a window slides, from the start of the displayed part.
  private func profile(
    _ part: Window, _ orientation: Orientation, _ shown: PixelSize, slidesAcross: Bool
  ) -> [Int] {
    let stored = shown.rotated(by: orientation)
    func cells(_ start: Double, _ length: Double, _ whole: Int, _ size: Double, _ count: Int) -> Range<Int> {
      let first = min(Int(start * size / Double(whole)), count - 1)
      return first..<max(first + 1, min(Int((start + length) * size / Double(whole) + 0.999), count))
    }
    let columns = cells(part.x, part.width, stored.width, width, columnCount)
    let rows = cells(part.y, part.height, stored.height, height, rowCount)
    let isAlongColumns = slidesAcross != orientation.swapsAxes
    let sums = (isAlongColumns ? columns : rows).map { place in
      (isAlongColumns ? rows : columns).reduce(0) { sum, other in
        sum + Int(isAlongColumns ? values[other * columnCount + place] : values[place * columnCount + other])
      }
    }
    let isReversed = isAlongColumns ? orientation.reversesColumns : orientation.reversesRows
    return isReversed ? sums.reversed() : sums
  }

  /// Returns the weight of a window by the fraction of the image at which its center is: 1024 in the middle, and up to a
  /// quarter less at the edges.
  private static func weight(ofCenter center: Double) -> Int { 1024 - Int(1024 * (center - 0.5) * (center - 0.5)) }

  /// Returns the weighted mean of a profile between two fractions of its length, times 1024.
  ///
  /// A sum would favor windows that cover one cell more.
  private static func score(_ profile: [Int], from start: Double, to end: Double) -> Int {
    var (sum, weights) = (0, 0)
    for (index, value) in profile.enumerated() {
      let place = (Double(index) + 0.5) / Double(profile.count)
      let across = (place - start) / (end - start)
      guard across >= 0, across <= 1 else { continue }
      // 1 in the middle, a half at the edges.
      let weight = 1024 - Int(2048 * (across - 0.5) * (across - 0.5))
      sum += value * weight
      weights += weight
    }
    return weights == 0 ? 0 : sum * 1024 / weights
  }
}

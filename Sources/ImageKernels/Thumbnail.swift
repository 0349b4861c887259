internal import CPixels
package import ImageCodecs

/// A small image of RGBA with straight alpha, for facts about a larger one.
package struct Thumbnail: Sendable {
  /// The maximum width and height in pixels.
  package static let maxSide = Int(CPIXELS_MAX_THUMBNAIL_SIDE)

  /// A value that is computed of each pixel.
  package enum Channel: UInt32, Sendable {
    case luminance, yellowBlue, redGreen, alpha, lightOfRed, lightOfGreen, lightOfBlue
  }

  /// The width in pixels.
  package let width: Int
  /// The height in pixels.
  package let height: Int
  /// Red, green, blue and alpha of each pixel.
  package let rgba: [UInt8]

  /// Creates a thumbnail from the mean pixels of the cells of an image.
  /// - Parameters:
  ///   - cells: The cells of each plane as stored: one of gray, RGB, or RGBA with premultiplied alpha, or three of luma and
  ///     chroma, the last two of which may be reduced to half the columns or rows.
  ///   - orientation: The orientation in which the cells are displayed.
  package init(_ cells: [CellGrid], orientation: Orientation) {
    let (columns, rows) = (cells[0].across.count, cells[0].down.count)
    precondition((1...Self.maxSide).contains(columns) && (1...Self.maxSide).contains(rows))
    let stored = Self.rgba(cells, columns: columns, rows: rows)
    let isRotated = orientation.swapsAxes
    (width, height) = (isRotated ? rows : columns, isRotated ? columns : rows)
    let rowByteCount = 4 * width
    rgba =
      orientation == .up
      ? stored
      : Self.filled(byteCount: stored.count) { upright in
        cpixels_orient_rows(
          stored, 4 * columns, 0, UInt32(rows), UInt32(columns), UInt32(rows), 4, UInt8(orientation.rawValue), upright,
          rowByteCount)
      }
  }

  /// Returns the cells as RGBA with straight alpha.
  private static func rgba(_ cells: [CellGrid], columns: Int, rows: Int) -> [UInt8] {
    let count = columns * rows
    let first = cells[0].samples
    if cells[0].channelCount == 4 {
      return filled(byteCount: 4 * count) { cpixels_unpremultiply_8bit(first, $0, count) }
    }
    var rgb = first
    if cells.count == 3 {
      let (blue, red) = (cells[1].stretched(columns, rows), cells[2].stretched(columns, rows))
      rgb = filled(byteCount: 3 * count) { cpixels_ycc_to_rgb(first, blue, red, $0, count, CPIXELS_ISA_BEST) }
    } else if cells[0].channelCount == 1 {
      rgb = filled(byteCount: 3 * count) { cpixels_gray_to_rgb(first, $0, count) }
    }
    return filled(byteCount: 4 * count) { cpixels_expand_rgb(rgb, $0, count) }
  }

  private static func filled(byteCount: Int, _ body: (UnsafeMutablePointer<UInt8>) -> Void) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: byteCount) { bytes, count in
      if let address = bytes.baseAddress { body(address) }
      count = byteCount
    }
  }

  /// The sums of red, green and blue times alpha, and of alpha, in levels.
  package var alphaSums: [UInt64] {
    var sums = [UInt64](repeating: 0, count: 4)
    cpixels_alpha_sums(rgba, width * height, &sums)
    return sums
  }

  /// Cosines with 0 to some half periods across a thumbnail, and down.
  package struct Waves {
    fileprivate let count: Int
    fileprivate let across: [Double]
    fileprivate let down: [Double]
  }

  /// Returns waves with fewer than `count` half periods.
  /// - `isCentered`: whether they are those of a cosine transform, which begins in the middle of the first pixel.
  package func waves(count: Int, isCentered: Bool) -> Waves {
    precondition((1...Int(CPIXELS_MAX_COSINES)).contains(count))
    var across = [Double](repeating: 0, count: count * width)
    var down = [Double](repeating: 0, count: count * height)
    cpixels_cosines(width, count, isCentered, &across)
    cpixels_cosines(height, count, isCentered, &down)
    return Waves(count: count, across: across, down: down)
  }

  /// Returns the sums of a channel times waves across and down: `downCount` rows of `acrossCount` sums.
  /// - `waves`: the waves of this thumbnail, at least as many as there are across and down.
  /// - `background`: red, green and blue behind transparent pixels, 0 to 1.
  /// - `light`: the light of each level, for the channels of light.
  package func cosineSums(
    _ channel: Channel, _ waves: Waves, across acrossCount: Int, down downCount: Int,
    background: [Double] = [0, 0, 0], light: [Double] = []
  ) -> [Double] {
    precondition((1...waves.count).contains(acrossCount) && (1...waves.count).contains(downCount))
    precondition(waves.across.count == waves.count * width && waves.down.count == waves.count * height)
    precondition(background.count == 3)
    precondition(light.count == 256 || channel.rawValue < Channel.lightOfRed.rawValue)
    var sums = [Double](repeating: 0, count: acrossCount * downCount)
    cpixels_cosine_sums(
      rgba, width, height, cpixels_channel(channel.rawValue), background, light, waves.across, acrossCount,
      waves.down, downCount,
      &sums, CPIXELS_ISA_BEST)
    return sums
  }

  /// The hash of the lowest waves and that of horizontal differences; see `cpixels_perceptual_hash`.
  package var hashes: (perceptual: UInt64, difference: UInt64) {
    var gray = [UInt8](repeating: 0, count: width * height)
    cpixels_luma(rgba, 4, &gray, gray.count)
    return (
      cpixels_perceptual_hash(gray, width, height, CPIXELS_ISA_BEST),
      cpixels_difference_hash(gray, width, height, CPIXELS_ISA_BEST)
    )
  }

  /// Up to six colors that represent the pixels, and the number of pixels of each, the most frequent first.
  package var dominantColors: [(red: UInt8, green: UInt8, blue: UInt8, count: Int)] {
    var colors = [cpixels_color_share](
      repeating: cpixels_color_share(), count: Int(CPIXELS_MAX_DOMINANT_COLORS))
    let count = cpixels_dominant_colors(rgba, width * height, &colors)
    return colors.prefix(count).map { ($0.color.0, $0.color.1, $0.color.2, Int($0.count)) }
  }
}

extension CellGrid {
  /// Returns the samples of a plane with its columns and rows repeated until there are as many as those of another one.
  fileprivate func stretched(_ columns: Int, _ rows: Int) -> [UInt8] {
    let samples = samples
    if across.count == columns, down.count == rows { return samples }
    var stretched: [UInt8] = []
    stretched.reserveCapacity(columns * rows)
    for row in 0..<rows {
      let start = row * down.count / rows * across.count
      for column in 0..<columns { stretched.append(samples[start + column * across.count / columns]) }
    }
    return stretched
  }
}

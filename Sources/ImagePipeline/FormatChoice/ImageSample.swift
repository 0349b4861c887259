internal import ImageCodecs
internal import ImageKernels

/// Square tiles of a buffered image, spread evenly over it: trials of them are several times faster than those of the whole
/// image, and predict their sizes and scores.
///
/// Scores of tiles differ from those of their image by about 1.5; sizes of formats at equal scores, compared with each other,
/// by less. More tiles cost more than they improve: see Benchmarks/results/format-choice.md.
struct ImageSample {
  /// The side of a tile in pixels: a multiple of the blocks that formats transform.
  private static let side = 64
  /// The minimum number of tiles in a row and in a column: scores of images with less than 256 pixels on a side are lower.
  private static let minLength = 4
  /// The maximum number of tiles.
  private static let maxCount = 32
  /// The minimum number of pixels of an image for each one in its tiles.
  private static let minRatio = 2
  /// The number of pixels of an image for each one in its tiles, about: to predict a score, and to compare formats.
  static let ratios = (score: 8, formats: 16)

  /// The tiles in one image, or the image itself if it is small.
  let image: BufferedImage
  /// The pixel count of the whole image, divided by that of the sample.
  let ratio: Double

  /// The number of tiles of an image in each row and in each column; `nil` if the image is too small for tiles.
  private static func grid(_ size: PixelSize, ratio: Int = ratios.score) -> (columns: Int, rows: Int)? {
    let tilePixelCount = side * side
    guard size.pixelCount >= minRatio * minLength * minLength * tilePixelCount,
      min(size.width, size.height) >= minLength * side
    else { return nil }
    let count = max(minLength * minLength, min(maxCount, size.pixelCount / (ratio * tilePixelCount)))
    let wanted = (Double(count) * Double(size.width) / Double(size.height)).squareRoot()
    let columns = max(minLength, min(count / minLength, Int(wanted.rounded())))
    return (columns, count / columns)
  }

  /// Whether a sample of an image of this size is smaller than the image.
  static func isSmaller(_ size: PixelSize) -> Bool { grid(size) != nil }

  /// Returns the options of an encoder for a sample of tiles.
  private static func options(_ encoder: EncoderOptions, _ grid: (columns: Int, rows: Int)) -> EncoderOptions {
    var options = encoder
    (options.width, options.height) = (grid.columns * side, grid.rows * side)
    options.metadata = EmbeddedMetadata()
    return options
  }

  /// Returns an upper bound of the bytes that the largest sample and a trial of it charge.
  static func estimatedByteCount(_ encoder: EncoderOptions) throws(CodecError) -> UInt64 {
    let grid = grid(PixelSize(width: encoder.width, height: encoder.height))
    let options = grid.map { Self.options(encoder, $0) } ?? encoder
    let pixelByteCount = options == encoder ? 0 : options.width * options.height * options.pixelFormat.pixelByteCount
    let decoding = UInt64(SimilarityTrial.estimatedByteCount(options))
    let result = try options.maxByteCount() + UInt64(CompressedBytes.chunkByteCount) * 2
    return UInt64(pixelByteCount) + max(decoding, try options.estimatedByteCount()) + result
  }

  /// Copies the tiles of an image in one plane.
  /// - `ratio`: One of `ratios`.
  init(_ whole: BufferedImage, ratio: Int) throws(CodecError) {
    let size = PixelSize(width: whole.options.width, height: whole.options.height)
    guard let (columns, rows) = Self.grid(size, ratio: ratio) else {
      (image, self.ratio) = (whole, 1)
      return
    }
    let options = Self.options(whole.options, (columns, rows))
    image = try BufferedImage(options: options, budget: whole.budget)
    self.ratio = Double(size.pixelCount) / Double(options.width * options.height)
    let pixels = try whole.rows(whole.options)[0]
    for row in 0..<rows {
      let top = Self.position(row, of: rows, in: size.height)
      for column in 0..<columns {
        let left = Self.position(column, of: columns, in: size.width)
        let byteCount = options.pixelFormat.pixelByteCount
        let tile = pixels.part(
          first: top, count: Self.side, byteOffset: left * byteCount, byteCount: Self.side * byteCount)
        image.write(tile, row: row * Self.side, byteOffset: column * Self.side * byteCount)
      }
    }
  }

  /// The part of the pixels that lossless formats store in a few bits.
  var predictableShare: Double {
    get throws(CodecError) {
      try image.rows(image.options)[0].predictableShare(pixelByteCount: image.options.pixelFormat.pixelByteCount)
    }
  }

  /// Returns the first pixel of a tile: in the middle of its part of the image, on the boundary of a block.
  private static func position(_ index: Int, of count: Int, in length: Int) -> Int {
    let center = (2 * index + 1) * length / (2 * count)
    return max(0, min(center - side / 2, length - side)) / 8 * 8
  }
}

internal import CPixels
package import ImageCodecs

/// The perceptual similarity of a compressed image to its original, as a score of SSIMULACRA 2: 100 for equal images,
/// about 90 if no difference is visible, 70 for high and 50 for medium quality.
///
/// Only the rows under the metric's windows are buffered. An image with alpha is compared over a dark and a light
/// background, and the lower score counts.
package final class ImageSimilarity {
  /// The minimum width and height in pixels.
  package static let minSide = 8

  private let memory: [PixelBuffer]
  private let handles: [OpaquePointer]
  private let rowByteCount: Int
  private let width: Int
  private let channelCounts: (reference: Int, result: Int)
  /// A row of the result in the reference's pixel format, if the formats differ.
  private let converted: RowBuffer?

  /// Creates a comparison and allocates its memory.
  /// - `width`, `height`: the size of both images in pixels, at least `minSide`.
  /// - `format`: `gray8`, `rgb8` or `rgba8`, the pixel format of the reference.
  /// - `resultFormat`: the pixel format of the result, one of the same; `nil` for that of the reference.
  /// - Throws: `misuse` if a parameter is out of range, `outOfMemory` if the budget is exhausted.
  package init(
    width: Int, height: Int, format: PixelFormat, resultFormat: PixelFormat? = nil, budget: ImageBudget
  ) throws(CodecError) {
    let other = resultFormat ?? format
    guard Self.formats.contains(format), Self.formats.contains(other) else {
      throw CodecError(code: .misuse, message: "no similarity of \(other) to \(format)")
    }
    var memory: [PixelBuffer] = []
    var handles: [OpaquePointer] = []
    for background in Self.backgrounds(format) {
      var options = Self.options(width: width, height: height, format: format, background: background)
      let misuse = CodecError(code: .misuse, message: "no similarity of \(format) of \(width)x\(height)")
      var byteCount = 0
      guard cpixels_similarity_measure(&options, &byteCount) else { throw misuse }
      let block = try PixelBuffer(byteCount: byteCount, budget: budget)
      guard let handle = cpixels_similarity_init(&options, block.unsafeBase) else { throw misuse }
      memory.append(block)
      handles.append(handle)
    }
    self.memory = memory
    self.handles = handles
    self.width = width
    rowByteCount = width * format.pixelByteCount
    channelCounts = (format.channelCount, other.channelCount)
    converted =
      other != format ? try RowBuffer(rowByteCount: width * format.pixelByteCount, rowCount: 1, budget: budget) : nil
  }

  private static let formats: [PixelFormat] = [.gray8, .rgb8, .rgba8]

  /// Returns the number of bytes that a comparison of images of the same format charges; 0 for images that cannot be
  /// compared.
  package static func estimatedByteCount(width: Int, height: Int, format: PixelFormat) -> Int {
    backgrounds(format).reduce(0) { sum, background in
      var options = options(width: width, height: height, format: format, background: background)
      var byteCount = 0
      return cpixels_similarity_measure(&options, &byteCount) ? sum + byteCount : sum
    }
  }

  /// Compares the next rows of both images, of which there must be equally many.
  package func push(reference: Strip.Rows, result: Strip.Rows) {
    if reference.isEmpty, result.isEmpty { return }
    precondition(reference.rowCount == result.rowCount, "row counts differ")
    precondition(
      reference.rowByteCount >= rowByteCount && result.rowByteCount >= width * channelCounts.result,
      "rows are shorter")
    guard let converted else { return compare(reference, result) }
    for row in 0..<reference.rowCount {
      convert(result.bytes(row), converted.bytes(0))
      compare(reference.part(first: row, count: 1, byteOffset: 0, byteCount: rowByteCount), converted.rows(count: 1))
    }
  }

  private func compare(_ reference: Strip.Rows, _ result: Strip.Rows) {
    for handle in handles {
      cpixels_similarity_push(
        handle, reference.bytes(0), reference.rowStride, result.bytes(0), result.rowStride, reference.rowCount)
    }
  }

  /// Converts a row: gray is all three colors, missing alpha is opaque, and alpha that the reference lacks is ignored.
  private func convert(_ source: UnsafePointer<UInt8>, _ destination: UnsafeMutablePointer<UInt8>) {
    let (to, from) = channelCounts
    for x in 0..<width {
      for c in 0..<to {
        destination[to * x + c] = c == 3 ? 255 : source[from * x + (from == 1 ? 0 : c)]
      }
    }
  }

  /// The score, rounded to 0.01 so that it does not depend on the processor; must be read after all rows were pushed.
  package var score: Double {
    let score = handles.reduce(100) { min($0, cpixels_similarity_score($1)) }
    return (score * 100).rounded() / 100
  }

  /// The grays behind transparent pixels.
  private static func backgrounds(_ format: PixelFormat) -> [Double] { format == .rgba8 ? [0.1, 0.9] : [0] }

  private static func options(
    width: Int, height: Int, format: PixelFormat, background: Double
  ) -> cpixels_similarity_options {
    cpixels_similarity_options(
      width: UInt32(clamping: width), height: UInt32(clamping: height), channels: UInt8(format.channelCount),
      background: background, isa: CPIXELS_ISA_BEST)
  }
}

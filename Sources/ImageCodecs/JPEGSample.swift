internal import CCodecs

/// A part of an image's blocks, from which the size of its JPEG at any quality is estimated in a fraction of the time of
/// encoding.
package final class JPEGSample {
  private let handle: OpaquePointer
  private let budget: ImageBudget

  /// Creates a sample.
  /// - Parameters:
  ///   - options: The options of the encoder; the quality is ignored.
  ///   - rows: All rows of the image.
  ///   - budget: Charged for the sample.
  /// - Throws: `misuse` if the rows do not match the options, `outOfMemory` if the budget is exhausted.
  package init(options: EncoderOptions, rows: borrowing Strip, budget: ImageBudget) throws(CodecError) {
    let isComplete = (0..<options.pixelFormat.planeCount).allSatisfy { index in
      let plane = rows.plane(index)
      return plane.rowCount == options.planeHeight(index)
        && plane.rowByteCount >= options.planeWidth(index) * options.pixelFormat.pixelByteCount
    }
    guard rows.format == options.pixelFormat, isComplete else {
      throw CodecError(code: .misuse, message: "rows do not fit a sample of \(options.width)x\(options.height)")
    }
    var handle: OpaquePointer?
    var cRows = rows.handle
    let status = try options.withHandle { ccodecs_jpeg_sample_create(&$0, &cRows, budget.account, &handle) }
    self.handle = try CodecError.created(
      handle, status: status, message: "a sample of an image does not fit", budget: budget)
    self.budget = budget
  }

  deinit { ccodecs_jpeg_sample_destroy(handle) }

  /// Returns an upper bound of the bytes that a sample charges.
  package static func estimatedByteCount(_ options: EncoderOptions) throws(CodecError) -> UInt64 {
    try options.withHandle { ccodecs_jpeg_sample_byte_count(&$0) }
  }

  /// Returns the estimated size of a file in bytes; the ratio of two estimates is nearly that of the sizes.
  package func byteCount(quality: Int, quality64ths: Int) -> Double {
    ccodecs_jpeg_sample_estimate(handle, UInt8(quality), UInt8(quality64ths))
  }
}

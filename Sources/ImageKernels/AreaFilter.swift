internal import CPixels
package import ImageCodecs

/// A filter that computes each pixel from the pixels around it.
package final class AreaFilter {
  /// The filter and its parameters: see "Area filters" in `cpixels.h`.
  package enum Kernel: Sendable, Hashable {
    case blur(radius: Double, share: Double)
    case sharpen(radius: Double, amount: Double, threshold: Double)
    /// Blocks of `size` by `size` pixels; the first block of a row or column may be smaller.
    case pixelate(size: Int, firstWidth: Int, firstHeight: Int, share: Double)
  }

  private let memory: PixelBuffer
  private let handle: OpaquePointer
  private let output: RowBuffer

  /// Creates a filter and allocates its memory.
  /// - `width`, `height`: the size of the image in pixels.
  /// - `format`: `rgb8` or `rgba8`.
  /// - Throws: `misuse` if a parameter is out of range, `outOfMemory` if the budget is exhausted.
  package init(
    _ kernel: Kernel, width: Int, height: Int, format: PixelFormat, budget: ImageBudget
  ) throws(CodecError) {
    var options = cpixels_area_options(kernel, width: width, height: height, format: format)
    let misuse = CodecError(code: .misuse, message: "no filter for \(kernel) on \(width)x\(height)")
    var byteCount = 0
    guard cpixels_area_measure(&options, &byteCount) else { throw misuse }
    let memory = try PixelBuffer(byteCount: byteCount, budget: budget)
    guard let handle = cpixels_area_init(&options, memory.unsafeBase) else { throw misuse }
    output = try RowBuffer(
      rowByteCount: width * format.pixelByteCount, rowCount: RowFilter.rowCount, budget: budget)
    self.memory = memory
    self.handle = handle
  }

  /// Returns the number of bytes that a filter charges in addition to its output rows.
  package static func windowByteCount(_ kernel: Kernel, width: Int, height: Int, format: PixelFormat) -> Int {
    var options = cpixels_area_options(kernel, width: width, height: height, format: format)
    var byteCount = 0
    return cpixels_area_measure(&options, &byteCount) ? byteCount : 0
  }

  func push(_ rows: Strip.Rows) -> Int {
    if rows.isEmpty { return 0 }
    precondition(rows.rowByteCount >= output.rowByteCount, "rows are shorter")
    return cpixels_area_push(handle, rows.bytes(0), rows.rowStride, rows.rowCount)
  }

  func reset() { cpixels_area_reset(handle) }

  func read() -> Strip.Rows {
    output.rows(count: cpixels_area_read(handle, output.bytes(0), output.rowByteCount, output.rowCount))
  }
}

extension cpixels_area_options {
  fileprivate init(_ kernel: AreaFilter.Kernel, width: Int, height: Int, format: PixelFormat) {
    self.init()
    self.width = UInt32(width)
    self.height = UInt32(height)
    channels = UInt8(format.channelCount)
    isa = CPIXELS_ISA_BEST
    switch kernel {
    case .blur(let radius, let share):
      (kind, self.radius, amount) = (CPIXELS_AREA_BLUR, radius, share)
    case .sharpen(let radius, let amount, let threshold):
      (kind, self.radius, self.amount, self.threshold) = (CPIXELS_AREA_SHARPEN, radius, amount, threshold)
    case .pixelate(let size, let firstWidth, let firstHeight, let share):
      (kind, block, amount) = (CPIXELS_AREA_PIXELATE, UInt32(size), share)
      (first_width, first_height) = (UInt32(firstWidth), UInt32(firstHeight))
    }
  }
}

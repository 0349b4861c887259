internal import CPixels
package import ImageCodecs

/// A filter that computes each pixel from the pixels around it.
package final class AreaFilter: RowFilter {
  private let memory: PixelBuffer
  private let handle: OpaquePointer
  private let output: RowBuffer

  /// Creates a filter and allocates its memory.
  /// - `width`, `height`: the stored size of the image in pixels; `orientation` is that of its display.
  /// - `format`: `rgb8` or `rgba8`.
  /// - Throws: `misuse` if a parameter is out of range, `outOfMemory` if the budget is exhausted.
  package init(
    _ operation: AreaOperation, width: Int, height: Int, orientation: Orientation, format: PixelFormat,
    budget: ImageBudget
  ) throws(CodecError) {
    var options = cpixels_area_options(
      operation, width: width, height: height, orientation: orientation, format: format)
    let misuse = CodecError(code: .misuse, message: "no filter for \(operation) on \(width)x\(height)")
    var byteCount = 0
    guard cpixels_area_measure(&options, &byteCount) else { throw misuse }
    let memory = try PixelBuffer(byteCount: byteCount, budget: budget)
    guard let handle = cpixels_area_init(&options, memory.unsafeBase) else { throw misuse }
    output = try RowBuffer(
      rowByteCount: width * format.pixelByteCount, rowCount: Self.rowCount, budget: budget)
    self.memory = memory
    self.handle = handle
  }

  /// Returns the number of bytes that a filter charges in addition to its output rows.
  package static func windowByteCount(
    _ operation: AreaOperation, width: Int, height: Int, format: PixelFormat
  ) -> Int {
    var options = cpixels_area_options(operation, width: width, height: height, orientation: .up, format: format)
    var byteCount = 0
    return cpixels_area_measure(&options, &byteCount) ? byteCount : 0
  }

  package func push(_ rows: Strip.Rows) -> Int {
    if rows.isEmpty { return 0 }
    precondition(rows.rowByteCount >= output.rowByteCount, "rows are shorter")
    return cpixels_area_push(handle, rows.bytes(0), rows.rowStride, rows.rowCount)
  }

  package func reset() { cpixels_area_reset(handle) }

  package func read() -> Strip.Rows {
    output.rows(count: cpixels_area_read(handle, output.bytes(0), output.rowByteCount, output.rowCount))
  }
}

extension cpixels_area_options {
  fileprivate init(
    _ operation: AreaOperation, width: Int, height: Int, orientation: Orientation, format: PixelFormat
  ) {
    self.init()
    self.width = UInt32(width)
    self.height = UInt32(height)
    channels = UInt8(format.channelCount)
    isa = CPIXELS_ISA_BEST
    switch operation {
    case .blur(let radius, let share):
      (kind, self.radius, amount) = (CPIXELS_AREA_BLUR, radius, share)
    case .sharpen(let radius, let amount, let threshold):
      (kind, self.radius, self.amount, self.threshold) = (CPIXELS_AREA_SHARPEN, radius, amount, threshold)
    case .pixelate(let size, let share):
      (kind, block, amount) = (CPIXELS_AREA_PIXELATE, UInt32(size), share)
      // Blocks start at the corner that is displayed at the upper left.
      first_width = UInt32(orientation.reversesColumns ? (width - 1) % size + 1 : size)
      first_height = UInt32(orientation.reversesRows ? (height - 1) % size + 1 : size)
    }
  }
}

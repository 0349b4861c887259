internal import CPixels
package import ImageCodecs

/// A streaming resizer of one plane.
///
/// It is a class because a stage stores up to three in an array, and arrays cannot store noncopyable values.
package final class PlaneResizer {
  private let memory: PixelBuffer
  private let handle: OpaquePointer
  private let output: RowBuffer
  private let sourceRowByteCount: Int

  /// The maximum number of rows that one `read` returns.
  package static let outputRowCount = 16

  /// Creates a resizer and allocates its memory.
  /// - Throws: `misuse` for an axis out of range, `outOfMemory` if the budget is exhausted.
  package init(
    horizontal: AxisGeometry, vertical: AxisGeometry, format: PixelFormat, budget: ImageBudget
  ) throws(CodecError) {
    var options = cpixels_resizer_options(horizontal: horizontal, vertical: vertical, format: format)
    var byteCount = 0
    guard cpixels_resizer_measure(&options, &byteCount) else {
      throw CodecError(code: .misuse, message: "no resizer for \(horizontal) by \(vertical)")
    }
    let memory = try PixelBuffer(byteCount: byteCount, budget: budget)
    guard let handle = cpixels_resizer_init(&options, memory.unsafeBase) else {
      throw CodecError(code: .misuse, message: "no resizer for \(horizontal) by \(vertical)")
    }
    output = try RowBuffer(
      rowByteCount: horizontal.destinationCount * format.pixelByteCount, rowCount: Self.outputRowCount, budget: budget)
    sourceRowByteCount = horizontal.sourceCount * format.pixelByteCount
    self.memory = memory
    self.handle = handle
  }

  /// Returns the number of bytes that a resizer for these axes charges.
  package static func byteCount(horizontal: AxisGeometry, vertical: AxisGeometry, format: PixelFormat) -> Int {
    var options = cpixels_resizer_options(horizontal: horizontal, vertical: vertical, format: format)
    var byteCount = 0
    guard cpixels_resizer_measure(&options, &byteCount) else { return 0 }
    return byteCount + horizontal.destinationCount * format.pixelByteCount * outputRowCount
  }

  /// Consumes rows while there is room, and returns their number.
  package func push(_ rows: Strip.Rows) -> Int {
    if rows.isEmpty { return 0 }
    precondition(rows.rowByteCount >= sourceRowByteCount, "rows are shorter")
    return cpixels_resizer_push(handle, rows.unsafeBase, rows.rowStride, rows.rowCount)
  }

  /// Returns the next finished rows, at most `outputRowCount`; they are valid until the next read.
  package func read() -> Strip.Rows {
    output.rows(
      count: cpixels_resizer_read(handle, output.unsafeRow(0), output.rowByteCount, Self.outputRowCount))
  }
}

extension cpixels_resizer_options {
  fileprivate init(horizontal: AxisGeometry, vertical: AxisGeometry, format: PixelFormat) {
    self.init(
      horizontal: cpixels_axis_options(horizontal), vertical: cpixels_axis_options(vertical),
      channels: UInt8(format.channelCount),
      sample: format.is16Bit ? CPIXELS_SAMPLE_U16 : CPIXELS_SAMPLE_U8, isa: CPIXELS_ISA_BEST)
  }
}

extension cpixels_axis_options {
  fileprivate init(_ axis: AxisGeometry) {
    let enlarging =
      switch axis.enlargement {
      case .lanczos: CPIXELS_KERNEL_LANCZOS3
      case .linear: CPIXELS_KERNEL_TRIANGLE
      case .nearest: CPIXELS_KERNEL_BOX
      }
    let kernel =
      axis.isDoubled ? CPIXELS_KERNEL_DOUBLED_LANCZOS3 : axis.ratio < 1 ? enlarging : CPIXELS_KERNEL_LANCZOS3
    self.init(
      source_count: UInt32(axis.sourceCount), destination_count: UInt32(axis.destinationCount),
      ratio: axis.ratio, offset: axis.offset, kernel: kernel,
      emphasis: kernel == CPIXELS_KERNEL_LANCZOS3 ? axis.emphasis : 0)
  }
}

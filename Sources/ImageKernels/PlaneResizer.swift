internal import CPixels
package import ImageCodecs

/// The arithmetic with which samples are resampled.
package enum Resampling: Sendable, Hashable {
  /// As the samples are stored.
  case stored
  /// To the samples of Pillow; see `cpixels_exact`. Only for gray, RGB and RGBA of 8 bits.
  case pillow
  /// In linear light; see `cpixels.h`. Alpha is straight.
  case linearLight
}

/// A streaming resizer of one plane.
///
/// It is a class because a stage stores up to three in an array, and arrays cannot store noncopyable values.
package final class PlaneResizer {
  private enum Handle {
    case fast(OpaquePointer)
    /// Its samples equal those of Pillow.
    case exact(OpaquePointer)
    /// Its samples equal those of libjpeg.
    case doubling(OpaquePointer)

    var fast: OpaquePointer? { if case .fast(let resizer) = self { resizer } else { nil } }
  }

  private let memory: PixelBuffer
  private let handle: Handle
  private let output: RowBuffer
  private let sourceRowByteCount: Int

  /// Returns the maximum number of rows that are read at once: more of narrow ones, as passing a strip through the stages costs
  /// as much as some of its rows.
  static func outputRowCount(rowByteCount: Int) -> Int { rowByteCount <= 1024 ? 32 : 16 }

  /// Creates a resizer and allocates its memory.
  /// - `columnsFirst`: whether columns are resampled before rows, if that makes a difference: as for an image that is
  ///   displayed rotated by a quarter, with the samples of Pillow.
  /// - `known`: a resizer whose weights are copied where its axes are the same.
  /// - Throws: `misuse` for an axis out of range, `outOfMemory` if the budget is exhausted.
  package init(
    horizontal: AxisGeometry, vertical: AxisGeometry, format: PixelFormat, resampling: Resampling = .stored,
    columnsFirst: Bool = false, known: PlaneResizer? = nil, budget: ImageBudget
  ) throws(CodecError) {
    var options = cpixels_resizer_options(horizontal, vertical, format, resampling, columnsFirst)
    guard let byteCount = Self.measure(&options, resampling) else {
      throw CodecError(code: .misuse, message: "no resizer for \(horizontal) by \(vertical)")
    }
    let memory = try PixelBuffer(byteCount: byteCount, budget: budget)
    let handle =
      switch resampling {
      case .pillow: cpixels_exact_init(&options, memory.unsafeBase).map { Handle.exact($0) }
      case .stored, .linearLight:
        cpixels_resizer_init(&options, known?.handle.fast, memory.unsafeBase).map { Handle.fast($0) }
      }
    guard let handle else {
      throw CodecError(code: .misuse, message: "no resizer for \(horizontal) by \(vertical)")
    }
    let rowByteCount = horizontal.destinationCount * format.pixelByteCount
    output = try RowBuffer(
      rowByteCount: rowByteCount, rowCount: Self.outputRowCount(rowByteCount: rowByteCount), budget: budget)
    sourceRowByteCount = horizontal.sourceCount * format.pixelByteCount
    self.memory = memory
    self.handle = handle
  }

  /// Creates a resizer that brings a plane of chroma to the size of its image, as libjpeg does.
  /// - Returns: `nil` if the plane does not have half of the image's columns or rows, or both.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init?(doubling plane: PlaneLayout, to image: PlaneLayout, budget: ImageBudget) throws(CodecError) {
    var options = cpixels_doubler_options(plane, image)
    var byteCount = 0
    guard cpixels_doubler_measure(&options, &byteCount) else { return nil }
    memory = try PixelBuffer(byteCount: byteCount, budget: budget)
    guard let handle = cpixels_doubler_init(&options, memory.unsafeBase) else { return nil }
    self.handle = .doubling(handle)
    output = try RowBuffer(
      rowByteCount: image.width, rowCount: Self.outputRowCount(rowByteCount: image.width), budget: budget)
    sourceRowByteCount = plane.width
  }

  /// Returns the number of bytes that a doubling resizer charges; 0 if there is none for the plane.
  package static func byteCount(doubling plane: PlaneLayout, to image: PlaneLayout) -> Int {
    var options = cpixels_doubler_options(plane, image)
    var byteCount = 0
    guard cpixels_doubler_measure(&options, &byteCount) else { return 0 }
    return byteCount + image.width * outputRowCount(rowByteCount: image.width)
  }

  /// Returns the number of bytes that a resizer for these axes charges.
  package static func byteCount(
    horizontal: AxisGeometry, vertical: AxisGeometry, format: PixelFormat, resampling: Resampling = .stored,
    columnsFirst: Bool = false
  ) -> Int {
    var options = cpixels_resizer_options(horizontal, vertical, format, resampling, columnsFirst)
    guard let byteCount = measure(&options, resampling) else { return 0 }
    let rowByteCount = horizontal.destinationCount * format.pixelByteCount
    return byteCount + rowByteCount * outputRowCount(rowByteCount: rowByteCount)
  }

  private static func measure(_ options: inout cpixels_resizer_options, _ resampling: Resampling) -> Int? {
    var byteCount = 0
    let isValid =
      switch resampling {
      case .pillow: cpixels_exact_measure(&options, &byteCount)
      case .stored, .linearLight: cpixels_resizer_measure(&options, &byteCount)
      }
    return isValid ? byteCount : nil
  }

  /// Consumes rows while there is room, and returns their number.
  package func push(_ rows: Strip.Rows) -> Int {
    if rows.isEmpty { return 0 }
    precondition(rows.rowByteCount >= sourceRowByteCount, "rows are shorter")
    return switch handle {
    case .fast(let handle): cpixels_resizer_push(handle, rows.unsafeBase, rows.rowStride, rows.rowCount)
    case .exact(let handle): cpixels_exact_push(handle, rows.unsafeBase, rows.rowStride, rows.rowCount)
    case .doubling(let handle): cpixels_doubler_push(handle, rows.unsafeBase, rows.rowStride, rows.rowCount)
    }
  }

  /// Prepares for the rows of another frame.
  package func reset() {
    switch handle {
    case .fast(let handle): cpixels_resizer_reset(handle)
    case .exact(let handle): cpixels_exact_reset(handle)
    case .doubling(let handle): cpixels_doubler_reset(handle)
    }
  }

  /// Leaves out rows of the result that are those of the frame before, as the source's rows are at its top and bottom.
  /// - Returns: The numbers of rows that are left out.
  package func keep(above: Int, below: Int) -> (above: Int, below: Int) {
    guard let handle = handle.fast else { return (0, 0) }
    var (above, below) = (UInt32(above), UInt32(below))
    cpixels_resizer_keep(handle, &above, &below)
    return (Int(above), Int(below))
  }

  /// Consumes rows that no row of the result needs any more, and returns their number.
  package func skip(_ rowCount: Int) -> Int {
    guard let handle = handle.fast else { return 0 }
    return cpixels_resizer_skip(handle, rowCount)
  }

  /// Returns the next finished rows, as many as fit into the buffer for them; they are valid until the next read.
  package func read() -> Strip.Rows {
    let count =
      switch handle {
      case .fast(let handle):
        cpixels_resizer_read(handle, output.unsafeRow(0), output.rowByteCount, output.rowCount)
      case .exact(let handle):
        cpixels_exact_read(handle, output.unsafeRow(0), output.rowByteCount, output.rowCount)
      case .doubling(let handle):
        cpixels_doubler_read(handle, output.unsafeRow(0), output.rowByteCount, output.rowCount)
      }
    return output.rows(count: count)
  }
}

extension cpixels_resizer_options {
  fileprivate init(
    _ horizontal: AxisGeometry, _ vertical: AxisGeometry, _ format: PixelFormat, _ resampling: Resampling,
    _ columnsFirst: Bool
  ) {
    let inLinearLight = resampling == .linearLight
    self.init(
      horizontal: cpixels_axis_options(horizontal, dropsOutside: inLinearLight),
      vertical: cpixels_axis_options(vertical, dropsOutside: inLinearLight), channels: UInt8(format.channelCount),
      sample: format.is16Bit ? CPIXELS_SAMPLE_U16 : CPIXELS_SAMPLE_U8, in_linear_light: inLinearLight,
      has_alpha: inLinearLight && format.hasAlpha, columns_first: columnsFirst && resampling == .pillow,
      isa: CPIXELS_ISA_BEST)
  }
}

extension cpixels_doubler_options {
  fileprivate init(_ plane: PlaneLayout, _ image: PlaneLayout) {
    self.init(
      source_width: UInt32(plane.width), source_height: UInt32(plane.height), width: UInt32(image.width),
      height: UInt32(image.height), doubles_columns: plane.horizontalScale == image.horizontalScale / 2,
      doubles_rows: plane.verticalScale == image.verticalScale / 2)
  }
}

extension cpixels_axis_options {
  fileprivate init(_ axis: AxisGeometry, dropsOutside: Bool) {
    let enlarging =
      switch axis.enlargement {
      case .same: axis.kernel.handle
      case .linear: CPIXELS_KERNEL_TRIANGLE
      case .nearest: CPIXELS_KERNEL_BOX
      }
    let kernel = axis.isDoubled ? CPIXELS_KERNEL_DOUBLED_LANCZOS3 : axis.ratio < 1 ? enlarging : axis.kernel.handle
    self.init(
      source_count: UInt32(axis.sourceCount), destination_count: UInt32(axis.destinationCount),
      ratio: axis.ratio, offset: axis.offset, kernel: kernel,
      emphasis: kernel == CPIXELS_KERNEL_LANCZOS3 ? axis.emphasis : 0, drops_outside: dropsOutside,
      is_reversed: axis.isReversed)
  }
}

extension ResamplingKernel {
  fileprivate var handle: cpixels_kernel {
    switch self {
    case .lanczos3: CPIXELS_KERNEL_LANCZOS3
    case .lanczos2: CPIXELS_KERNEL_LANCZOS2
    case .mitchell: CPIXELS_KERNEL_MITCHELL
    case .bicubic: CPIXELS_KERNEL_CUBIC
    case .bilinear: CPIXELS_KERNEL_TRIANGLE
    case .box: CPIXELS_KERNEL_MEAN
    case .nearest: CPIXELS_KERNEL_NEAREST
    }
  }
}

internal import CPixels
internal import ImageCodecs

/// One pass of a chain of filters: rows in, rows out.
protocol RowFilter: AnyObject {
  /// Takes rows while there is room; returns how many.
  func push(_ rows: Strip.Rows) -> Int
  /// The next finished rows, if there are any; valid until the next call.
  func read() -> Strip.Rows
}

/// Where a pass puts finished rows, a few at a time.
struct RowFilterBuffer {
  static let rowCount = 16

  private let buffer: PixelBuffer
  let rowByteCount: Int

  init(rowByteCount: Int, budget: PictureBudget) throws(CodecError) {
    self.rowByteCount = rowByteCount
    buffer = try PixelBuffer(byteCount: rowByteCount * Self.rowCount, budget: budget)
  }

  var base: UnsafeMutablePointer<UInt8> { buffer.base.assumingMemoryBound(to: UInt8.self) }

  func row(_ index: Int) -> UnsafeMutablePointer<UInt8> { base + index * rowByteCount }

  func rows(_ count: Int) -> Strip.Rows {
    Strip.Rows(base: UnsafeRawPointer(base), rowStride: rowByteCount, rowCount: count)
  }
}

/// A pass that is one table of 8-bit levels.
final class LevelFilter: RowFilter {
  private let table: [UInt8]
  private let width: Int
  private let channelCount: UInt32
  private let output: RowFilterBuffer
  private var readyCount = 0

  init(table: [UInt8], width: Int, format: PixelFormat, budget: PictureBudget) throws(CodecError) {
    self.table = table
    self.width = width
    channelCount = UInt32(format.channelCount)
    output = try RowFilterBuffer(rowByteCount: width * format.pixelByteCount, budget: budget)
  }

  func push(_ rows: Strip.Rows) -> Int {
    readyCount = min(rows.rowCount, RowFilterBuffer.rowCount)
    for row in 0..<readyCount {
      cpixels_map_levels(table, channelCount, rows.row(row), output.row(row), width, CPIXELS_ISA_BEST)
    }
    return readyCount
  }

  func read() -> Strip.Rows {
    defer { readyCount = 0 }
    return output.rows(readyCount)
  }
}

/// A pass that runs a colour program.
final class ColorFilter: RowFilter {
  // The program keeps addresses of its table and its steps, which therefore live in blocks of their own.
  private let table: UnsafeMutableBufferPointer<Float>
  private let steps: UnsafeMutableBufferPointer<cpixels_color_step>
  private var program: cpixels_color_program
  private let channelCount: UInt32
  private let output: RowFilterBuffer
  private var nextRow: UInt32 = 0
  private var readyCount = 0

  init(_ program: ColorProgram, size: PixelSize, format: PixelFormat, budget: PictureBudget) throws(CodecError) {
    output = try RowFilterBuffer(rowByteCount: size.width * format.pixelByteCount, budget: budget)
    channelCount = UInt32(format.channelCount)
    table = .allocate(capacity: program.table?.count ?? 0)
    _ = table.initialize(from: (program.table ?? []).map(Float.init))
    steps = .allocate(capacity: program.steps.count)
    _ = steps.initialize(from: program.steps.map { cpixels_color_step($0.operation) })
    self.program = cpixels_color_program(
      table: program.table == nil ? nil : UnsafePointer(table.baseAddress),
      steps: UnsafePointer(steps.baseAddress), step_count: UInt32(steps.count),
      width: UInt32(size.width), height: UInt32(size.height))
  }

  deinit {
    table.deallocate()
    steps.deallocate()
  }

  func push(_ rows: Strip.Rows) -> Int {
    readyCount = min(rows.rowCount, RowFilterBuffer.rowCount)
    for row in 0..<readyCount {
      cpixels_color_row(&program, nextRow, channelCount, rows.row(row), output.row(row), CPIXELS_ISA_BEST)
      nextRow += 1
    }
    return readyCount
  }

  func read() -> Strip.Rows {
    defer { readyCount = 0 }
    return output.rows(readyCount)
  }
}

/// A pass whose pixels depend on those around them.
final class AreaFilter: RowFilter {
  private let memory: PixelBuffer
  private let handle: OpaquePointer
  private let output: RowFilterBuffer

  /// - `size`: as stored; `orientation` is how it will be shown.
  init(
    _ operation: AreaOperation, size: PixelSize, orientation: Orientation, format: PixelFormat, budget: PictureBudget
  ) throws(CodecError) {
    var options = cpixels_area_options(operation, size: size, orientation: orientation, format: format)
    var byteCount = 0
    guard cpixels_area_measure(&options, &byteCount) else { throw Self.misuse(operation, size) }
    let memory = try PixelBuffer(byteCount: byteCount, budget: budget)
    guard let handle = cpixels_area_init(&options, memory.base) else { throw Self.misuse(operation, size) }
    output = try RowFilterBuffer(rowByteCount: size.width * format.pixelByteCount, budget: budget)
    self.memory = memory
    self.handle = handle
  }

  /// The bytes that such a filter charges beside its output rows.
  static func heldByteCount(_ operation: AreaOperation, size: PixelSize, format: PixelFormat) -> Int {
    var options = cpixels_area_options(operation, size: size, orientation: .up, format: format)
    var byteCount = 0
    return cpixels_area_measure(&options, &byteCount) ? byteCount : 0
  }

  func push(_ rows: Strip.Rows) -> Int {
    rows.rowCount == 0 ? 0 : cpixels_area_push(handle, rows.row(0), rows.rowStride, rows.rowCount)
  }

  func read() -> Strip.Rows {
    output.rows(cpixels_area_read(handle, output.base, output.rowByteCount, RowFilterBuffer.rowCount))
  }

  private static func misuse(_ operation: AreaOperation, _ size: PixelSize) -> CodecError {
    CodecError(code: .misuse, message: "no filter for \(operation) on \(size)")
  }
}

extension cpixels_color_step {
  fileprivate init(_ operation: ColorOperation) {
    switch operation {
    case .matrix(let matrix): self.init(CPIXELS_COLOR_MATRIX, matrix.numbers)
    case .curve(.linear(let slope, let intercept)): self.init(CPIXELS_COLOR_LINEAR, [slope, intercept])
    case .curve(.power(let exponent, let amplitude, let offset, let share)):
      self.init(CPIXELS_COLOR_POWER, [exponent, amplitude, offset, share])
    case .curve(.exposure(let gain, let share)): self.init(CPIXELS_COLOR_EXPOSURE, [gain, share])
    case .threshold(let level, let share):
      self.init(CPIXELS_COLOR_THRESHOLD, ColorMatrix.luminance + [level, share])
    case .vignette(let radius, let softness, let share):
      self.init(CPIXELS_COLOR_VIGNETTE, [radius, softness, share])
    }
  }

  private init(_ kind: cpixels_color_step_kind, _ values: [Double]) {
    self.init()
    self.kind = kind
    withUnsafeMutableBytes(of: &numbers) { bytes in
      for (index, value) in values.enumerated() {
        bytes.storeBytes(of: Float(value), toByteOffset: index * MemoryLayout<Float>.stride, as: Float.self)
      }
    }
  }
}

extension cpixels_area_options {
  fileprivate init(_ operation: AreaOperation, size: PixelSize, orientation: Orientation, format: PixelFormat) {
    self.init()
    width = UInt32(size.width)
    height = UInt32(size.height)
    channels = UInt8(format.channelCount)
    isa = CPIXELS_ISA_BEST
    switch operation {
    case .blur(let radius, let share):
      (kind, self.radius, amount) = (CPIXELS_AREA_BLUR, radius, share)
    case .sharpen(let radius, let amount, let threshold):
      (kind, self.radius, self.amount, self.threshold) = (CPIXELS_AREA_SHARPEN, radius, amount, threshold)
    case .pixelate(let block, let share):
      (kind, self.block, amount) = (CPIXELS_AREA_PIXELATE, UInt32(block), share)
      // Blocks begin at the corner that is shown at the upper left, so that cut ones lie at the lower right.
      func first(_ length: Int, isReversed: Bool) -> UInt32 {
        UInt32(isReversed ? (length - 1) % block + 1 : block)
      }
      first_width = first(size.width, isReversed: orientation.reversesColumns)
      first_height = first(size.height, isReversed: orientation.reversesRows)
    }
  }
}

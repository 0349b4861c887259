internal import CPixels
package import ImageCodecs

/// A step of a `ColorFilter`, applied to each pixel independently: see "Color filters" in `cpixels.h`.
package enum ColorStep: Sendable, Hashable {
  /// Three rows of four numbers: weights of red, green and blue, and a constant.
  case matrix([Double])
  case linear(slope: Double, intercept: Double)
  case power(exponent: Double, amplitude: Double, offset: Double, share: Double)
  case exposure(gain: Double, share: Double)
  /// - `weights`: the weights of red, green and blue.
  case threshold(weights: [Double], level: Double, share: Double)
  case vignette(radius: Double, softness: Double, share: Double)
}

/// A filter that applies a sequence of steps to each pixel, without rounding between them.
package final class ColorFilter: RowFilter {
  // The C program keeps the addresses of the table and the steps, so they have their own allocations.
  private let table: UnsafeMutableBufferPointer<Float>
  private let steps: UnsafeMutableBufferPointer<cpixels_color_step>
  private var program: cpixels_color_program
  private let channelCount: UInt32
  private let output: RowBuffer
  private var nextRow: UInt32 = 0
  private var readyCount = 0

  /// Creates a filter and allocates its output rows.
  /// - `levels`: the initial value of each 8-bit level, 256 numbers from 0 to 1; `nil` for level / 255.
  /// - `width`, `height`: the size of the image in pixels.
  /// - `format`: `rgb8` or `rgba8`.
  /// - Throws: `outOfMemory` if the budget is exhausted.
  package init(
    levels: [Double]?, steps list: [ColorStep], width: Int, height: Int, format: PixelFormat, budget: ImageBudget
  ) throws(CodecError) {
    precondition(levels == nil || levels?.count == 256)
    output = try RowBuffer(
      rowByteCount: width * format.pixelByteCount, rowCount: Self.rowCount, budget: budget)
    channelCount = UInt32(format.channelCount)
    table = .allocate(capacity: levels?.count ?? 0)
    _ = table.initialize(from: (levels ?? []).map(Float.init))
    steps = .allocate(capacity: list.count)
    _ = steps.initialize(from: list.map { cpixels_color_step($0) })
    program = cpixels_color_program(
      table: levels == nil ? nil : UnsafePointer(table.baseAddress),
      steps: UnsafePointer(steps.baseAddress), step_count: UInt32(steps.count),
      width: UInt32(width), height: UInt32(height))
  }

  deinit {
    table.deallocate()
    steps.deallocate()
  }

  package func push(_ rows: Strip.Rows) -> Int {
    precondition(rows.isEmpty || rows.rowByteCount >= output.rowByteCount, "rows are shorter")
    readyCount = min(rows.rowCount, Self.rowCount)
    for row in 0..<readyCount {
      cpixels_color_row(&program, nextRow, channelCount, rows.bytes(row), output.bytes(row), CPIXELS_ISA_BEST)
      nextRow += 1
    }
    return readyCount
  }

  package func reset() { nextRow = 0 }

  package func read() -> Strip.Rows {
    defer { readyCount = 0 }
    return output.rows(count: readyCount)
  }
}

extension cpixels_color_step {
  fileprivate init(_ step: ColorStep) {
    switch step {
    case .matrix(let numbers): self.init(CPIXELS_COLOR_MATRIX, numbers)
    case .linear(let slope, let intercept): self.init(CPIXELS_COLOR_LINEAR, [slope, intercept])
    case .power(let exponent, let amplitude, let offset, let share):
      self.init(CPIXELS_COLOR_POWER, [exponent, amplitude, offset, share])
    case .exposure(let gain, let share): self.init(CPIXELS_COLOR_EXPOSURE, [gain, share])
    case .threshold(let weights, let level, let share):
      self.init(CPIXELS_COLOR_THRESHOLD, weights + [level, share])
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

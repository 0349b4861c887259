internal import ImageCodecs
internal import ImageKernels

extension FilterChain.Pass {
  /// Creates the kernel for this pass.
  /// - `size`: The stored size of the image; `orientation` is that of its display.
  func rowFilter(
    _ size: PixelSize, _ orientation: Orientation, format: PixelFormat, budget: ImageBudget
  ) throws(CodecError) -> any RowFilter {
    switch self {
    case .levels(let table, _):
      return try LevelFilter(table: table, width: size.width, format: format, budget: budget)
    case .color(let program):
      return try ColorFilter(
        levels: program.table, steps: program.steps.map { $0.operation.step }, width: size.width, height: size.height,
        format: format, budget: budget)
    case .area(let operation, _):
      return try AreaFilter(
        operation, width: size.width, height: size.height, orientation: orientation, format: format, budget: budget)
    }
  }
}

extension ColorOperation {
  fileprivate var step: ColorStep {
    switch self {
    case .matrix(let matrix): .matrix(matrix.numbers)
    case .curve(.linear(let slope, let intercept)): .linear(slope: slope, intercept: intercept)
    case .curve(.power(let exponent, let amplitude, let offset, let share)):
      .power(exponent: exponent, amplitude: amplitude, offset: offset, share: share)
    case .curve(.exposure(let gain, let share)): .exposure(gain: gain, share: share)
    case .threshold(let level, let share): .threshold(weights: ColorMatrix.luminance, level: level, share: share)
    case .vignette(let radius, let softness, let share): .vignette(radius: radius, softness: softness, share: share)
    }
  }
}

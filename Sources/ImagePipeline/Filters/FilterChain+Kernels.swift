internal import ImageCodecs
internal import ImageKernels

extension FilterChain.Pass {
  /// Creates the kernel for this pass.
  /// - `size`: The stored size of the image; `orientation` is that of its display.
  func rowFilter(
    _ size: PixelSize, _ orientation: Orientation, format: PixelFormat, budget: ImageBudget
  ) throws(CodecError) -> RowFilter {
    switch self {
    case .levels(let table, _):
      return .levels(try LevelFilter(table: table, width: size.width, format: format, budget: budget))
    case .color(let program):
      return .color(
        try ColorFilter(
          levels: program.table, steps: program.steps.map { $0.operation.step }, width: size.width,
          height: size.height, format: format, budget: budget))
    case .area(let operation, _):
      return .area(
        try AreaFilter(
          operation.kernel(size, orientation), width: size.width, height: size.height, format: format, budget: budget))
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
    case .curve(.levels): preconditionFailure("a curve of levels begins a pass, as a part of its table")
    case .threshold(let level, let share): .threshold(weights: ColorMatrix.luminance, level: level, share: share)
    case .vignette(let radius, let softness, let share): .vignette(radius: radius, softness: softness, share: share)
    }
  }
}

extension AreaOperation {
  /// Returns the kernel of this operation.
  /// - `size`: The stored size of the image; `orientation` is that of its display.
  func kernel(_ size: PixelSize, _ orientation: Orientation) -> AreaFilter.Kernel {
    switch self {
    case .blur(let radius, let share): return .blur(radius: radius, share: share)
    case .sharpen(let radius, let amount, let threshold):
      return .sharpen(radius: radius, amount: amount, threshold: threshold)
    case .pixelate(let block, let share):
      // Blocks start at the corner that is displayed at the upper left, so that incomplete blocks lie at the lower
      // right.
      func first(_ length: Int, isReversed: Bool) -> Int { isReversed ? (length - 1) % block + 1 : block }
      return .pixelate(
        size: block, firstWidth: first(size.width, isReversed: orientation.reversesColumns),
        firstHeight: first(size.height, isReversed: orientation.reversesRows), share: share)
    }
  }
}

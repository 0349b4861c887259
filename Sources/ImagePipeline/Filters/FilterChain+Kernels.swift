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
        levels: program.table, steps: program.steps.map(\.operation), width: size.width, height: size.height,
        format: format, budget: budget)
    case .area(let operation, _):
      return try AreaFilter(
        operation, width: size.width, height: size.height, orientation: orientation, format: format, budget: budget)
    }
  }
}

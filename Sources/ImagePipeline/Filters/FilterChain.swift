/// The filters of one image as passes over its rows, in the caller's order.
///
/// Neighbouring filters of single pixels share a pass, in which nothing is rounded, and within it they fuse where that
/// does not change the image: matrices multiply when what the first gives needs no clamping, and curves that the pass
/// begins with become one table. A pass of curves alone is a table of 8-bit levels.
package struct FilterChain: Sendable, Hashable {
  /// A pass over the rows.
  enum Pass: Sendable, Hashable {
    /// Each level of each colour channel becomes its entry.
    case levels(table: [UInt8], filters: [FilterKind])
    case color(ColorProgram)
    case area(AreaOperation, filter: FilterKind)
  }

  let passes: [Pass]

  /// - `filters`: checked, in the order in which they are applied.
  init(_ filters: [FilterSettings]) { self.init(filters.map { ($0.kind, $0.effect) }) }

  /// - `effects`: the filters and what they do, `nil` for nothing.
  init(_ effects: [(filter: FilterKind, effect: FilterEffect?)]) {
    var passes: [Pass] = []
    var run = ColorRun()
    for (filter, effect) in effects {
      switch effect {
      case nil: break
      case .color(let operation):
        if operation.needsLevels, !run.isCurves { passes += run.takePass() }
        run.append(operation, filter: filter)
      case .area(let operation):
        passes += run.takePass()
        passes.append(.area(operation, filter: filter))
      }
    }
    self.passes = passes + run.takePass()
  }

  /// Whether the image stays as it is: nothing was asked for, or nothing that changes it.
  package var isEmpty: Bool { passes.isEmpty }

  /// Whether some pass looks at more than a pixel at a time.
  var hasAreas: Bool { passes.contains { if case .area = $0 { true } else { false } } }

  /// Rows that a pass holds beside the one it works on, over all passes.
  package var haloRowCount: Int {
    passes.reduce(0) { sum, pass in
      if case .area(let operation, _) = pass { sum + 2 * operation.haloRowCount } else { sum }
    }
  }
}

/// What is done to each pixel in one pass.
struct ColorProgram: Sendable, Hashable {
  /// A step, and the filters that it stands for.
  struct Step: Sendable, Hashable {
    var operation: ColorOperation
    var filters: [FilterKind]
  }

  /// What each 8-bit level is to begin with, 0 to 1; `nil` for level / 255.
  var table: [Double]?
  /// The filters that the table stands for.
  var tableFilters: [FilterKind] = []
  var steps: [Step]
}

/// Neighbouring filters of single pixels on their way to becoming one pass.
private struct ColorRun {
  private typealias Ranges = [ClosedRange<Double>]

  private var steps: [ColorProgram.Step] = []
  /// What channels can be before each step; and, last, after all of them.
  private var ranges: [Ranges] = [[0...1, 0...1, 0...1]]

  /// Clamping a number this much out of range does nothing that 8 bits could show.
  private static let slack = 1e-9

  /// Whether all of it becomes a table of levels.
  var isCurves: Bool { steps.allSatisfy(\.operation.isCurve) }

  mutating func append(_ operation: ColorOperation, filter: FilterKind) {
    var step = ColorProgram.Step(operation: operation, filters: [filter])
    while let last = steps.last, let fused = fuse(last, step) {
      steps.removeLast()
      ranges.removeLast()
      step = fused
    }
    guard !step.operation.isIdentity else { return }
    steps.append(step)
    ranges.append(step.operation.image(of: ranges[ranges.count - 1]))
  }

  /// Both matrices as one, unless the first gives something that must be clamped before the second.
  private func fuse(_ first: ColorProgram.Step, _ second: ColorProgram.Step) -> ColorProgram.Step? {
    guard let one = first.operation.matrix, let other = second.operation.matrix else { return nil }
    let image = one.image(of: ranges[steps.count - 1])
    guard image.allSatisfy({ $0.lowerBound >= -Self.slack && $0.upperBound <= 1 + Self.slack }) else { return nil }
    return ColorProgram.Step(operation: Self.operation(other.after(one)), filters: first.filters + second.filters)
  }

  /// A matrix that does the same to every channel is a curve, which more can be made of.
  private static func operation(_ matrix: ColorMatrix) -> ColorOperation {
    let n = matrix.numbers
    let isLinear = matrix == ColorMatrix(diagonal: [n[0], n[0], n[0]], constant: n[3])
    return isLinear ? .curve(.linear(slope: n[0], intercept: n[3])) : .matrix(matrix)
  }

  /// The pass, or none when nothing is left to do; the run starts anew.
  mutating func takePass() -> [FilterChain.Pass] {
    defer { self = ColorRun() }
    let curves = steps.prefix { $0.operation.isCurve }
    let rest = Array(steps.dropFirst(curves.count))
    guard !curves.isEmpty else { return rest.isEmpty ? [] : [.color(ColorProgram(steps: rest))] }
    let filters = curves.flatMap(\.filters)
    let table = (0...255).map { level in
      curves.reduce(Double(level) / 255) { value, step in
        if case .curve(let curve) = step.operation { curve.value(value) } else { value }
      }
    }
    guard rest.isEmpty else {
      return [.color(ColorProgram(table: table, tableFilters: filters, steps: rest))]
    }
    let levels = table.map { UInt8(($0 * 255).rounded()) }
    return levels == Array(0...255) ? [] : [.levels(table: levels, filters: filters)]
  }
}

extension FilterChain: CustomStringConvertible {
  /// The passes, as in `levels(invert, gamma) | matrix(sepia, hue) > vignette | blur(halo 12)`: passes are set apart by
  /// bars, the steps of a pass by arrows, and filters that became one step stand in its brackets.
  package var description: String { passes.map(\.description).joined(separator: " | ") }

  fileprivate static func names(_ filters: [FilterKind]) -> String {
    filters.map(\.rawValue).joined(separator: ", ")
  }
}

extension ColorProgram.Step: CustomStringConvertible {
  var description: String {
    switch operation {
    case .matrix: "matrix(\(FilterChain.names(filters)))"
    case .curve: "curve(\(FilterChain.names(filters)))"
    case .threshold, .vignette: FilterChain.names(filters)
    }
  }
}

extension FilterChain.Pass: CustomStringConvertible {
  var description: String {
    switch self {
    case .levels(_, let filters): "levels(\(FilterChain.names(filters)))"
    case .area(let operation, let filter): "\(filter.rawValue)(halo \(operation.haloRowCount))"
    case .color(let program):
      ((program.table == nil ? [] : ["table(\(FilterChain.names(program.tableFilters)))"])
        + program.steps.map(\.description))
        .joined(separator: " > ")
    }
  }
}

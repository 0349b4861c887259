internal import ImageKernels

/// The filters of one image, combined into passes over its rows, in the order of the request.
///
/// Adjacent filters that work on single pixels share a pass, in which intermediate values are not rounded. Within a
/// pass, filters are fused if this does not change the image: matrices are multiplied if the output of the first needs
/// no clamping, and the curves at the start of a pass become one table. A pass that contains only curves becomes a
/// table of 8-bit levels.
package struct FilterChain: Sendable, Hashable {
  /// A pass over the rows.
  enum Pass: Sendable, Hashable {
    /// Replaces each level of each color channel by its table entry.
    case levels(table: [UInt8], filters: [FilterKind])
    /// Applies operations on single pixels.
    case color(ColorProgram)
    /// Applies an operation on areas.
    case area(AreaOperation, filter: FilterKind)
  }

  let passes: [Pass]

  /// Creates a chain.
  /// - `filters`: The checked filters, in the order in which they are applied.
  init(_ filters: [FilterSettings]) { self.init(filters.map { ($0.kind, $0.effect) }) }

  /// Creates a chain.
  /// - `effects`: The filters and their operations; `nil` for a filter that changes nothing.
  init(_ effects: [(filter: FilterKind, effect: FilterEffect?)]) {
    var passes: [Pass] = []
    var run = ColorRun()
    for (filter, effect) in effects {
      switch effect {
      case nil: break
      case .color(let operation): run.append(operation, filter: filter)
      case .area(let operation):
        passes += run.takePass()
        passes.append(.area(operation, filter: filter))
      }
    }
    self.passes = passes + run.takePass()
  }

  /// Creates a chain that replaces each of 256 levels of each channel, also of gray.
  init(levels: [UInt8]) { passes = [.levels(table: levels, filters: [])] }

  /// Whether the chain leaves every image unchanged.
  package var isEmpty: Bool { passes.isEmpty }

  /// Whether any pass works on areas.
  var hasAreas: Bool { passes.contains { if case .area = $0 { true } else { false } } }

  /// The number of rows that passes buffer in addition to the current one, summed over all passes.
  package var haloRowCount: Int {
    passes.reduce(0) { sum, pass in
      if case .area(let operation, _) = pass { sum + 2 * operation.haloRowCount } else { sum }
    }
  }
}

/// The operations on each pixel in one pass.
struct ColorProgram: Sendable, Hashable {
  /// An operation and the filters from which it was fused.
  struct Step: Sendable, Hashable {
    var operation: ColorStep
    var filters: [FilterKind]
  }

  /// The initial value of each 8-bit level, 0 to 1; `nil` for level / 255.
  var table: [Double]?
  /// The filters from which the table was computed.
  var tableFilters: [FilterKind] = []
  var steps: [Step]
}

/// Collects adjacent filters on single pixels to combine them into one pass.
private struct ColorRun {
  private typealias Ranges = [ClosedRange<Double>]

  private var steps: [ColorProgram.Step] = []
  /// The channel ranges before each step and, last, after all steps.
  private var ranges: [Ranges] = [[0...1, 0...1, 0...1]]

  /// The excess beyond 0 to 1 whose clamping has no visible effect at 8 bits.
  private static let slack = 1e-9

  mutating func append(_ operation: ColorStep, filter: FilterKind) {
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

  /// Returns the product of two matrix steps; `nil` if either is no matrix or the output of the first must be clamped.
  private func fuse(_ first: ColorProgram.Step, _ second: ColorProgram.Step) -> ColorProgram.Step? {
    guard let one = first.operation.matrix, let other = second.operation.matrix else { return nil }
    let image = one.image(of: ranges[steps.count - 1])
    guard image.allSatisfy({ $0.lowerBound >= -Self.slack && $0.upperBound <= 1 + Self.slack }) else { return nil }
    return ColorProgram.Step(operation: Self.operation(other.after(one)), filters: first.filters + second.filters)
  }

  /// Returns a curve for a matrix that treats every channel alike, as curves can be combined further; otherwise the
  /// matrix.
  private static func operation(_ matrix: ColorMatrix) -> ColorStep {
    let n = matrix.numbers
    let isLinear = matrix == ColorMatrix(diagonal: [n[0], n[0], n[0]], constant: n[3])
    return isLinear ? .linear(slope: n[0], intercept: n[3]) : .matrix(n)
  }

  /// Returns the pass, or none if nothing is left to do, and resets the run.
  mutating func takePass() -> [FilterChain.Pass] {
    defer { self = ColorRun() }
    let curves = steps.prefix { $0.operation.isCurve }
    let rest = Array(steps.dropFirst(curves.count))
    guard !curves.isEmpty else { return rest.isEmpty ? [] : [.color(ColorProgram(steps: rest))] }
    let filters = curves.flatMap(\.filters)
    let table = (0...255).map { level in
      curves.reduce(Double(level) / 255) { value, step in step.operation.value(value) }
    }
    guard rest.isEmpty else {
      return [.color(ColorProgram(table: table, tableFilters: filters, steps: rest))]
    }
    let levels = table.map { UInt8(($0 * 255).rounded()) }
    return levels == Array(0...255) ? [] : [.levels(table: levels, filters: filters)]
  }
}

extension FilterChain: CustomStringConvertible {
  /// The passes, such as `levels(invert, gamma) | matrix(sepia, hue) > vignette | blur(halo 12)`.
  ///
  /// Bars separate passes, arrows separate the steps of a pass, and parentheses contain the filters that were fused
  /// into one step.
  package var description: String { passes.map(\.description).joined(separator: " | ") }

  fileprivate static func names(_ filters: [FilterKind]) -> String {
    filters.map(\.rawValue).joined(separator: ", ")
  }
}

extension ColorProgram.Step: CustomStringConvertible {
  var description: String {
    switch operation {
    case .matrix: "matrix(\(FilterChain.names(filters)))"
    case .linear, .power, .exposure: "curve(\(FilterChain.names(filters)))"
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

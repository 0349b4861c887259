internal import ArgumentParser
internal import ImagePipeline

/// `image-worker filters`.
struct Filters: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the filters with their parameters, ranges and defaults.",
    discussion: """
      Each filter has an intensity from 0 (the image is unchanged) to 1 (the filter is fully applied).
      """)

  func run() throws {
    let heading = ["filter", "parameter", "range", "default", "meaning"]
    let rows = [heading] + FilterKind.allCases.flatMap(Self.rows)
    try FileSystem.printLine(ReadableText.table(rows))
  }

  /// A row for the filter, and one for each of its parameters: filter, parameter, range, default, meaning.
  private static func rows(_ kind: FilterKind) -> [[String]] {
    let parameters = kind.parameters.map { parameter in
      let (low, high) = (parameter.range.lowerBound, parameter.range.upperBound)
      return [
        "", parameter.name, "\(FilterParameter.text(low)) to \(FilterParameter.text(high))",
        FilterParameter.text(parameter.defaultValue), parameter.summary,
      ]
    }
    return [[kind.rawValue, "", "", "", kind.summary]] + parameters
  }
}

internal import ArgumentParser
internal import ImagePipeline

/// `image-worker filters`.
struct Filters: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the filters with their parameters, ranges and defaults.",
    discussion: """
      Each filter has an intensity: 0 is the picture as it is, 1 the filter in full.
      """)

  func run() {
    let heading = ["filter", "parameter", "range", "default", "meaning"]
    let rows = [heading] + FilterKind.allCases.flatMap(Self.rows)
    let widths = (0..<4).map { column in rows.map { $0[column].count }.max() ?? 0 }
    for row in rows {
      let cells = row.enumerated().map { column, cell in
        column < widths.count ? cell + String(repeating: " ", count: widths[column] - cell.count) : cell
      }
      print(cells.joined(separator: "  "))
    }
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

extension Filter {
  /// A filter as the command line has it: `sepia`, `sepia=0.5`, or `blur=1,radius=4`.
  /// - Throws: `ValidationError` saying what can't be read; names and ranges are checked with the configuration.
  init(argument: String) throws {
    var parts = argument.split(separator: ",", omittingEmptySubsequences: false)[...]
    let (name, intensity) = try Self.pair(parts.removeFirst(), in: argument)
    self.init(name: name, intensity: intensity ?? 1)
    for part in parts {
      let (parameter, value) = try Self.pair(part, in: argument)
      guard let value, !parameter.isEmpty else {
        throw ValidationError("\"\(part)\" in \"\(argument)\" is not a parameter and its value, as in radius=4.")
      }
      guard parameters.updateValue(value, forKey: parameter) == nil else {
        throw ValidationError("\"\(parameter)\" stands in \"\(argument)\" twice.")
      }
    }
  }

  private static func pair(_ text: Substring, in argument: String) throws -> (name: String, value: Double?) {
    guard let sign = text.firstIndex(of: "=") else { return (String(text), nil) }
    let number = text[text.index(after: sign)...]
    guard let value = Double(number) else {
      throw ValidationError("\"\(number)\" in \"\(argument)\" is not a number.")
    }
    return (String(text[..<sign]), value)
  }
}

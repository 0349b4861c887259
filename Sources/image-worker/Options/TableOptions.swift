internal import ArgumentParser

/// One option of a command, as a table has it.
struct TableOption: Sendable {
  enum Kind: Sendable {
    /// `--name`, and `--no-name` for its opposite.
    case flag
    /// One value.
    case value(name: String)
    /// One value each time that it is given.
    case list(name: String)
  }

  /// Without its dashes.
  let name: String
  let kind: Kind
  let help: String
  var completion = CompletionKind.default
}

/// A list of options that is made of rows, not of properties.
protocol OptionTable {
  static var options: [TableOption] { get }
  /// - Throws: `ValidationError` for values that cannot be used.
  static func validate(_ values: OptionValues) throws
}

/// The options that a command line gives, by name.
///
/// A flag's value is `true` or `false`.
typealias OptionValues = [String: [String]]

/// The options of a table as an option group of a command.
///
/// ArgumentParser finds a type's options by its mirror and decodes them by the mirror's labels; both are made here of the
/// table's rows.
struct TableOptions<Table: OptionTable>: ParsableArguments, CustomReflectable {
  /// Those that were given.
  private(set) var values: OptionValues = [:]

  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init() {}

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Key.self)
    for option in Table.options {
      let key = Key(stringValue: option.name)
      let given: [String]
      switch option.kind {
      case .flag: given = try container.decode(Flag<Bool?>.self, forKey: key).wrappedValue.map { ["\($0)"] } ?? []
      case .value: given = try container.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] } ?? []
      case .list: given = try container.decode(Option<[String]>.self, forKey: key).wrappedValue
      }
      if !given.isEmpty { values[option.name] = given }
    }
  }

  func validate() throws { try Table.validate(values) }

  var customMirror: Mirror {
    Mirror(self, children: Table.options.map { (label: $0.name, value: $0.argument) })
  }
}

extension TableOption {
  /// The option as ArgumentParser declares it.
  fileprivate var argument: Any {
    let name = NameSpecification.customLong(name)
    switch kind {
    case .flag: return Flag<Bool?>(name: name, inversion: .prefixedNo, help: ArgumentHelp(help))
    case .value(let value):
      return Option<String?>(
        name: name, parsing: .unconditional, help: ArgumentHelp(help, valueName: value), completion: completion)
    case .list(let value):
      return Option<[String]>(
        wrappedValue: [], name: name, parsing: .unconditionalSingleValue, help: ArgumentHelp(help, valueName: value),
        completion: completion)
    }
  }
}

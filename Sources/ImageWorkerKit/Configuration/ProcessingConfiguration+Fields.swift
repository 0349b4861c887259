internal import Fields
internal import ImagePipeline

/// All fields by name.
extension ProcessingConfiguration {
  /// A field: its name, what it does, and what it accepts.
  public struct FieldDescription: Sendable, Hashable {
    /// The name in the worker's contract; that of an encoder option has its encoder before it, as in `jpeg.progressive`.
    public let name: String
    /// One or more sentences, with the default.
    public let summary: String
    /// The accepted values, such as `between 1 and 65500`; `true or false` for flags.
    public let accepted: String
    /// Whether the field is a list: see ``ProcessingConfiguration/set(_:to:)-(_,[String])``.
    public let isList: Bool
  }

  /// The fields, in the order of the contract.
  public static let fieldDescriptions: [FieldDescription] = options.map { option in
    FieldDescription(
      name: option.fieldName, summary: option.help,
      accepted: option.kind == .flag ? Bool.textForm : option.accepted, isList: option.kind == .list)
  }

  /// Sets a field from text.
  /// - Parameters:
  ///   - field: The name of the field, as in ``fieldDescriptions``.
  ///   - text: The value as the worker's command line takes it: `800`, `true`, `webp`, `north_east`, `#ffffff`.
  /// - Throws: ``ImageProcessingError/Reason/invalidField``, with the name of the field and what it accepts.
  public mutating func set(_ field: String, to text: String) throws(ImageProcessingError) {
    try set(field, to: [text])
  }

  /// Sets a field that is a list, such as `filters`, from the texts of its elements.
  /// - Parameters:
  ///   - field: The name of the field, as in ``fieldDescriptions``.
  ///   - texts: The elements in order; one for a field that is no list.
  /// - Throws: ``ImageProcessingError/Reason/invalidField``, with the name of the field and what it accepts.
  public mutating func set(_ field: String, to texts: [String]) throws(ImageProcessingError) {
    do throws(FieldError) {
      let option = try Self.option(for: field)
      let value = try option.value(of: texts, field: field)
      // The innermost field first.
      try fields.set(option.path.reversed().reduce(value) { .record([$1: $0]) }, field: "")
    } catch { throw ImageProcessingError(PipelineError(error)) }
  }

  private static let options: [FieldOption] = ImagePipeline.ProcessingConfiguration.fields.flatMap(\.options)

  private static func option(for field: String) throws(FieldError) -> FieldOption {
    if let option = options.first(where: { $0.fieldName == field }) { return option }
    let names = options.map(\.fieldName)
    throw FieldError(
      "\(field.prefix(64)) is unknown; it must be one of: \(names.joined(separator: ", "))"
        + NearestName.question(String(field.prefix(64)), in: names), field: field)
  }
}

extension FieldOption {
  fileprivate var fieldName: String { path.joined(separator: ".") }

  fileprivate func value(of texts: [String], field: String) throws(FieldError) -> FieldValue {
    guard kind == .list else {
      guard texts.count == 1 else {
        throw FieldError("\(field) has \(texts.count) values; it must have one", field: field)
      }
      return try value(of: texts[0], field: field)
    }
    var elements: [FieldValue] = []
    for text in texts {
      if case .list(let parts) = try value(of: text, field: field) { elements += parts }
    }
    return .list(elements)
  }
}

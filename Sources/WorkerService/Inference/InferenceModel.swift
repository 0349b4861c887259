internal import Fields
internal import ImagePipeline

/// A preset with tensor options, as a model of the Open Inference Protocol (KServe v2).
///
/// Its results are raw, whatever `preferred_format` the preset has.
struct InferenceModel {
  /// The only version of each model.
  static let version = "1"
  /// The name of the tensor with the images.
  static let input = "image"

  let name: String
  let description: String
  /// The configuration of its results.
  let configuration: ProcessingConfiguration

  /// Creates the model of a preset; `nil` if the preset has no tensor options.
  init?(_ preset: Preset) {
    guard preset.configuration.tensor != nil else { return nil }
    (name, description) = (preset.name, preset.description)
    var configuration = preset.configuration
    configuration.preferredFormat = .raw
    self.configuration = configuration
  }

  /// Whether the preset can be used: it was checked for its own format, which need not be raw.
  var isReady: Bool {
    do throws(PipelineError) { try configuration.validate() } catch { return false }
    return true
  }
}

/// A tensor that a model returns, by its name.
///
/// A response has those that the client asks for in this order.
enum InferenceOutput: String, CaseIterable {
  /// The results.
  case tensor
  /// The reason and the message of each image that failed.
  case error
  /// The part of each result that shows the image: its left and upper edge, width and height in pixels.
  case contentBox = "content_box"
  /// The width and the height of each image in pixels, as displayed.
  case imageSize = "image_size"
}

extension WorkerEnvironment {
  /// Returns the model that a request names.
  ///
  /// - Parameters:
  ///   - name: The name of the model.
  ///   - version: The version of the model; empty for any.
  ///   - prefix: What the names of the two fields begin with.
  /// - Returns: The model.
  /// - Throws: `unknownPreset`, `invalidField`, and `CallerError` if the caller may not use the preset.
  func model(named name: String, version: String, prefix: String = "") throws -> InferenceModel {
    let presets = presets.presets
    let short = name.asName
    if let short { try currentCaller?.check(preset: short, setsFields: false) }
    guard let short, let model = presets.first(where: { $0.name == short }).flatMap(InferenceModel.init) else {
      let names = presets.compactMap(InferenceModel.init).map(\.name)
      throw Self.unknown(model: name, field: "\(prefix)name", names: names)
    }
    guard version.isEmpty || version == InferenceModel.version else {
      throw PipelineError(
        .invalidField,
        "\(prefix)version is \"\(version.beginning)\"; it must be empty or \"\(InferenceModel.version)\"",
        field: "\(prefix)version", of: .message)
    }
    return model
  }

  private static func unknown(model name: String, field: String, names: [String]) -> PipelineError {
    let text = name.beginning
    let advice =
      names.isEmpty
      ? "models are the presets of --presets with tensor options, and this worker has none"
      : "use one of: \(names.joined(separator: ", "))" + NearestName.question(text, in: names)
    return PipelineError(
      .unknownPreset, "\(field) is \"\(text)\", which is not a model; \(advice)", field: field, of: .message)
  }
}

internal import FoundationEssentials
internal import GRPCProtobuf
internal import ImagePipeline
internal import WorkerProtocol

extension WorkerEnvironment {
  /// Returns the configuration of a request: its preset with its own fields in place.
  /// - Throws: `unknownPreset`, `invalidField`, `unservedField`, and `CallerError` if its caller may not ask for it.
  func configuration(
    preset: String, overrides: Imageworker_V1_ProcessingConfiguration
  ) throws -> ProcessingConfiguration {
    let catalog = presets
    if let caller = currentCaller {
      try caller.check(
        preset: preset.isEmpty ? Preset.defaultName : preset,
        setsFields: overrides != Imageworker_V1_ProcessingConfiguration())
    }
    guard !takesOnlyPresets || overrides == Imageworker_V1_ProcessingConfiguration() else {
      let names = catalog.presets.map(\.name).joined(separator: ", ")
      throw PipelineError(
        .invalidField,
        "this worker accepts only presets; leave configuration empty and use one of: \(names)",
        field: "configuration", of: .request)
    }
    return try lastConfiguration.value(catalog.configuration(named: preset), overrides)
  }

  /// Returns the results that a request asks for.
  /// - Throws: `PipelineError`, or `RenditionError` of one.
  func renditions(of request: some ResultRequest) throws -> [Rendition] {
    let auxiliary = try auxiliaryImages(request.auxiliaryImages, beside: request.image)
    guard !request.renditions.isEmpty else {
      let configuration = try configuration(preset: request.preset, overrides: request.configuration)
      let memory = request.hasSharedMemory ? try sharedMemory(request.sharedMemory) : nil
      return [
        Rendition(
          index: nil, id: "", configuration: configuration, auxiliary: auxiliary, memory: memory,
          isPreviewed: request.preview)
      ]
    }
    try Self.checkCombination(of: request)
    var ids: Set<String> = []
    return try request.renditions.enumerated().map { index, wire in
      do {
        try Rendition.check(id: wire.renditionID, beside: &ids)
        return Rendition(
          index: index, id: wire.renditionID,
          configuration: try configuration(preset: wire.preset, overrides: wire.configuration),
          auxiliary: auxiliary, memory: wire.hasSharedMemory ? try sharedMemory(wire.sharedMemory) : nil)
      } catch { throw RenditionError(index: index, error: error) }
    }
  }

  /// Checks that fields of a request can be combined with its renditions.
  private static func checkCombination(of request: some ResultRequest) throws(PipelineError) {
    guard !request.preview else {
      throw PipelineError(
        .invalidField, "preview cannot be combined with renditions; request a small rendition instead",
        field: "preview", of: .request)
    }
    let others = [
      ("preset", !request.preset.isEmpty), ("configuration", request.hasConfiguration),
      ("shared_memory", request.hasSharedMemory),
    ]
    for (field, isSet) in others where isSet {
      throw PipelineError(
        .invalidField, "\(field) cannot be combined with renditions; set it in each rendition", field: field,
        of: .request)
    }
    guard request.renditions.count <= Rendition.maxCount else {
      throw PipelineError(
        .invalidField,
        "renditions has \(request.renditions.count) entries; at most \(Rendition.maxCount) are accepted",
        field: "renditions", of: .request)
    }
  }
}

/// The part of a request that says what to make of an image.
protocol ResultRequest {
  var preset: String { get }
  var configuration: Imageworker_V1_ProcessingConfiguration { get }
  var hasConfiguration: Bool { get }
  var renditions: [Imageworker_V1_Rendition] { get }
  var preview: Bool { get }
  var image: Data { get }
  var auxiliaryImages: [Imageworker_V1_AuxiliaryImage] { get }
  var sharedMemory: Imageworker_V1_SharedMemory { get }
  var hasSharedMemory: Bool { get }
}

extension Imageworker_V1_ProcessImageRequest: ResultRequest {}
extension Imageworker_V1_BatchItemStart: ResultRequest {}

internal import Fields
internal import ImagePipeline
internal import SwiftProtobuf
internal import WorkerProtocol

/// Configurations are read and written by the names of their fields: see `ProcessingConfiguration.fields`.
extension ProcessingConfiguration {
  /// The configuration of a request.
  /// - Throws: `invalidField` for a value that is out of range or has no meaning, `unservedField` for one that this
  ///   build cannot serve.
  init(_ wire: Imageworker_V1_ProcessingConfiguration) throws(PipelineError) {
    let value = try MessageReader.value(of: wire)
    // Checked before the preset is applied, so that a value out of range is named even where another would hide it.
    do throws(FieldError) { try self.init(value, field: "") } catch { throw PipelineError(error) }
    try validateFilters()
  }
}

extension Imageworker_V1_ProcessingConfiguration {
  init(_ configuration: ProcessingConfiguration) throws(PipelineError) {
    let bytes = MessageWriter.bytes(of: configuration.fieldValue, type: Self.protoMessageName)
    do { self = try Self(serializedBytes: bytes) } catch {
      throw PipelineError(.internalDefect, "a configuration does not match the wire contract: \(error)")
    }
  }
}

extension Imageworker_V1_Preset {
  init(_ preset: Preset) throws(PipelineError) {
    self.init()
    name = preset.name
    description_p = preset.description
    configuration = try Imageworker_V1_ProcessingConfiguration(preset.configuration)
  }
}

internal import Fields
package import ImagePipeline
internal import SwiftProtobuf
package import WorkerProtocol

/// Configurations are read and written by the names of their fields: see `ProcessingConfiguration.fields`.
extension ProcessingConfiguration {
  /// The configuration of a request.
  /// - Throws: `invalidField` for a value that is out of range or has no meaning, `unservedField` for one that this
  ///   build cannot serve.
  init(_ wire: Imageworker_V1_ProcessingConfiguration) throws(PipelineError) {
    self.init()
    try override(with: wire)
  }

  /// Sets the fields that a request sets in place of those of its preset.
  /// - Throws: `invalidField` for a value that is out of range or has no meaning, `unservedField` for one that this
  ///   build cannot serve.
  mutating func override(with wire: Imageworker_V1_ProcessingConfiguration) throws(PipelineError) {
    let value = try MessageReader.value(of: wire)
    do throws(FieldError) { try set(value, field: "") } catch { throw PipelineError(error) }
    if !wire.filters.isEmpty { try validateFilters() }
    if !wire.regions.isEmpty { try validateRegions() }
  }
}

extension Imageworker_V1_ProcessingConfiguration {
  /// The fields that a configuration sets.
  /// - Throws: `internalDefect` for a configuration that the contract does not know.
  package init(_ configuration: ProcessingConfiguration) throws(PipelineError) {
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

internal import Fields
package import ImagePipeline
internal import SwiftProtobuf
internal import Synchronization
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

/// The configuration of the request before.
///
/// Most requests of a batch, and of many clients, have the same one, and to read the fields of a request by their names takes
/// 2 % of a small image's CPU time.
final class LastConfiguration: Sendable {
  private struct Known {
    let base: ProcessingConfiguration
    /// As bytes, since messages are equal whose texts people read in the same way.
    let overrides: [UInt8]
    let value: ProcessingConfiguration
  }

  private let known = Mutex<Known?>(nil)

  /// Returns a configuration with the fields that a request sets in place of its own.
  /// - Throws: See `ProcessingConfiguration.override`.
  func value(
    _ base: ProcessingConfiguration, _ overrides: Imageworker_V1_ProcessingConfiguration
  ) throws(PipelineError) -> ProcessingConfiguration {
    let bytes: [UInt8]? = try? overrides.serializedBytes()
    if let known = known.withLock({ $0 }), known.overrides == bytes, known.base == base { return known.value }
    var value = base
    try value.override(with: overrides)
    guard let bytes else { return value }
    let found = Known(base: base, overrides: bytes, value: value)
    known.withLock { $0 = found }
    return value
  }
}

internal import ImagePipeline
internal import Synchronization
internal import WorkerProtocol

/// The configuration of the request before.
///
/// Most requests of a batch, and of many clients, have the same one, and to read the fields of a request by their names takes
/// 2 % of a small image's CPU time.
final class LastConfiguration: Sendable {
  private struct Known {
    let base: ProcessingConfiguration
    let overrides: Imageworker_V1_ProcessingConfiguration
    let value: ProcessingConfiguration
  }

  private let known = Mutex<Known?>(nil)

  /// Returns a configuration with the fields that a request sets in place of its own.
  /// - Throws: See `ProcessingConfiguration.override`.
  func value(
    _ base: ProcessingConfiguration, _ overrides: Imageworker_V1_ProcessingConfiguration
  ) throws(PipelineError) -> ProcessingConfiguration {
    if let known = known.withLock({ $0 }), known.overrides == overrides, known.base == base { return known.value }
    var value = base
    try value.override(with: overrides)
    let found = Known(base: base, overrides: overrides, value: value)
    known.withLock { $0 = found }
    return value
  }
}

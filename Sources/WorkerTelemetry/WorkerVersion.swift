/// The version of this worker, by semantic versioning.
///
/// `image-worker --version`, the metric `imageworker.build_info`, and all exported telemetry report it.
package enum WorkerVersion {
  /// The current version: major, minor and patch number.
  package static let current = "0.1.0"
}

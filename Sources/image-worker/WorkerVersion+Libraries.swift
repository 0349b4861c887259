internal import ImageCodecs
internal import ImagePipeline
internal import WorkerService
internal import WorkerTelemetry

extension WorkerVersion {
  /// The libraries that decode, encode and draw texts, and that of the sandbox: names as in `libwebp`, and versions as in
  /// `1.2.4`.
  static let libraries: [(name: String, version: String)] =
    CodecLibrary.all.map { ($0.name, $0.version) } + TextOverlay.libraries
    + [HelperPool.libraryVersion].compactMap { $0.map { ("libseccomp", $0) } }
}

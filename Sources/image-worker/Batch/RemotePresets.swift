internal import ImagePipeline
internal import ImageWorkerClient
internal import WorkerProtocol

/// The presets of workers that a batch asks for by name.
enum RemotePresets {
  private static let timeout = Duration.seconds(10)

  /// Checks once, before the first image, that a worker has the presets.
  ///
  /// Nothing is checked if no worker can be reached now; the batch has its own timeout for that.
  /// - Throws: `PipelineError` with the presets that there are, or an error of a worker that refuses this client.
  static func check(_ names: Set<String>, on client: Client) async throws {
    if names.isEmpty { return }
    let known: [String]
    do { known = try await client.presets(timeout: timeout).map(\.name) } catch let error as ImageWorkerError {
      if error.isRetryable || error.kind == .deadline { return }
      throw error
    }
    guard let missing = names.sorted().first(where: { !known.contains($0) }) else { return }
    throw PresetCatalog.unknown(missing, names: known)
  }
}

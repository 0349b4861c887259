internal import ArgumentParser
internal import ImagePipeline
internal import Logging
internal import WorkerIsolation
internal import WorkerService

/// The place in which codecs run.
enum Isolation: String, CaseIterable {
  /// In the worker's own process.
  case none
  /// In sandboxed processes, one for each image in progress.
  case process
}

/// How codecs are isolated from the worker and from each other.
struct IsolationSettings {
  var isolation: Isolation
  /// The directory for images on which codecs crashed; `nil` if they are not kept.
  var crashes: CrashDirectory?

  /// Reads the settings.
  init(_ source: inout SettingSource) throws(SettingsError) {
    isolation = try source.choice(
      "isolation", default: .none,
      "Run codecs in the worker itself (none) or in sandboxed processes without files, network and privileges "
        + "(process; Linux only).")
    if isolation == .process, !HelperPool.isSupported {
      throw source.error("isolation", "this build has no sandbox; build it with libseccomp")
    }
    let path = source.text(
      "crashDirectory", default: nil, "directory", completion: .directory,
      "Keep images on which a codec crashed in this directory, at most \(CrashDirectory.maxFileCount); needs "
        + "--isolation process.")
    guard let path else { return }
    guard isolation == .process else { throw source.error("crashDirectory", "it needs --isolation process") }
    crashes = CrashDirectory(path: path)
    if crashes == nil {
      throw source.error("crashDirectory", "it must be a directory in which the worker can create unnamed files")
    }
  }

  /// Returns the processes that codecs run in, ready to work; `nil` for the worker itself.
  /// - Throws: An error if they cannot be started.
  func makeHelpers(_ settings: Settings) throws(SettingsError) -> HelperPool? {
    guard isolation == .process else { return nil }
    let helpers = HelperPool(
      zygote: HelperZygote(
        arguments: CodecHelper.arguments(fontDirectory: settings.fonts, faceDetector: settings.faceDetector)),
      threadCount: settings.threadCount, maxCount: Self.maxHelperCount(settings),
      maxWaitingCount: settings.limits.maxWaitingImages, crashes: crashes)
    do throws(PipelineError) { try helpers.warmUp() } catch {
      throw SettingsError(description: "--isolation is process; this does not work here: \(error.message)")
    }
    return helpers
  }

  /// Logs the means of isolation that this system does not offer.
  func log(_ helpers: HelperPool?, _ logger: Logger) {
    guard let helpers else { return }
    let missing = helpers.missingDefenses
    logger.notice(
      "codecs run in sandboxed processes",
      metadata: ["unavailable": "\(missing.isEmpty ? "nothing" : missing.joined(separator: ", "))"])
  }

  /// As many as there can be images with bytes in memory, and no more than take a quarter of the memory limit.
  private static func maxHelperCount(_ settings: Settings) -> Int {
    min(512, max(2 * settings.threadCount, settings.memoryLimit / 4 / HelperPool.maxHelperByteCount))
  }
}

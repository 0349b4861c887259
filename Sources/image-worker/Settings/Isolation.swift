internal import ArgumentParser
internal import ImagePipeline
internal import Logging
internal import WorkerIsolation
internal import WorkerService

/// The place in which codecs are wanted to run.
enum Isolation: String, CaseIterable {
  /// In sandboxed processes where the sandbox can be made, otherwise in the worker's own process.
  case auto
  /// In the worker's own process.
  case none
  /// In sandboxed processes, one for each image in progress.
  case process
}

/// The place in which codecs run.
enum CodecPlace {
  /// In sandboxed processes.
  case helpers(HelperPool)
  /// In the worker's own process, as requested.
  case worker
  /// In the worker's own process, because the sandbox cannot be made here.
  case workerWithoutSandbox(reason: String)

  /// The processes that codecs run in; `nil` for the worker's own.
  var helpers: HelperPool? {
    switch self {
    case .helpers(let helpers): helpers
    case .worker, .workerWithoutSandbox: nil
    }
  }
}

/// How codecs are isolated from the worker and from each other.
struct IsolationSettings {
  var isolation: Isolation
  /// The directory for images on which codecs crashed; `nil` if they are not kept.
  var crashes: CrashDirectory?

  private static let noSandbox = "this build has no sandbox; build it with libseccomp"

  /// Reads the settings.
  init(_ source: inout SettingSource) throws(SettingsError) {
    isolation = try source.choice(
      "isolation", default: .auto,
      "Run codecs in sandboxed processes without files, network and privileges where this system allows it (auto), "
        + "always (process), or in the worker itself (none).")
    if isolation == .process, !HelperPool.isSupported { throw source.error("isolation", Self.noSandbox) }
    let path = source.text(
      "crashDirectory", default: nil, "directory", completion: .directory,
      "Keep images on which a codec crashed in this directory, at most \(CrashDirectory.maxFileCount). Not with "
        + "--isolation none.")
    guard let path else { return }
    guard isolation != .none else {
      throw source.error(
        "crashDirectory", "it cannot be combined with --isolation none: the worker crashes with its codec")
    }
    crashes = CrashDirectory(path: path)
    if crashes == nil {
      throw source.error("crashDirectory", "it must be a directory in which the worker can create unnamed files")
    }
  }

  /// Returns the place in which codecs run, ready to work.
  /// - Throws: An error if processes are required and cannot be started.
  func makePlace(_ settings: Settings) throws(SettingsError) -> CodecPlace {
    guard isolation != .none else { return .worker }
    guard HelperPool.isSupported else { return .workerWithoutSandbox(reason: Self.noSandbox) }
    // One for each image thread, of which the express lane has one more.
    let helpers = HelperPool(
      zygote: HelperZygote(
        arguments: CodecHelper.arguments(fontDirectory: settings.fonts, faceDetector: settings.faceDetector)),
      threadCount: settings.threadCount + 1, maxCount: Self.maxHelperCount(settings),
      maxWaitingCount: settings.limits.maxWaitingImages, crashes: crashes)
    do throws(HelperLoss) { try helpers.warmUp() } catch {
      guard isolation == .auto else {
        throw SettingsError(description: "--isolation is process; this does not work here: \(error)")
      }
      return .workerWithoutSandbox(reason: "a sandboxed process does not work here: \(error)")
    }
    return .helpers(helpers)
  }

  /// Logs where codecs run, and the means of isolation that this system does not offer.
  func log(_ place: CodecPlace, _ logger: Logger) {
    switch place {
    case .helpers(let helpers):
      let missing = helpers.missingDefenses
      logger.notice(
        "codecs run in sandboxed processes",
        metadata: ["unavailable": "\(missing.isEmpty ? "nothing" : missing.joined(separator: ", "))"])
    case .worker: logger.notice("codecs run in the worker itself")
    case .workerWithoutSandbox(let reason):
      var metadata: Logger.Metadata = ["reason": "\(reason)"]
      if crashes != nil { metadata["crash_directory"] = "not used" }
      logger.warning(
        "codecs run in the worker itself, where a crash ends all images in progress; --isolation none silences this",
        metadata: metadata)
    }
  }

  /// As many as there can be images with bytes in memory, and no more than take a quarter of the memory limit.
  private static func maxHelperCount(_ settings: Settings) -> Int {
    min(512, max(2 * settings.threadCount, settings.memoryLimit / 4 / HelperPool.maxHelperByteCount))
  }
}

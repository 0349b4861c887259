internal import ImagePipeline
internal import ResultCache
internal import Synchronization

/// The cache's part in one job: the results that it has, and those that it keeps of what the job makes.
final class JobCache {
  /// A result that was kept.
  struct Kept {
    let rendition: Rendition
    let result: CachedResult
  }

  private let cache: ResultCache
  private let source: HashingSource
  private let metrics: WorkerMetrics
  private let cancellation: Cancellation
  /// Collects what is made of the missing renditions.
  let sink: CachingSink
  /// The renditions that are to be made.
  private(set) var missing: [Rendition]
  /// Whether the image's results were looked for.
  private(set) var hasLookedUp = false

  /// - `next`: takes what the sink collected.
  init(
    _ cache: ResultCache, of renditions: [Rendition], from source: HashingSource, to next: any ResultSink,
    metrics: WorkerMetrics, cancellation: Cancellation
  ) {
    self.cache = cache
    self.source = source
    self.metrics = metrics
    self.cancellation = cancellation
    sink = CachingSink(next)
    missing = renditions
  }

  /// Looks for the results of an image whose bytes were all read.
  ///
  /// Those that are kept are no longer missing. A single result waits for another job that makes the same.
  /// - Throws: the error of that job, `cancelled`.
  func lookUp() async throws -> [Kept] {
    hasLookedUp = true
    let keys = keys()
    if missing.count == 1, missing[0].index == nil { return try await lead(missing[0], keys[0]) }
    // Nobody waits for others here: two requests with some renditions in common could each wait for the other.
    let looked = zip(missing, keys).map { (rendition: $0, key: $1, result: cache.result(for: $1)) }
    let absent = looked.filter { $0.result == nil }
    for _ in absent { metrics.looked(isHit: false) }
    missing = absent.map(\.rendition)
    for (rendition, key, _) in absent { collect(rendition, cache.collector(), as: key) }
    return looked.compactMap { entry in entry.result.map { Kept(rendition: entry.rendition, result: $0) } }
  }

  private func lead(_ rendition: Rendition, _ key: CacheKey) async throws -> [Kept] {
    let turn = try await turn(key)
    try cancellation.check()
    switch turn {
    case .hit(let result):
      missing = []
      return [Kept(rendition: rendition, result: result)]
    case .alone: break
    case .make(let collector): collect(rendition, collector, as: key)
    }
    metrics.looked(isHit: false)
    return []
  }

  private func turn(_ key: CacheKey) async throws -> ResultCache.Turn {
    let registration = Registration()
    defer { cancellation.removeHandler(registration.id) }
    do {
      return try await cache.turn(for: key) { [cancellation] stop in
        registration.set(cancellation.addHandler(stop))
      }
    } catch CacheError.stopped { throw PipelineError.cancelled }
  }

  /// Looks for the results of an upload whose bytes may all have arrived while it waited for memory.
  ///
  /// - Returns: the results, which are no longer missing, where all bytes are here and all results are kept. Else what is
  ///   made will be collected.
  func lookUpUpload() -> [Kept] {
    hasLookedUp = true
    if source.isComplete {
      let kept = zip(missing, keys()).compactMap { rendition, key in
        cache.result(for: key).map { Kept(rendition: rendition, result: $0) }
      }
      if kept.count == missing.count {
        missing = []
        return kept
      }
    }
    for rendition in missing { collect(rendition, cache.collector(), as: nil) }
    return []
  }

  private func collect(_ rendition: Rendition, _ collector: ResultCollector, as key: CacheKey?) {
    sink.entries[rendition.id] = CachingSink.Entry(collector: collector, key: key)
  }

  /// Keeps the results that were made; blocks while they are written to the disk.
  func keepMade() throws {
    let entries = sink.entries
    if entries.values.contains(where: { $0.key == nil }) {
      // Decoders may be done before the last byte: the results are then those of the bytes so far.
      for (rendition, key) in zip(missing, keys()) {
        metrics.looked(isHit: false)
        entries[rendition.id]?.collector.keep(as: key)
      }
    }
    for entry in entries.values {
      entry.collector.persist()
      entry.collector.giveUp()
    }
  }

  /// Gives up what was not made.
  ///
  /// Those who wait for it get the error where it is the image's, else one of them begins anew.
  func fail(_ error: any Error) {
    for entry in sink.entries.values {
      if let error = error as? PipelineError, error.isOfTheImage { entry.collector.fail(error) }
      entry.collector.giveUp()
    }
  }

  /// The missing renditions' keys: the image, and the configuration with the preset's fields in place.
  private func keys() -> [CacheKey] {
    missing.map { CacheKey(input: source.hasher, configuration: $0.configuration) }
  }
}

/// The id of a handler, set by whoever registers it.
private final class Registration: Sendable {
  private let state = Mutex<UInt64>(0)

  var id: UInt64 { state.withLock { $0 } }

  func set(_ id: UInt64) { state.withLock { $0 = id } }
}

extension PipelineError {
  /// Whether the same request would fail again in the same way.
  fileprivate var isOfTheImage: Bool {
    switch code {
    case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage, .corruptImage,
      .truncatedImage, .limitExceeded:
      true
    case .overloaded, .uploadStalled, .cancelled, .internalDefect: false
    }
  }
}

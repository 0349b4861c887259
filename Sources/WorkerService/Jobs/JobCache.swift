internal import Admission
internal import ImagePipeline
internal import ResultCache
internal import Synchronization

/// The cache access of one job: looks up results, and collects those that the job produces on their way to the next sink.
final class JobCache: ResultSink {
  struct Kept {
    let rendition: Rendition
    let result: CachedResult
  }

  /// The collector of one rendition's result.
  struct Entry {
    let collector: ResultCollector
    /// The key under which to store the complete result; `nil` while it is unknown.
    let key: CacheKey?
  }

  private let cache: ResultCache
  private let next: any ResultSink
  private let input: ImageInput
  private let metrics: WorkerMetrics
  private let cancellation: Cancellation
  /// Entries by rendition id.
  ///
  /// Results of other renditions are forwarded only.
  var entries: [String: Entry] = [:]
  /// The renditions that the job must produce.
  private(set) var missing: [Rendition]
  /// The keys under which results of this job may be in the cache.
  private var keptKeys: [CacheKey] = []
  /// Whether the image's results were looked up.
  private(set) var hasLookedUp = false

  /// Creates the cache access of one job.
  ///
  /// - `input`: the hashed bytes of the image.
  /// - `next`: receives the parts that were collected.
  init(
    _ cache: ResultCache, of renditions: [Rendition], from input: ImageInput, to next: any ResultSink,
    metrics: WorkerMetrics, cancellation: Cancellation
  ) {
    self.cache = cache
    self.input = input
    self.metrics = metrics
    self.cancellation = cancellation
    self.next = next
    missing = renditions
  }

  // MARK: Look up

  /// Looks up the results of an image whose bytes were all read.
  ///
  /// A single result waits for another job that produces the same one. Of several, all are found or none, as the scale
  /// of decoding depends on all of them.
  /// - Returns: The results that were found; they are no longer missing.
  /// - Throws: The error of that job, or `cancelled`.
  func lookUp() async throws -> [Kept] {
    hasLookedUp = true
    let keys = keys()
    if missing.count == 1, missing[0].index == nil { return try await lead(missing[0], keys[0]) }
    // Several renditions never wait for other jobs: two requests that share some renditions could deadlock.
    let kept = takeAll(keys)
    for (rendition, key) in zip(missing, keys) {
      metrics.looked(isHit: false)
      collect(rendition, cache.collector(), as: key)
    }
    return kept
  }

  /// Returns all results, which are then no longer missing, or none.
  private func takeAll(_ keys: [CacheKey]) -> [Kept] {
    var kept: [Kept] = []
    for (rendition, key) in zip(missing, keys) {
      guard let result = cache.result(for: key) else { return [] }
      kept.append(Kept(rendition: rendition, result: result))
    }
    missing = []
    return kept
  }

  private func lead(_ rendition: Rendition, _ key: CacheKey) async throws -> [Kept] {
    // The id of the handler of a wait; 0 without one.
    let registration = Atomic<UInt64>(0)
    let asked = ContinuousClock.now
    defer {
      let id = registration.load(ordering: .acquiring)
      cancellation.removeHandler(id)
      if id > 0 { metrics.waited(.result, asked.duration(to: .now)) }
    }
    let outcome: ResultCache.Lookup
    do {
      outcome = try await cache.lookUp(key) { [cancellation] stop in
        registration.store(cancellation.addHandler(stop), ordering: .releasing)
      }
    } catch CacheError.stopped { throw PipelineError.cancelled }
    try cancellation.check()
    switch outcome {
    case .hit(let result):
      missing = []
      return [Kept(rendition: rendition, result: result)]
    case .bypass: break
    case .lead(let collector): collect(rendition, collector, as: key)
    }
    metrics.looked(isHit: false)
    return []
  }

  /// Looks up the results of an upload whose bytes may all have arrived while it waited for memory.
  ///
  /// - Returns: All results, which are then no longer missing, if all bytes have arrived and every result is cached;
  ///   otherwise none, and the results that the job produces are collected.
  func lookUpUpload() -> [Kept] {
    hasLookedUp = true
    let kept = input.source.isComplete ? takeAll(keys()) : []
    for rendition in missing { collect(rendition, cache.collector(), as: nil) }
    return kept
  }

  private func collect(_ rendition: Rendition, _ collector: ResultCollector, as key: CacheKey?) {
    entries[rendition.id] = Entry(collector: collector, key: key)
    if let key { keptKeys.append(key) }
  }

  // MARK: Collect

  func send(_ part: ResultPart) async throws {
    guard let entry = entries[part.rendition.id] else { return try await next.send(part) }
    switch part.content {
    case .chunk(let bytes): entry.collector.append([UInt8](bytes))
    case .report(let report):
      // The same image would be rotated if it arrived in one message.
      let isComplete = !report.processing.warnings.contains { $0.code == .orientationIgnored }
      if isComplete, let metadata = report.processing.cacheMetadata { entry.collector.seal(metadata: metadata) }
      if let key = entry.key { entry.collector.keep(as: key) }
    case .header, .failure: break
    }
    // Jobs that wait for this result can see whether this caller still reads it.
    entry.collector.noteSending(true)
    defer { entry.collector.noteSending(false) }
    try await next.send(part)
  }

  /// Records which results are in the cache, so that they can be removed.
  func noteKept(in kept: KeptResults) { if !keptKeys.isEmpty { kept.note(keptKeys, in: cache) } }

  /// Stores the results that were produced.
  ///
  /// Blocks while they are written to the disk.
  func keepMade() throws {
    if entries.values.contains(where: { $0.key == nil }) {
      // Decoders may finish before the last byte. The results then belong to the bytes read so far.
      for (rendition, key) in zip(missing, keys()) {
        metrics.looked(isHit: false)
        entries[rendition.id]?.collector.keep(as: key)
        keptKeys.append(key)
      }
    }
    for entry in entries.values {
      entry.collector.persist()
      entry.collector.giveUp()
    }
  }

  /// Abandons the results that were not produced.
  ///
  /// Jobs that wait for them receive the error if the image caused it; otherwise one of them starts over.
  func fail(_ error: any Error) {
    let isOfReceiver = missing.contains { $0.memory?.failure != nil }
    for entry in entries.values {
      if let error = error as? PipelineError, error.isOfTheImage, !isOfReceiver { entry.collector.fail(error) }
      entry.collector.giveUp()
    }
  }

  /// The cache keys of the missing renditions: the image's hash and the configuration with the preset applied, and with
  /// several renditions those of all.
  private func keys() -> [CacheKey] {
    let own = missing.map { CacheKey(input: input.hasher, configuration: $0.configuration, auxiliary: $0.auxiliary) }
    return own.count == 1 ? own : own.map { CacheKey($0, among: own) }
  }
}

extension PipelineError {
  /// Whether the same request would always fail with this error.
  fileprivate var isOfTheImage: Bool {
    switch code {
    case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage, .corruptImage,
      .truncatedImage, .limitExceeded:
      true
    case .overloaded, .uploadStalled, .cancelled, .codecCrashed, .codecStopped, .internalDefect: false
    }
  }
}

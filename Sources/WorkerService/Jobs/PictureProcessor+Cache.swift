internal import FoundationEssentials
internal import ImagePipeline
internal import ResultCache
internal import SwiftProtobuf
internal import Synchronization
internal import WorkerProtocol

/// Pictures whose results may have been made before.
extension PictureProcessor {
  /// Works on a picture that is all here, unless its result is kept, or is being made for somebody else.
  /// - Throws: as `run` does.
  func run(whole bytes: Data) async throws {
    guard let cache = environment.cache else { return try await run { (bytes, isLast: true) } }
    try await withTaskExecutorPreference(environment.executor) {
      var hasher = InputHasher()
      bytes.withUnsafeBytes { hasher.update($0) }
      if let rendition = renditions.first, rendition.index == nil {
        try await run(whole: bytes, hasher, only: rendition, cache)
      } else {
        try await run(whole: bytes, hasher, cache)
      }
    }
  }

  /// A picture with one result, which others may wait for.
  private func run(
    whole bytes: Data, _ hasher: InputHasher, only rendition: Rendition, _ cache: ResultCache
  ) async throws {
    let began = ContinuousClock.now
    let key = try key(hasher, rendition)
    let turn = try await turn(cache, key)
    try cancellation.check()
    switch turn {
    case .hit(let result): try await emit([(rendition, result)], began: began, queued: began.duration(to: .now))
    case .alone:
      environment.metrics.looked(isHit: false)
      try await run { (bytes, isLast: true) }
    case .make(let collector):
      environment.metrics.looked(isHit: false)
      do {
        try await collecting(into: [collector], as: [key]).run { (bytes, isLast: true) }
      } catch {
        if let error = error as? PipelineError, error.isOfThePicture { collector.fail(error) }
        collector.giveUp()
        throw error
      }
      collector.persist()
    }
  }

  /// A picture with several renditions: those that are kept are given, the others are made.
  ///
  /// Nobody waits for others here: two requests with some renditions in common could each wait for the other.
  private func run(whole bytes: Data, _ hasher: InputHasher, _ cache: ResultCache) async throws {
    let began = ContinuousClock.now
    let keyed = try renditions.map { rendition in (rendition: rendition, key: try key(hasher, rendition)) }
    let looked = keyed.map { (rendition: $0.rendition, key: $0.key, result: cache.result(for: $0.key)) }
    let missing = looked.filter { $0.result == nil }
    let found = looked.compactMap { entry in entry.result.map { (entry.rendition, $0) } }
    try await emit(found, began: began, queued: .zero, isAll: missing.isEmpty)
    guard !missing.isEmpty else { return }
    for _ in missing { environment.metrics.looked(isHit: false) }
    let collectors = missing.map { _ in cache.collector() }
    defer { for collector in collectors { collector.giveUp() } }
    try await working(on: missing.map(\.rendition)).collecting(into: collectors, as: missing.map(\.key))
      .run { (bytes, isLast: true) }
    for collector in collectors { collector.persist() }
  }

  /// Works on a picture whose bytes still arrive, and keeps its results.
  ///
  /// What they are the results of is known when the last byte is here. Where that is before decoding begins, as when the
  /// picture waits for memory, results that are kept are used, if all are.
  /// - `hasEnded`: whether the bytes that were given are all there are.
  /// - Throws: as `run` does.
  func run(
    upload hasEnded: @escaping @Sendable () -> Bool, nextBytes: () async throws -> (bytes: Data, isLast: Bool)
  ) async throws {
    guard let cache = environment.cache else { return try await run(nextBytes: nextBytes) }
    try await withTaskExecutorPreference(environment.executor) {
      let began = ContinuousClock.now
      let upload = HashedUpload()
      let collectors = renditions.map { _ in cache.collector() }
      defer { for collector in collectors { collector.giveUp() } }
      let processor = collecting(into: collectors, as: []).admitting {
        guard upload.isComplete || hasEnded(), let keys = try? keys(upload.hasher) else { return false }
        return upload.find(keys.map { cache.result(for: $0) })
      }
      do {
        try await processor.run {
          let (bytes, isLast) = try await nextBytes()
          upload.take(bytes, isLast: isLast)
          return (bytes, isLast)
        }
      } catch {
        guard let found = upload.found else { throw error }
        return try await emit(Array(zip(renditions, found)), began: began, queued: .zero)
      }
      // Decoders may be done before the last byte: the results are then those of the bytes so far.
      for (collector, key) in zip(collectors, try keys(upload.hasher)) {
        environment.metrics.looked(isHit: false)
        collector.keep(as: key)
        collector.persist()
      }
    }
  }

  private func keys(_ hasher: InputHasher) throws -> [CacheKey] { try renditions.map { try key(hasher, $0) } }

  /// A rendition's key: its picture, and its configuration with the preset's fields in place.
  private func key(_ hasher: InputHasher, _ rendition: Rendition) throws -> CacheKey {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    let wire = Imageworker_V1_ProcessingConfiguration(rendition.configuration)
    return CacheKey(input: hasher, configuration: try wire.serializedBytes(options: options))
  }

  private func turn(_ cache: ResultCache, _ key: CacheKey) async throws -> ResultCache.Turn {
    let registration = Registration()
    defer { cancellation.removeHandler(registration.id) }
    do {
      return try await cache.turn(for: key) { [cancellation] stop in
        registration.set(cancellation.addHandler(stop))
      }
    } catch CacheError.stopped { throw PipelineError.cancelled }
  }

  /// This processor, for some of its renditions.
  private func working(on renditions: [Rendition]) -> PictureProcessor {
    PictureProcessor(
      environment: environment, renditions: renditions, cancellation: cancellation, admit: admit, emit: emit)
  }

  /// This processor, with its results collected on their way.
  /// - `collectors`: one for each rendition.
  /// - `keys`: what to keep each result as when it is complete; empty when that is not known yet.
  private func collecting(into collectors: [ResultCollector], as keys: [CacheKey]) -> PictureProcessor {
    let places = Dictionary(uniqueKeysWithValues: renditions.enumerated().map { ($1.id, $0) })
    return PictureProcessor(
      environment: environment, renditions: renditions, cancellation: cancellation, admit: admit,
      emit: { [emit] part, rendition, isMoreReady in
        guard let place = places[rendition.id], !rendition.isPreview else {
          return try await emit(part, rendition, isMoreReady)
        }
        let collector = collectors[place]
        switch part {
        case .chunk(let bytes): collector.append([UInt8](bytes))
        case .report(let report, _):
          if let metadata = report.metadata { collector.seal(metadata: metadata) }
          if !keys.isEmpty { collector.keep(as: keys[place]) }
        case .header, .cachedHeader, .cachedReport, .failure: break
        }
        collector.beginSending()
        defer { collector.endSending() }
        try await emit(part, rendition, isMoreReady)
      })
  }

  /// This processor, stopped when its turn has come and `isNeedless` then says so.
  private func admitting(unless isNeedless: @escaping @Sendable () -> Bool) -> PictureProcessor {
    PictureProcessor(
      environment: environment, renditions: renditions, cancellation: cancellation,
      admit: { [admit] workingSet throws(PipelineError) in
        let reservation = try await admit(workingSet)
        if isNeedless() { throw .cancelled }
        return reservation
      }, emit: emit)
  }

  /// Gives results that were kept.
  /// - `isAll`: whether nothing else is to be made of the picture.
  private func emit(
    _ results: [(Rendition, CachedResult)], began: ContinuousClock.Instant, queued: Duration, isAll: Bool = true
  ) async throws {
    for (index, (rendition, result)) in results.enumerated() {
      var report = try Imageworker_V1_ProcessingReport(serializedBytes: result.metadata)
      try await emit(.cachedHeader(report.output), rendition, true)
      for chunk in result.chunks {
        try cancellation.check()
        try await emit(.chunk(Data(chunk)), rendition, true)
      }
      var timings = StageTimings()
      timings.queued = queued
      timings.total = began.duration(to: .now)
      report.timings = Imageworker_V1_StageTimings(timings)
      environment.metrics.found(report)
      if rendition.index != nil { environment.metrics.ended(renditionWith: nil) }
      if isAll, index == results.count - 1 { environment.metrics.answered(after: timings.total) }
      report.cacheHit = true
      report.traceID = environment.currentTraceID ?? ""
      try await emit(.cachedReport(report), rendition, false)
    }
  }
}

extension ProcessingReport {
  /// What is kept of the report: all that does not tell of one call.
  fileprivate var metadata: [UInt8]? {
    var wire = Imageworker_V1_ProcessingReport(self, traceID: nil)
    wire.clearTimings()
    wire.peakMemoryBytes = 0
    do { return try wire.serializedBytes() } catch { return nil }
  }
}

extension PipelineError {
  /// Whether the same request would fail again in the same way.
  fileprivate var isOfThePicture: Bool {
    switch code {
    case .invalidField, .unservedField, .unknownPreset, .emptyImage, .unknownFormat, .unsupportedImage, .corruptImage,
      .truncatedImage, .limitExceeded:
      true
    case .overloaded, .cancelled, .internalDefect: false
    }
  }
}

/// Where a handler's id is put by whoever registers it.
private final class Registration: Sendable {
  private let state = Mutex<UInt64>(0)

  var id: UInt64 { state.withLock { $0 } }

  func set(_ id: UInt64) { state.withLock { $0 = id } }
}

/// The bytes of an upload as far as the cache needs them.
private final class HashedUpload: Sendable {
  private struct State {
    var hasher = InputHasher()
    var isComplete = false
    var found: [CachedResult]?
  }

  private let state = Mutex(State())

  var hasher: InputHasher { state.withLock { $0.hasher } }
  var isComplete: Bool { state.withLock { $0.isComplete } }
  /// The results that make decoding needless.
  var found: [CachedResult]? { state.withLock { $0.found } }

  func take(_ bytes: Data, isLast: Bool) {
    state.withLock { state in
      bytes.withUnsafeBytes { state.hasher.update($0) }
      state.isComplete = isLast
    }
  }

  /// - Returns: whether all results are there.
  func find(_ results: [CachedResult?]) -> Bool {
    let all = results.compactMap(\.self)
    guard all.count == results.count else { return false }
    state.withLock { $0.found = all }
    return true
  }
}

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
      let began = ContinuousClock.now
      var hasher = InputHasher()
      bytes.withUnsafeBytes { hasher.update($0) }
      let key = try key(hasher)
      let turn = try await turn(cache, key)
      try cancellation.check()
      switch turn {
      case .hit(let result): try await emit(result, began: began, queued: began.duration(to: .now))
      case .alone:
        environment.metrics.looked(isHit: false)
        try await run { (bytes, isLast: true) }
      case .make(let collector):
        environment.metrics.looked(isHit: false)
        do {
          try await collecting(into: collector, as: key).run { (bytes, isLast: true) }
        } catch {
          if let error = error as? PipelineError, error.isOfThePicture { collector.fail(error) }
          collector.giveUp()
          throw error
        }
        collector.persist()
      }
    }
  }

  /// Works on a picture whose bytes still arrive, and keeps its result.
  ///
  /// What it is the result of is known when the last byte is here. Where that is before decoding begins, as when the
  /// picture waits for memory, a result that is kept is used.
  /// - `hasEnded`: whether the bytes that were given are all there are.
  /// - Throws: as `run` does.
  func run(
    upload hasEnded: @escaping @Sendable () -> Bool, nextBytes: () async throws -> (bytes: Data, isLast: Bool)
  ) async throws {
    guard let cache = environment.cache else { return try await run(nextBytes: nextBytes) }
    try await withTaskExecutorPreference(environment.executor) {
      let began = ContinuousClock.now
      let upload = HashedUpload()
      let collector = cache.collector()
      defer { collector.giveUp() }
      let processor = collecting(into: collector, as: nil).admitting {
        guard upload.isComplete || hasEnded(), let key = try? key(upload.hasher) else { return false }
        return upload.find(cache.result(for: key))
      }
      do {
        try await processor.run {
          let (bytes, isLast) = try await nextBytes()
          upload.take(bytes, isLast: isLast)
          return (bytes, isLast)
        }
      } catch {
        guard let found = upload.found else { throw error }
        return try await emit(found, began: began, queued: .zero)
      }
      environment.metrics.looked(isHit: false)
      // Decoders may be done before the last byte: the result is then that of the bytes so far.
      collector.keep(as: try key(upload.hasher))
      collector.persist()
    }
  }

  /// A request's key: its picture, and its configuration with the preset's fields in place.
  private func key(_ hasher: InputHasher) throws -> CacheKey {
    var options = BinaryEncodingOptions()
    options.useDeterministicOrdering = true
    let wire = Imageworker_V1_ProcessingConfiguration(configuration)
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

  /// This processor, with its result collected on its way.
  /// - `key`: what to keep the result as when it is complete, if that is known already.
  private func collecting(into collector: ResultCollector, as key: CacheKey?) -> PictureProcessor {
    PictureProcessor(
      environment: environment, configuration: configuration, cancellation: cancellation, admit: admit,
      emit: { [emit] part in
        switch part {
        case .chunk(let bytes): collector.append([UInt8](bytes))
        case .report(let report, _):
          if let metadata = report.metadata { collector.seal(metadata: metadata) }
          if let key { collector.keep(as: key) }
        case .header, .cachedHeader, .cachedReport: break
        }
        collector.beginSending()
        defer { collector.endSending() }
        try await emit(part)
      })
  }

  /// This processor, stopped when its turn has come and `isNeedless` then says so.
  private func admitting(unless isNeedless: @escaping @Sendable () -> Bool) -> PictureProcessor {
    PictureProcessor(
      environment: environment, configuration: configuration, cancellation: cancellation,
      admit: { [admit] workingSet throws(PipelineError) in
        let reservation = try await admit(workingSet)
        if isNeedless() { throw .cancelled }
        return reservation
      }, emit: emit)
  }

  /// Gives a result that was kept.
  private func emit(_ result: CachedResult, began: ContinuousClock.Instant, queued: Duration) async throws {
    var report = try Imageworker_V1_ProcessingReport(serializedBytes: result.metadata)
    try await emit(.cachedHeader(report.output))
    for chunk in result.chunks {
      try cancellation.check()
      try await emit(.chunk(Data(chunk)))
    }
    var timings = StageTimings()
    timings.queued = queued
    timings.total = began.duration(to: .now)
    report.timings = Imageworker_V1_StageTimings(timings)
    environment.metrics.found(report, after: timings.total)
    report.cacheHit = true
    report.traceID = environment.currentTraceID ?? ""
    try await emit(.cachedReport(report))
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
    var found: CachedResult?
  }

  private let state = Mutex(State())

  var hasher: InputHasher { state.withLock { $0.hasher } }
  var isComplete: Bool { state.withLock { $0.isComplete } }
  /// The result that makes decoding needless.
  var found: CachedResult? { state.withLock { $0.found } }

  func take(_ bytes: Data, isLast: Bool) {
    state.withLock { state in
      bytes.withUnsafeBytes { state.hasher.update($0) }
      state.isComplete = isLast
    }
  }

  /// - Returns: whether there is a result.
  func find(_ result: CachedResult?) -> Bool {
    state.withLock { $0.found = result }
    return result != nil
  }
}

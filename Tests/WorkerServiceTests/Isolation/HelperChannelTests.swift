import Admission
import Foundation
import ImagePipeline
import InMemoryTracing
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Testing
import Tracing
import WorkerIsolation
import WorkerProtocol

@testable import FaultyHelper
@testable import WorkerService

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What an image takes of the worker while it has a helper, and what it gives back.
@Suite("HelperChannel", .enabled(if: Isolated.isSupported, Isolated.absence), .serialized)
struct HelperChannelTests {
  private static let photo = Fixture.bytes("photo.png")
  private static let admittedByteCount = 64 << 20

  /// Reads the beginning of an image, which starts it.
  private static func begin(_ work: ImageWork, _ memory: MemoryBudget) throws {
    var planning = Isolated.planning
    planning.admittedByteCount = UInt64(admittedByteCount)
    let spare = memory.reserveSpare(admittedByteCount)
    let head = Array(photo.prefix(3000))
    let consumed = try work.readHeader(head.span.bytes, isLast: false, planning, spare: spare)
    try #require(work.isStarted && consumed < 3000)
  }

  @Test("an image that has ended gives its helper and its memory back, with the time that it took")
  func end() async throws {
    let (pool, memory) = (Isolated.faultyPool(), MemoryBudget(limit: 1 << 30, maxWaiting: 1))
    let work = try await Isolated.work(in: pool, memory: memory)
    try Self.begin(work, memory)
    #expect(memory.processes == HelperPool.helperByteCount && pool.idleCount == pool.count - 1)
    var rest = Self.photo[...]
    // The header again: what was consumed before is not known here.
    let again = try await Isolated.work(in: pool, memory: memory)
    var planning = Isolated.planning
    planning.admittedByteCount = UInt64(Self.admittedByteCount)
    let spare = memory.reserveSpare(Self.admittedByteCount)
    rest = rest.dropFirst(try again.readHeader(rest.span.bytes, isLast: true, planning, spare: spare))
    while !again.isComplete { rest = rest.dropFirst(try again.advance(rest.span.bytes, isLast: true)) }
    #expect(memory.processes == HelperPool.helperByteCount && pool.idleCount == pool.count - 1)
    let helper = try #require(again.helper)
    #expect(helper.takeCPUTime() > .zero && helper.takeCPUTime() == .zero)
    withExtendedLifetime(work) {}
  }

  @Test("an image that has failed gives its helper back, and gets no other one")
  func failure() async throws {
    let pool = Isolated.faultyPool()
    for (bytes, lostCount) in [(Array("no image".utf8), 0), (Isolated.image(.trap), 1)] {
      let work = try await Isolated.work(in: pool)
      #expect(throws: PipelineError.self) { try work.readHeader(bytes.span.bytes, isLast: true, Isolated.planning) }
      #expect(pool.idleCount == pool.count && pool.lostCount == UInt64(lostCount))
      try await work.helper?.prepare(isUpload: false, mayWait: true)
      try work.helper?.prepareNow(isUpload: false)
      #expect(pool.idleCount == pool.count)
    }
  }

  @Test("an image in larger requests is charged for their bytes")
  func window() async throws {
    let memory = MemoryBudget(limit: 1 << 30, maxWaiting: 1)
    let image = Array("P6 1000 1000 255\n".utf8) + noiseSamples(3_000_000)
    for (count, extraByteCount) in [(1000, 0), (image.count, image.count - HelperPool.inputByteCount)] {
      let work = try await Isolated.work(in: Isolated.faultyPool(), memory: memory)
      let head = Array(image.prefix(count))
      _ = try work.readHeader(head.span.bytes, isLast: false, Isolated.planning)
      #expect(memory.processes == HelperPool.helperByteCount + extraByteCount)
    }
    #expect(memory.processes == 0)
  }

  @Test("an image is abandoned soon, whether its helper answers or not")
  func abandonSilent() async throws {
    let memory = MemoryBudget(limit: 1 << 30, maxWaiting: 1)
    let pool = Isolated.faultyPool(timeouts: HelperTimeouts(idle: .seconds(60), cancelled: .seconds(1)))
    let began: ContinuousClock.Instant
    do {
      let work = try await Isolated.work(in: pool, memory: memory)
      try Self.begin(work, memory)
      for process in pool.processIDs.helpers { kill(process, SIGSTOP) }
      began = .now
    }
    #expect(began.duration(to: .now) < .seconds(30))
  }

  @Test("a helper may use twice the memory that its image was admitted with, and 256 MiB")
  func memoryLimit() async throws {
    let pool = Isolated.faultyPool(threadCount: 1)
    func limit() throws -> Int {
      let process = try #require(pool.processIDs.helpers.first)
      return try #require(try Isolated.limit("Max data size", of: process))
    }
    func growth(_ planning: WorkRequest.Planning, _ image: [UInt8], startsAlone: Bool) async throws -> (Int, UInt64) {
      let work = try await Isolated.work(in: pool)
      let before = try limit()
      _ = try work.readHeader(image.span.bytes, isLast: false, planning)
      if startsAlone { try work.start(nil) }
      return (try limit() - before, try #require(work.plan).reservedByteCount)
    }
    var planning = Isolated.planning
    planning.admittedByteCount = 1 << 30
    #expect(try await growth(planning, Array(Self.photo.prefix(3000)), startsAlone: false).0 == 2 << 30)
    // A rotation needs all rows.
    let rotated = WorkRequest.Planning(
      results: .renditions([ProcessingConfiguration(preferredFormat: .png, rotation: 90)]))
    let image = Array("P6 4000 3000 255\n".utf8) + [UInt8](repeating: 0, count: 1000)
    let (change, reserved) = try await growth(rotated, image, startsAlone: true)
    #expect(reserved > 32 << 20 && change > Int(reserved) && change <= 2 * Int(reserved) + (64 << 20))
  }

  @Test("files that a helper extends have the size of its image, in units of 16 MiB")
  func fileLimit() throws {
    let lease = try Isolated.faultyPool().borrowNow(for: "")
    for (byteCount, limit) in [(0, 16), (100 << 20, 112), (112 << 20, 112), (1, 16)] {
      lease.process.limitFiles(byteCount: UInt64(byteCount))
      #expect(try Isolated.limit("Max file size", of: lease.process.processID) == limit << 20)
    }
  }

  @Test("the next image of a helper has limits of its own")
  func nextFileLimit() async throws {
    let pool = Isolated.faultyPool(threadCount: 1)
    let image = Array("P6 2700 2500 255\n".utf8) + [UInt8](repeating: 9, count: 2700 * 2500 * 3)
    func limit() throws -> Int? {
      let process = try #require(pool.processIDs.helpers.first)
      return try Isolated.limit("Max file size", of: process)
    }
    do {
      let work = try await Isolated.work(in: pool)
      var rest = image[...]
      func take(_ body: ([UInt8], Bool) throws -> Int) throws {
        let window = Array(rest.prefix(work.channel.maxByteCount))
        rest = rest.dropFirst(try body(window, window.count == rest.count))
      }
      let planning = WorkRequest.Planning(
        results: .renditions([ProcessingConfiguration(maxWidth: 10, preferredFormat: .png)]))
      try take { try work.readHeader($0.span.bytes, isLast: $1, planning) }
      try work.start(nil)
      while !rest.isEmpty, !work.isComplete { try take { try work.advance($0.span.bytes, isLast: $1) } }
      #expect(try limit() == 32 << 20)
    }
    let process = pool.processIDs.helpers
    let next = try await Isolated.work(in: pool)
    #expect(try limit() == 16 << 20 && pool.processIDs.helpers == process)
    withExtendedLifetime(next) {}
  }

  @Test("a helper that asks for more files than an image can need is ended")
  func files() throws {
    let process = try Isolated.faultyPool().borrowNow(for: "").process
    let image = Isolated.hostileImage(.files, seed: 0)
    process.write(image.span.bytes)
    try process.send(Isolated.headerRequest(byteCount: image.count))
    _ = try process.receive { _ in -1 }
    try process.send(Isolated.headerRequest(byteCount: image.count, work: 2))
    var count = 0
    #expect(throws: HelperLoss.misbehaved) {
      try process.receive { _ in
        count += 1
        return -1
      }
    }
    #expect(count == 48)
  }

  @Test("the handler that cancels a helper's work ends with the work")
  func handler() async throws {
    let before = Isolated.sharedMappingCount
    let pool = Isolated.faultyPool(threadCount: 0)
    let cancellation = Cancellation()
    do {
      let work = try await Isolated.work(in: pool, cancellation)
      let image = Isolated.image(.trap)
      #expect(throws: PipelineError.self) { try work.readHeader(image.span.bytes, isLast: true, Isolated.planning) }
    }
    try await waitUntil("the memory is unmapped") { Isolated.sharedMappingCount <= before }
    withExtendedLifetime(cancellation) {}
  }

  @Test("spans are recorded only if the trace is")
  func unrecorded() async throws {
    for isTraced in [true, false] {
      let tracer = InMemoryTracer()
      var environment = WorkerEnvironment(threadCount: 1, helpers: Isolated.faultyPool())
      environment.tracer = tracer
      environment.isTraced = { _ in isTraced }
      let sink = RecordingSink()
      try await ImageJob(
        [Rendition(index: nil, id: "", configuration: ProcessingConfiguration(maxWidth: 9), isPreviewed: false)],
        from: WholeImage(Data(Self.photo)), to: sink,
        admission: environment.memory,
        environment: environment, cancellation: Cancellation()
      ).run()
      #expect(sink.kinds.last == "report")
      #expect(tracer.finishedSpans.contains { $0.operationName == "decode" } == isTraced)
    }
  }

  @Test("the spans of a preview are marked as those of a preview")
  func previewSpans() async throws {
    let tracer = InMemoryTracer()
    try await withWorker(tracer: tracer, helpers: Isolated.faultyPool()) { client, _ in
      _ = try await client.processRenditions(
        .with {
          $0.image = Data(Fixture.bytes("photo-420.jpg"))
          $0.preview = true
          $0.configuration.maxWidth = 90
        })
    }
    let marks = tracer.finishedSpans.filter { $0.operationName == "decode" }.map {
      $0.attributes.get("imageworker.is_preview") == true.toSpanAttribute()
    }
    #expect(marks == [true, false])
  }

  @Test("results of a helper that dies while it is idle leave the cache")
  func idleDeath() async throws {
    let cache = try ResultCache(limits: CacheLimits(), logger: Logger(label: "test"))
    let pool = Isolated.faultyPool(threadCount: 1)
    try await withWorker(cache: cache, helpers: pool) { client, _ in
      _ = try await client.process(Self.photo, preset: "favicon")
      #expect(try await client.process(Self.photo, preset: "favicon").report?.cacheHit == true)
      let helpers = pool.processIDs.helpers
      for helper in helpers { kill(helper, SIGKILL) }
      try await waitUntil("they have ended") { helpers.allSatisfy { (Isolated.state(of: $0) ?? "Z") == "Z" } }
      _ = try await client.process(Fixture.bytes("photo-420.jpg"), preset: "favicon")
      #expect(try await client.process(Self.photo, preset: "favicon").report?.cacheHit == false)
    }
  }

  @Test("an image of several requests is kept whole after a crash")
  func crash() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("crashes-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let crashes = try #require(CrashDirectory(path: folder.path))
    let pool = Isolated.faultyPool(crashes: crashes)
    try await withWorker(helpers: pool) { client, _ in
      let (head, fault) = (Array(Self.photo.prefix(20)), Isolated.image(.trap))
      _ = try await client.batch([.start("a"), .chunk("a", head), .chunk("a", fault), .end("a")])
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      let bytes = try Data(contentsOf: folder.appendingPathComponent(try #require(names.first)))
      #expect([UInt8](bytes) == head + fault)
    }
  }
}

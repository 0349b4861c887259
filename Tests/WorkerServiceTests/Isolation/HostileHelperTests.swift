import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import InMemoryTracing
import Logging
import ResultCache
import SwiftProtobuf
import TestSupport
import Synchronization
import Testing
import Tracing
import WorkThreads
import WorkerIsolation
import WorkerProtocol

@testable import FaultyHelper
@testable import WorkerService

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Helpers that a hostile image has taken over, and that then do anything at all.
@Suite("Hostile helpers", .enabled(if: Isolated.isSupported, Isolated.absence), .serialized)
struct HostileHelperTests {
  private static let timeouts = HelperTimeouts(idle: .seconds(3), cancelled: .seconds(1))

  private static func limits() -> WorkerLimits {
    var limits = WorkerLimits.defaults
    limits.image.maxCPUTime = .seconds(2)
    return limits
  }

  /// Requests of each kind, whose outcomes do not matter.
  private static let requests: [@Sendable (Client) async throws -> Void] = [
    { client in _ = try await client.process(Fixture.bytes("photo-420.jpg")) { $0.maxWidth = 200 } },
    { client in
      _ = try await client.processRenditions(
        .with {
          $0.image = Data(Fixture.bytes("photo.png"))
          $0.renditions = [.named("a") { $0.maxWidth = 100 }, .named("b") { $0.preferredFormat = .png }]
        })
    },
    { client in
      _ = try await client.processRenditions(
        .with {
          $0.image = Data(Fixture.bytes("photo-420.jpg"))
          $0.preview = true
        })
    },
    { client in _ = try await client.inspectImage(.with { $0.image = Data(Fixture.bytes("photo.png")) }) },
    { client in
      let bytes = Fixture.bytes("photo-420.jpg")
      let half = bytes.count / 2
      _ = try await client.batch([
        .start("half"), .chunk("half", bytes.prefix(half)), .chunk("half", bytes.dropFirst(half)), .end("half"),
      ])
    },
  ]

  /// Returns the result of a job of another caller, which runs at the same time.
  private static func othersResult(_ environment: WorkerEnvironment) async throws -> [UInt8] {
    let sink = RecordingSink()
    try await ImageJob(
      [Rendition(index: nil, id: "", configuration: ProcessingConfiguration(maxWidth: 300, preferredFormat: .png))],
      from: WholeImage(Data(Fixture.bytes("photo.png"))), to: sink,
      admission: RecordingAdmission(memory: environment.memory), environment: environment,
      cancellation: Cancellation(), caller: ImageCaller(connection: "another")
    ).run()
    return Array(sink.bytes)
  }

  /// Makes a request to a helper that has become hostile; checks that others are served as before, and meanwhile.
  private static func check(_ cases: [(act: HostileHelper.Act?, seed: UInt64, request: Int)]) async throws {
    let pool = Isolated.faultyPool(threadCount: 1, timeouts: timeouts)
    try await withWorker(limits: limits(), helpers: pool) { client, environment in
      let expected = try await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes
      let others = try await othersResult(environment)
      #expect(!others.isEmpty)
      for (act, seed, request) in cases {
        let armed = await failure { _ = try await client.process(Isolated.hostileImage(act, seed: seed)) }
        #expect(armed?.code == .unimplemented, "\(String(describing: armed))")
        async let result = othersResult(environment)
        try? await requests[request](client)
        #expect(try await result == others, "seed \(seed)")
        try await waitUntil("all memory is returned after seed \(seed)") {
          environment.memory.used == 0 && environment.memory.buffered == 0 && environment.memory.processes == 0
        }
        // One that has not been found out is still hostile.
        let helpers = pool.processIDs.helpers
        for helper in helpers { kill(helper, SIGKILL) }
        try await waitUntil("they have ended") { helpers.allSatisfy { (Isolated.state(of: $0) ?? "Z") == "Z" } }
        #expect(try await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes == expected)
      }
    }
  }

  @Test("each hostile act costs its own image only", .timeLimit(.minutes(15)), arguments: HostileHelper.Act.allCases)
  func acts(act: HostileHelper.Act) async throws { try await Self.check([(act, 0, 0), (act, 1, 2)]) }

  /// The use of memory in KiB, of which the first is the maximum, and of threads by this process.
  private static func usage() throws -> [Int] {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8).split(separator: "\n")
    return ["VmHWM:", "VmRSS:", "Threads:"].map { name in
      let line = status.first { $0.hasPrefix(name) }
      return line.flatMap { Int($0.dropFirst(name.count).filter(\.isNumber)) } ?? 0
    }
  }

  /// The seeds of random dialogues; `Tests/Fuzz/dialogues.sh` tries many more.
  private static let seeds: Range<UInt64> = {
    let variables = ProcessInfo.processInfo.environment
    let first = variables["DIALOGUE_SEED"].flatMap { UInt64($0) } ?? 0
    return first..<(first + (variables["DIALOGUE_COUNT"].flatMap { UInt64($0) } ?? 20))
  }()

  @Test("dialogues with random acts of hostility cost their own images only")
  func randomActs() async throws {
    let cases = Self.seeds.map { (act: HostileHelper.Act?.none, seed: $0, request: Int($0 % 5)) }
    guard ProcessInfo.processInfo.environment["DIALOGUE_COUNT"] != nil else { return try await Self.check(cases) }
    // Nothing else runs in this process, so that what it uses is used by these dialogues.
    try await Self.check(Array(cases.prefix(10)))
    let before = try Self.usage()
    try await Self.check(cases)
    let after = try Self.usage()
    print("peak RSS, RSS in KiB and threads: \(before) before, \(after) after")
    #expect(after[1] - before[1] < 64 << 10 && after[2] <= before[2] + 4)
  }

  @Test(
    "cancellation ends a helper that overwrites the flag", arguments: [HostileHelper.Act.deaf, .emptyParts, .files])
  func deafHelper(act: HostileHelper.Act) async throws {
    let pool = Isolated.faultyPool(
      threadCount: 1, timeouts: HelperTimeouts(idle: .seconds(600), cancelled: .seconds(1)))
    let cancellation = Cancellation()
    let image = Isolated.hostileImage(act, seed: 0)
    let armed = try await Isolated.work(in: pool, cancellation)
    #expect(throws: PipelineError.self) { try armed.readHeader(image.span.bytes, isLast: true, Isolated.planning) }
    Task.detached {
      try await Task.sleep(for: .milliseconds(100))
      cancellation.cancel()
    }
    let hostile = try await Isolated.work(in: pool, cancellation)
    let bytes = Fixture.bytes("photo.png")
    #expect(throws: PipelineError.self) { try hostile.readHeader(bytes.span.bytes, isLast: true, Isolated.planning) }
    #expect(pool.count == pool.idleCount && pool.idleCount <= 1)
  }

  @Test(
    "a drain ends the image of a helper that never answers", arguments: [HostileHelper.Act.silent, .deaf, .emptyParts])
  func drain(act: HostileHelper.Act) async throws {
    let pool = Isolated.faultyPool(
      threadCount: 1, timeouts: HelperTimeouts(idle: .seconds(600), cancelled: .seconds(1)))
    try await withWorker(helpers: pool) { client, environment in
      _ = try? await client.process(Isolated.hostileImage(act, seed: 0))
      async let lost = failure { _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon") }
      try await waitUntil("the helper works on the image") {
        pool.count > pool.idleCount && environment.drain.workCount == 1
      }
      environment.drain.begin()
      environment.drain.cancelWork()
      #expect(await lost?.code == .unavailable)
      try await waitUntil("its thread and its memory are returned") {
        environment.executor.idleThreadCount == environment.executor.threadCount && environment.memory.used == 0
          && pool.count == pool.idleCount
      }
    }
  }

  @Test("a caller's helper works for no other caller")
  func callers() throws {
    let pool = Isolated.faultyPool(threadCount: 2)
    let first = try pool.borrowNow(for: "a")
    let image = Isolated.image(.escape)
    first.process.write(image.span.bytes)
    pool.giveBack(first, isUsable: true)
    let second = try pool.borrowNow(for: "b")
    #expect(second.process !== first.process)
    try second.process.send(Isolated.headerRequest(byteCount: image.count))
    let response = try #require(HelperResponse(second.process.receive { _ in -1 }))
    #expect(
      HelperFault.attempts(in: response.error).isEmpty && response.error != nil,
      "the first caller's image is in its memory")
    #expect(try pool.borrowNow(for: "a").process === first.process)
    pool.giveBack(second, isUsable: true)
  }

  @Test("a helper that was given back ends if an image of another caller waits")
  func waitingCaller() async throws {
    let pool = Isolated.faultyPool(threadCount: 1, maxCount: 2)
    let leases = [try pool.borrowNow(for: "a"), try pool.borrowNow(for: "a")]
    let waiting = Task { try await pool.borrow(for: "b", isUpload: false, Cancellation()) }
    try await Task.sleep(for: .milliseconds(50))
    pool.giveBack(leases[0], isUsable: true)
    let lent = try await waiting.value.process
    #expect(leases.allSatisfy { $0.process !== lent })
    #expect(pool.count == 2)
  }

  @Test("uploads leave a quarter of the helpers to images in one message")
  func uploads() async throws {
    let pool = Isolated.faultyPool(threadCount: 1, maxCount: 4)
    func borrow(isUpload: Bool) async throws -> HelperPool.Lease {
      try await pool.borrow(for: "a", isUpload: isUpload, Cancellation())
    }
    var uploads: [HelperPool.Lease] = []
    for _ in 0..<3 { uploads.append(try await borrow(isUpload: true)) }
    let waiting = Task { try await borrow(isUpload: true) }
    try await waitUntil("the upload waits") { pool.state.withLock { $0.waiting.count } == 1 }
    for _ in 0..<2 { pool.giveBack(try await borrow(isUpload: false), isUsable: true) }
    #expect(pool.state.withLock { $0.waiting.count } == 1)
    pool.giveBack(uploads.removeLast(), isUsable: true)
    uploads.append(try await waiting.value)
    for lease in uploads { pool.giveBack(lease, isUsable: true) }
    #expect(pool.state.withLock { $0.uploadCount } == 0)
  }

  @Test("results of a helper that is lost leave the cache, in memory and on the disk")
  func revokedResults() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cache-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    var limits = CacheLimits()
    limits.directory = folder.path
    func fileCount() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: folder.path).count { $0.hasSuffix(".result") }
    }
    let cache = try ResultCache(limits: limits, logger: Logger(label: "test"))
    try await withWorker(cache: cache, helpers: Isolated.faultyPool(threadCount: 1)) { client, _ in
      func expect(isCached: Bool) async throws {
        for name in ["photo.png", "photo-420.jpg"] {
          let result = try await client.process(Fixture.bytes(name), preset: "favicon")
          #expect(result.report?.cacheHit == isCached, "\(name)")
        }
      }
      try await expect(isCached: false)
      try await expect(isCached: true)
      #expect(try fileCount() == 2)
      _ = try? await client.process(Isolated.image(.trap))
      #expect(cache.memoryByteCount == 0)
      #expect(try fileCount() == 0)
      try await expect(isCached: false)
    }
  }

  @Test("helpers have other addresses after a crash")
  func renewal() async throws {
    let pool = Isolated.faultyPool(threadCount: 1)
    try await withWorker(helpers: pool) { client, _ in
      _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon")
      let zygote = try #require(pool.processIDs.zygote)
      _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon")
      #expect(pool.processIDs.zygote == zygote)
      _ = try? await client.process(Isolated.image(.trap))
      _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon")
      #expect(pool.processIDs.zygote != zygote)
      try await waitUntil("the zygote that is not needed has ended") { Isolated.state(of: zygote) == nil }
    }
  }
}

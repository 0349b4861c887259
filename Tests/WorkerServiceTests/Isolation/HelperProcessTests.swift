import Admission
import Foundation
import GRPCCore
import GRPCProtobuf
import ImagePipeline
import InMemoryTracing
import Synchronization
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

@Suite("Helper processes", .enabled(if: Isolated.isSupported, Isolated.absence), .serialized)
struct HelperProcessTests {
  @Test("a process that is ready and waits for a processor is active")
  func starved() throws {
    func start(_ script: String) throws -> Process {
      try Process.run(URL(filePath: "/bin/sh"), arguments: ["-c", script])
    }
    let busy = try (0..<4 * ProcessInfo.processInfo.activeProcessorCount).map { _ in
      try start("ulimit -t 5; while :; do :; done")
    }
    let idle = try start("exec sleep 60")
    defer { for process in busy + [idle] { kill(process.processIdentifier, SIGKILL) } }
    // Each gets a quarter of a processor or less, and wants a whole one.
    let started = ContinuousClock.now
    usleep(1_500_000)  // in this thread, so that they end soon
    let active = busy.map { HelperProcess.activeTime(of: $0.processIdentifier) }
    let elapsed = started.duration(to: .now) / .nanoseconds(1)
    #expect(Double(active.reduce(0, +)) > 0.6 * elapsed * Double(busy.count))
    #expect(Double(HelperProcess.activeTime(of: idle.processIdentifier)) < 0.5 * elapsed)
  }

  @Test("a helper cannot reach files, the network or other processes")
  func sandbox() throws {
    let lease = try Isolated.faultyPool().borrowNow(for: "")
    let image = Isolated.image(.escape)
    lease.process.write(image.span.bytes)
    try lease.process.send(Isolated.headerRequest(byteCount: image.count))
    let response = try #require(HelperResponse(lease.process.receive { _ in -1 }))
    let attempts = HelperFault.attempts(in: response.error)
    #expect(attempts.count >= 20)
    for (attempt, error) in attempts { #expect(error != 0, "a helper managed to \(attempt)") }
    let status = try String(contentsOfFile: "/proc/\(lease.process.processID)/status", encoding: .utf8)
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"] {
      #expect(status.contains(line), "\(line)")
    }
  }

  @Test("no part of the shared memory is on a page of another", arguments: [4096, 16384, 65536])
  func pages(pageByteCount: Int) {
    let layout = HelperLayout(pageByteCount: pageByteCount)
    let offsets = [0, layout.inputOffset, layout.outputOffset, layout.byteCount]
    for (offset, next) in zip(offsets, offsets.dropFirst()) { #expect(next >= offset + pageByteCount) }
    for offset in offsets { #expect(offset % pageByteCount == 0) }
    #expect(layout.outputOffset - layout.inputOffset == HelperLayout.inputByteCount)
    #expect(layout.byteCount - layout.outputOffset == HelperLayout.outputByteCount)
  }

  @Test("the input of an idle helper is returned to the system, and used again")
  func discard() throws {
    let lease = try Isolated.faultyPool().borrowNow(for: "")
    let image = Isolated.image(.escape)
    for (work, isDiscarded) in [(UInt32(1), true), (UInt32(2), false)] {
      lease.process.write(image.span.bytes)
      if isDiscarded { lease.process.discard() }
      try lease.process.send(Isolated.headerRequest(byteCount: image.count, work: work))
      let response = try #require(HelperResponse(lease.process.receive { _ in -1 }))
      // Without its bytes, the image is none.
      #expect(HelperFault.attempts(in: response.error).isEmpty == isDiscarded && response.error != nil)
    }
  }

  @Test(
    "an image that breaks its codec gets an error, and other images go on",
    arguments: [
      (HelperFault.trap, RPCError.Code.internalError, "CODEC_CRASHED"),
      (.eat, .resourceExhausted, "CODEC_STOPPED"),
      (.spin, .resourceExhausted, "CODEC_STOPPED"),
    ])
  func faults(fault: HelperFault, code: RPCError.Code, reason: String) async throws {
    var limits = WorkerLimits.defaults
    limits.image.maxCPUTime = .seconds(1)
    try await withWorker(limits: limits, helpers: Isolated.faultyPool()) { client, environment in
      let expected = try await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          let status = await failure { _ = try await client.process(Isolated.image(fault)) }
          #expect(status?.code == code, "\(String(describing: status))")
          #expect(status?.details.compactMap(\.errorInfo).first?.reason == reason)
        }
        for _ in 0..<20 {
          group.addTask {
            let bytes = try await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes
            #expect(bytes == expected)
          }
        }
        try await group.waitForAll()
      }
      #expect(environment.helpers?.lostCount == 1 && environment.memory.used == 0)
      #expect(try await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes == expected)
    }
  }

  @Test("a cancelled image whose codec does not return releases its thread")
  func cancelledSpin() async throws {
    let pool = Isolated.faultyPool()
    let cancellation = Cancellation()
    let work = try await Isolated.work(in: pool, cancellation)
    let image = Isolated.image(.spin)
    Task.detached {
      try await Task.sleep(for: .milliseconds(100))
      cancellation.cancel()
    }
    let began = ContinuousClock.now
    #expect(throws: PipelineError.cancelled) { try work.readHeader(image.span.bytes, isLast: true, Isolated.planning) }
    #expect(began.duration(to: .now) < .seconds(20))
    #expect(pool.lostCount == 0)
  }

  @Test("helpers that are killed and stopped cost at most their own image")
  func killing() async throws {
    let pool = Isolated.faultyPool()
    try await withWorker(helpers: pool) { client, environment in
      let bytes = Fixture.bytes("photo-420.jpg")
      let expected = try await client.process(bytes) { $0.maxWidth = 200 }.bytes
      let killer = Task.detached {
        var generator = SeededGenerator(seed: 7)
        var killed: Set<Int32> = []
        while !Task.isCancelled {
          if let process = pool.processIDs.helpers.randomElement(using: &generator) {
            let isKilled = Bool.random(using: &generator)
            kill(process, isKilled ? SIGKILL : SIGSTOP)
            if isKilled { killed.insert(process) }
          }
          try? await Task.sleep(for: .milliseconds(40))
        }
        return killed
      }
      var successCount = 0
      for _ in 0..<60 {
        do {
          let result = try await client.process(bytes) { $0.maxWidth = 200 }
          #expect(result.bytes == expected)
          successCount += 1
        } catch let error as RPCError {
          #expect([.resourceExhausted, .internalError].contains(error.code), "\(error)")
        }
      }
      killer.cancel()
      #expect(successCount > 0)
      let killed = await killer.value
      // One that is still alive works on, and costs its image when it ends.
      try await waitUntil("they have ended") { killed.allSatisfy { (Isolated.state(of: $0) ?? "Z") == "Z" } }
      for _ in 0..<6 {
        #expect(try await client.process(bytes) { $0.maxWidth = 200 }.bytes == expected)
      }
      #expect(environment.memory.used == 0)
    }
  }

  @Test("the end of the process that forks helpers costs only the images in progress")
  func zygoteKilled() async throws {
    let pool = Isolated.faultyPool()
    try await withWorker(helpers: pool) { client, _ in
      let expected = try await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes
      let (zygote, helpers) = pool.processIDs
      kill(try #require(zygote), SIGKILL)
      // One that is still alive works on, and costs its image when it ends.
      try await waitUntil("its helpers have ended") {
        helpers.allSatisfy { (Isolated.state(of: $0) ?? "Z") == "Z" }
      }
      var results: [[UInt8]?] = []
      for _ in 0..<6 {
        results.append(try? await client.process(Fixture.bytes("photo.png"), preset: "favicon").bytes)
      }
      #expect(results.suffix(2).allSatisfy { $0 == expected }, "\(results.map { $0?.count })")
    }
  }

  @Test("a stopped process that forks helpers is replaced with its idle helpers, and those at work go on")
  func zygoteStopped() throws {
    let pool = Isolated.faultyPool()
    try pool.warmUp()
    let busy = try pool.borrowNow(for: "a")
    #expect(!pool.replaceLostZygote() && pool.replacedZygoteCount == 0)
    let (zygote, helpers) = pool.processIDs
    try Isolated.stop(try #require(zygote))
    #expect(pool.replaceLostZygote() && pool.replacedZygoteCount == 1)
    // The next images need not wait: their helpers are there, from another process.
    #expect(pool.processIDs.zygote != nil && pool.processIDs.zygote != zygote)
    #expect(pool.idleCount >= 1 && pool.processIDs.helpers.subtracting(helpers).count == pool.idleCount)
    try busy.process.send(HelperRequest.abandon.bytes(work: 0))
    #expect(HelperResponse(try busy.process.receive { _ in -1 }) != nil)
    #expect(!pool.replaceLostZygote() && pool.replacedZygoteCount == 1)
    // The stopped one was continued, and ends with its last helper.
    pool.giveBack(busy, isUsable: true)
    #expect(Isolated.state(of: try #require(zygote)) == nil)
  }

  @Test("an ended process that forks helpers is replaced with its helpers")
  func zygoteEnded() async throws {
    let pool = Isolated.faultyPool()
    try pool.warmUp()
    let (zygote, helpers) = pool.processIDs
    kill(try #require(zygote), SIGKILL)
    try await waitUntil("it and its helpers have ended") {
      (helpers + [zygote ?? 0]).allSatisfy { (Isolated.state(of: $0) ?? "Z") == "Z" }
    }
    #expect(pool.replaceLostZygote())
    #expect(pool.idleCount == pool.warmCount && pool.processIDs.helpers.isDisjoint(with: helpers))
  }

  @Test("an image that needs a helper of a stopped process gets one of another, and does not end those at work")
  func zygoteStoppedUnnoticed() throws {
    let pool = Isolated.faultyPool(threadCount: 1)
    let busy = try pool.borrowNow(for: "a")
    let zygote = try #require(pool.processIDs.zygote)
    try Isolated.stop(zygote)
    let other = try pool.borrowNow(for: "b")
    #expect(pool.processIDs.zygote != zygote && pool.replacedZygoteCount == 1)
    for lease in [busy, other] {
      try lease.process.send(HelperRequest.abandon.bytes(work: 0))
      #expect(HelperResponse(try lease.process.receive { _ in -1 }) != nil)
    }
  }

  @Test("no process, descriptor or shared memory is left behind")
  func leftovers() async throws {
    let before = Isolated.sharedMappingCount
    var processes: [Int32] = []
    do {
      let pool = Isolated.faultyPool()
      try pool.warmUp()
      try await withWorker(helpers: pool) { client, _ in
        for _ in 0..<4 { _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon") }
        _ = try? await client.process(Isolated.image(.trap))
      }
      processes = Array(pool.processIDs.helpers) + [try #require(pool.processIDs.zygote)]
      #expect(processes.count >= 2 && processes.allSatisfy { Isolated.state(of: $0) != nil })
    }
    try await waitUntil("the helpers have ended") { processes.allSatisfy { (Isolated.state(of: $0) ?? "Z") == "Z" } }
    try await waitUntil("the zygote was reaped") { Isolated.state(of: processes.last!) == nil }
    try await waitUntil("the memory is unmapped") { Isolated.sharedMappingCount <= before }
  }

  @Test("an image on which the codec crashed is kept in the crash directory")
  func crashDirectory() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("crashes-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let crashes = try #require(CrashDirectory(path: folder.path))
    try await withWorker(helpers: Isolated.faultyPool(crashes: crashes)) { client, _ in
      _ = try await client.process(Fixture.bytes("photo.png"), preset: "favicon")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
      _ = try? await client.process(Isolated.image(.trap))
      let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      #expect(names.count == 1)
      let bytes = try Data(contentsOf: folder.appendingPathComponent(try #require(names.first)))
      #expect([UInt8](bytes) == Isolated.image(.trap))
    }
  }

  @Test("images beyond the maximum number of helpers wait for one")
  func waiting() async throws {
    let pool = Isolated.faultyPool(maxCount: 4)
    var leases: [HelperPool.Lease] = []
    for _ in 0..<pool.maxCount { leases.append(try pool.borrowNow(for: "")) }
    #expect(throws: PipelineError.self) { try pool.borrowNow(for: "") }
    let waiting = Task { try await pool.borrow(for: "", isUpload: false, Cancellation()) }
    let cancellation = Cancellation()
    let cancelled = Task { try await pool.borrow(for: "", isUpload: false, cancellation) }
    try await Task.sleep(for: .milliseconds(50))
    cancellation.cancel()
    await #expect(throws: PipelineError.cancelled) { try await cancelled.value }
    let returned = leases.removeLast()
    pool.giveBack(returned, isUsable: true)
    #expect(try await waiting.value.process === returned.process)
  }

  @Test("images that wait are refused once no process can be started")
  func waitingForNothing() async throws {
    let program = FileManager.default.temporaryDirectory.appendingPathComponent("helper-\(UUID())")
    try FileManager.default.createSymbolicLink(at: program, withDestinationURL: Isolated.faultyProgram)
    let zygote = HelperZygote(program: program.path, arguments: [])
    let pool = HelperPool(zygote: zygote, threadCount: 1, maxCount: 2)
    let leases = [try pool.borrowNow(for: ""), try pool.borrowNow(for: "")]
    let waiting = (0..<3).map { _ in Task { try await pool.borrow(for: "", isUpload: false, Cancellation()) } }
    while pool.state.withLock({ $0.waiting.count }) < waiting.count { try await Task.sleep(for: .milliseconds(5)) }
    // Neither helper comes back, and none can take its place.
    try FileManager.default.removeItem(at: program)
    kill(try #require(zygote.processID), SIGKILL)
    for lease in leases { pool.giveBack(lease, isUsable: false) }
    for image in waiting {
      let error = await #expect(throws: PipelineError.self) { try await image.value }
      #expect(error?.code == .overloaded)
    }
  }
}

import Admission
import Foundation
import ImagePipeline
import InMemoryTracing
import TestSupport
import Testing
import Tracing
import WorkerIsolation

@testable import FaultyHelper
@testable import WorkerService

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Helpers of the built programs, for tests.
enum Isolated {
  static let isSupported = HelperPool.isSupported
  static let absence: Comment = "this build has no sandbox"

  /// A pool of the worker's helpers.
  static func pool() -> HelperPool {
    let zygote = HelperZygote(program: TestProgram.url.path, arguments: [CodecHelper.command])
    return HelperPool(zygote: zygote, threadCount: 2, maxCount: 16)
  }

  /// The program whose helpers accept faults.
  static let faultyProgram = TestProgram.url.deletingLastPathComponent().appendingPathComponent("FaultyHelper")

  /// A pool of helpers that accept faults.
  static func faultyPool(
    threadCount: Int = 2, maxCount: Int = 16, timeouts: HelperTimeouts = HelperTimeouts(),
    crashes: CrashDirectory? = nil
  ) -> HelperPool {
    HelperPool(
      zygote: HelperZygote(program: faultyProgram.path, arguments: []), threadCount: threadCount, maxCount: maxCount,
      timeouts: timeouts, crashes: crashes)
  }

  /// An image that makes a helper commit a fault.
  static func image(_ fault: HelperFault) -> [UInt8] { Array((HelperFault.marker + fault.rawValue + "\n").utf8) }

  /// An image after which a helper is hostile.
  ///
  /// - `act`: what it does instead of each answer; `nil` for random acts.
  static func hostileImage(_ act: HostileHelper.Act?, seed: UInt64) -> [UInt8] {
    Array("\(HelperFault.marker)\(HostileHelper.name) \(act?.rawValue ?? "any") \(seed)\n".utf8)
  }

  /// The work on an image in a helper of a pool.
  static func work(
    in pool: HelperPool, _ cancellation: Cancellation = Cancellation(),
    memory: MemoryBudget = MemoryBudget(limit: 1 << 30, maxWaiting: 1), tracer: InMemoryTracer = InMemoryTracer()
  ) async throws -> ImageWork {
    let tracing = TraceTarget(tracer: tracer, context: .topLevel)
    let channel = HelperChannel(
      pool, caller: "", limits: ImageLimits(), memory: memory, cancellation: cancellation, tracing: tracing,
      waited: { _, _ in })
    try await channel.prepare(isUpload: false, mayWait: true)
    return ImageWork(channel, memory: memory)
  }

  static let planning = WorkRequest.Planning(results: .renditions([ProcessingConfiguration()]))

  /// The first request for an image of `byteCount` bytes.
  static func headerRequest(byteCount: Int, work: UInt32 = 1) -> [UInt8] {
    let request = HelperRequest.Work(
      request: .readHeader(planning), input: 0..<byteCount, isLast: true,
      start: HelperRequest.ImageStart(limits: ImageLimits()))
    return HelperRequest.work(request).bytes(work: work)
  }

  /// The state of a process as the system reports it; `nil` if there is no such process.
  static func state(of process: Int32) -> Character? {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return nil }
    return status.split(separator: ") ").last?.first
  }

  /// Stops a process, and waits until it is.
  static func stop(_ process: Int32) throws {
    kill(process, SIGSTOP)
    let deadline = ContinuousClock.now + .seconds(30)
    while state(of: process) != "T" {
      try #require(ContinuousClock.now < deadline, "the process does not stop")
      usleep(1000)
    }
  }

  /// A limit that the system enforces on a process, in bytes, by its name in /proc; `nil` for no limit.
  static func limit(_ name: String, of process: Int32) throws -> Int? {
    let limits = try String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8).split(separator: "\n")
    return limits.first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.count).split(separator: " ")[0]) }
  }

  /// The number of mappings of memory that this process shares with helpers.
  static var sharedMappingCount: Int {
    let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
    return maps.split(separator: "\n").count { $0.contains("memfd:image-worker") }
  }
}

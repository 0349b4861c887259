import Foundation
import TestSupport
import Testing
import WorkerIsolation

@testable import WorkerService

/// Helpers of the built program, for tests.
enum Isolated {
  static let isSupported = HelperPool.isSupported
  static let absence: Comment = "this build has no sandbox"

  /// A pool of helpers that accept faults.
  static func pool(
    threadCount: Int = 2, maxCount: Int = 16, patience: HelperPatience = HelperPatience(),
    crashes: CrashDirectory? = nil
  ) -> HelperPool {
    HelperPool(
      zygote: zygote(), threadCount: threadCount, maxCount: maxCount, patience: patience, crashes: crashes)
  }

  static func zygote() -> HelperZygote {
    HelperZygote(program: TestProgram.url.path, arguments: [CodecHelper.command, CodecHelper.testArgument])
  }

  /// An image that makes a helper commit a fault.
  static func image(_ fault: HelperFault) -> [UInt8] { Array((HelperFault.marker + fault.rawValue + "\n").utf8) }

  /// An image after which a helper is hostile.
  ///
  /// - `act`: what it does instead of each answer; `nil` for random acts.
  static func hostileImage(_ act: HostileHelper.Act?, seed: UInt64) -> [UInt8] {
    Array("\(HelperFault.marker)\(HostileHelper.name) \(act?.rawValue ?? "any") \(seed)\n".utf8)
  }

  /// The state of a process as the system reports it; `nil` if there is no such process.
  static func state(of process: Int32) -> Character? {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return nil }
    return status.split(separator: ") ").last?.first
  }

  /// The number of mappings of memory that this process shares with helpers.
  static var sharedMappingCount: Int {
    let maps = (try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? ""
    return maps.split(separator: "\n").count { $0.contains("memfd:image-worker") }
  }
}

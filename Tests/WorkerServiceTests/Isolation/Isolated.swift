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
  static func pool(maxCount: Int = 16, crashes: CrashDirectory? = nil) -> HelperPool {
    HelperPool(zygote: zygote(), threadCount: 2, maxCount: maxCount, crashes: crashes)
  }

  static func zygote() -> HelperZygote {
    HelperZygote(program: TestProgram.url.path, arguments: [CodecHelper.command, CodecHelper.testArgument])
  }

  /// An image that makes a helper commit a fault.
  static func image(_ fault: HelperFault) -> [UInt8] { Array((HelperFault.marker + fault.rawValue + "\n").utf8) }

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

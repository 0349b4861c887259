import Foundation
import Synchronization
import Testing

@testable import WorkerTelemetry

@Suite("ChromeTrace")
struct ChromeTraceTests {
  @Test("writes complete events on a lane for each stage and thread")
  func lanes() throws {
    let text = Mutex("")
    let trace = ChromeTrace { portion in text.withLock { $0 += portion } }
    let began = ContinuousClock.now
    for index in 0..<2000 {
      let start = began.advanced(by: .microseconds(index))
      trace.record(
        index % 2 == 0 ? "decode" : "encode", thread: UInt(index % 3), from: start,
        to: start.advanced(by: .microseconds(3)), image: "a \"b\".jpg")
    }
    trace.finish()
    let data = Data(text.withLock { $0 }.utf8)
    let events = try #require(try JSONSerialization.jsonObject(with: data) as? [[String: Any]])
    let work = events.filter { $0["ph"] as? String == "X" }
    #expect(work.count == 2000 && Set(work.compactMap { $0["tid"] as? Int }).count == 6)
    #expect(work.allSatisfy { $0["dur"] as? Double == 3 && ($0["ts"] as? Double ?? -1) >= 0 })
    #expect((work.first?["args"] as? [String: String])?["image"] == "a \"b\".jpg")
    let names = events.filter { $0["name"] as? String == "thread_name" }
    let lanes = names.compactMap { ($0["args"] as? [String: String])?["name"] }
    #expect(Set(lanes) == Set((1...3).flatMap { ["decode, thread \($0)", "encode, thread \($0)"] }))
  }

  @Test("is a whole file even when nothing was done")
  func empty() throws {
    let text = Mutex("")
    ChromeTrace { portion in text.withLock { $0 += portion } }.finish()
    #expect((try JSONSerialization.jsonObject(with: Data(text.withLock { $0 }.utf8)) as? [Any])?.isEmpty == true)
  }
}

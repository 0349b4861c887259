import Synchronization
import Testing

@testable import WorkerOperations

@Suite("LoadMeter")
struct LoadMeterTests {
  /// A clock that stands still until it is moved.
  private final class Clock: Sendable {
    private let time = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { time.withLock { $0 } }
    func move(_ duration: Duration) { time.withLock { $0 += duration } }
  }

  private let clock = Clock()

  private func makeMeter() -> LoadMeter {
    LoadMeter(threadCount: 2, memoryUtilization: { 0.25 }, now: { [clock] in clock.now })
  }

  @Test("utilization and rates cover the same time")
  func rates() {
    let meter = makeMeter()
    clock.move(.milliseconds(100))
    for index in 0..<4 {
      meter.note(isWorking: true)
      clock.move(.milliseconds(100))
      meter.note(isWorking: false)
      meter.noteCall(isFailed: index == 0)
    }
    let report = meter.report
    // 0.4 seconds of work of the second that two threads had.
    #expect(abs(report.utilization - 0.4) < 1e-9)
    #expect(report.memoryUtilization == 0.25)
    #expect(abs(report.callsPerSecond - 8) < 1e-9 && abs(report.failedCallsPerSecond - 2) < 1e-9)
    #expect(report.callCost == nil)
  }

  @Test("work of more than two seconds ago does not count")
  func age() {
    let meter = makeMeter()
    work(meter, for: .milliseconds(1500))
    #expect(meter.report.utilization > 0)
    clock.move(.milliseconds(1200))
    work(meter, for: .milliseconds(300))
    #expect(abs(meter.report.utilization - 0.3 / 3) < 1e-9)
    clock.move(.seconds(60))
    #expect(meter.report.utilization == 0 && meter.report.callsPerSecond == 0)
  }

  @Test("work that goes on counts, however long it takes, and never as more than all threads")
  func longWork() {
    let meter = makeMeter()
    meter.note(isWorking: true)
    for pause in [100, 900, 1000, 10, 5000, 300] {
      clock.move(.milliseconds(pause))
      #expect(abs(meter.report.utilization - 0.5) < 1e-9)
    }
    meter.note(isWorking: true)
    meter.note(isWorking: true)  // that of small images
    clock.move(.seconds(60))
    #expect(meter.report.utilization == 1)
    for _ in 0..<3 { meter.note(isWorking: false) }
    clock.move(.seconds(3))
    #expect(meter.report.utilization == 0)
  }

  private func work(_ meter: LoadMeter, for duration: Duration) {
    meter.note(isWorking: true)
    clock.move(duration)
    meter.note(isWorking: false)
  }

  @Test("the first call of a worker does not make a rate of thousands")
  func first() {
    let meter = makeMeter()
    meter.noteCall(isFailed: false)
    #expect(meter.report.callsPerSecond <= 10)
  }

  @Test("a report has at most 62 bytes")
  func byteCount() {
    var report = LoadReport(
      utilization: 0.7, memoryUtilization: 0.3, callsPerSecond: 12.5, failedCallsPerSecond: 0.5, callCost: 0.004)
    #expect(report.bytes.count == 62)
    report = LoadReport(utilization: 0, memoryUtilization: 0, callsPerSecond: 0, failedCallsPerSecond: 0)
    #expect(report.bytes.isEmpty)
  }
}

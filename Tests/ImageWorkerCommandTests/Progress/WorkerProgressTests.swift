import Testing

@testable import ImageWorkerClient
@testable import image_worker

/// The state of workers on the progress line.
@Suite("Workers on the progress line")
struct WorkerProgressTests {
  private static let line = ProgressLine(
    tally: RunTally(total: 300), elapsed: .seconds(12),
    workers: [
      WorkerStatus(address: "one:1", itemsInFlight: 8, itemsDone: 100, error: nil),
      WorkerStatus(address: "two:1", itemsInFlight: 0, itemsDone: 40, error: .lost("it is gone")),
    ])

  @Test("a wide terminal shows each worker")
  func wide() {
    let text = Self.line.text(columnCount: 200, usesColor: false)
    #expect(text.contains("ETA -:--  1/2 workers  one:1 100+8  two:1 down") && text.count == 199)
  }

  @Test("a narrow terminal shows their number")
  func narrow() {
    let text = Self.line.text(columnCount: 80, usesColor: false)
    #expect(text.contains("1/2 workers") && !text.contains("one:1") && text.count == 79)
  }

  @Test("no width is exceeded", arguments: 1...160)
  func anyWidth(columnCount: Int) {
    #expect(Self.line.text(columnCount: columnCount, usesColor: false).count == max(1, columnCount - 1))
  }
}

import AsyncAlgorithms
import Foundation
import ImagePipeline
import Testing

@testable import WorkerService

@Suite("ItemState")
struct ItemStateTests {
  /// An event of an item; some report whether they changed its state.
  enum Event: String, CaseIterable {
    case complete, replace, claimEnd, reserve

    func apply(to state: inout ItemState) -> Bool? {
      switch self {
      case .complete: return state.complete()
      case .claimEnd: return state.claimEnd()
      case .replace: state.replace(by: "next")
      case .reserve: state.set(.reserved)
      }
      return nil
    }
  }

  private static let states: [ItemState] = [
    .active(.uploading(.none)), .active(.uploading(.waiting)), .active(.working), .active(.replaced(by: "other")),
    .ending(.uploading(.reserved)), .ending(.working), .ending(.replaced(by: "other")),
  ]

  /// The states after each of `Event.allCases`, for each state, and whether complete and claimEnd changed anything.
  private static let transitions: [[(ItemState, Bool?)]] = [
    [
      (.active(.working), true), (.active(.replaced(by: "next")), nil), (.ending(.uploading(.none)), true),
      (.active(.uploading(.reserved)), nil),
    ],
    [
      (.active(.working), true), (.active(.replaced(by: "next")), nil), (.ending(.uploading(.waiting)), true),
      (.active(.uploading(.reserved)), nil),
    ],
    [
      (.active(.working), false), (.active(.replaced(by: "next")), nil), (.ending(.working), true),
      (.active(.working), nil),
    ],
    [
      (.active(.replaced(by: "other")), false), (.active(.replaced(by: "other")), nil),
      (.ending(.replaced(by: "other")), true), (.active(.replaced(by: "other")), nil),
    ],
    [
      (.ending(.uploading(.reserved)), false), (.ending(.replaced(by: "next")), nil),
      (.ending(.uploading(.reserved)), false), (.ending(.uploading(.reserved)), nil),
    ],
    [
      (.ending(.working), false), (.ending(.replaced(by: "next")), nil), (.ending(.working), false),
      (.ending(.working), nil),
    ],
    [
      (.ending(.replaced(by: "other")), false), (.ending(.replaced(by: "other")), nil),
      (.ending(.replaced(by: "other")), false), (.ending(.replaced(by: "other")), nil),
    ],
  ]

  @Test("changes with each event as the table specifies", arguments: zip(states, transitions))
  func table(state: ItemState, expected: [(ItemState, Bool?)]) {
    for (event, (after, isNews)) in zip(Event.allCases, expected) {
      var changed = state
      #expect(event.apply(to: &changed) == isNews, "\(state) \(event)")
      #expect(changed == after, "\(state) \(event)")
    }
  }

  @Test("needs the stream only while an upload without an end has memory or waits for it")
  func stream() {
    #expect(Self.states.map(\.needsStream) == [false, true, false, false, false, false, false])
    #expect(Self.states.map(\.isOpen) == [true, true, false, false, true, false, false])
  }
}

@Suite("ItemTable", .timeLimit(.minutes(15)))
struct ItemTableTests {
  private let table = ItemTable(maxOpenUploads: 2, maxWholeImages: 1)
  private let stream = Cancellation()

  private func item(_ id: String, key: String = "", isWhole: Bool = false) -> BatchItem {
    BatchItem(
      id: id, key: key, renditions: [], content: isWhole ? .whole(Data([1])) : .upload(AsyncChannel()), stream: stream)
  }

  private func standing(_ id: String) -> String {
    switch table.standing(of: id) {
    case .unknown: "unknown"
    case .uploading(let item): "uploading \(item.id)"
    case .stopping: "stopping"
    case .working: "working"
    case .ended: "ended"
    }
  }

  @Test("shows the state of an item from its start until after its end")
  func standings() async {
    let (upload, other) = (item("a"), item("b"))
    #expect(standing("a") == "unknown" && table.isEmpty)
    await table.begin(upload)
    await table.begin(other)
    #expect(standing("a") == "uploading a" && !table.isEmpty && !table.isComplete(upload))
    table.complete(upload)
    #expect(standing("a") == "working" && table.isComplete(upload))
    #expect(table.claimEnd(of: other) && !table.claimEnd(of: other) && standing("b") == "stopping")
    table.complete(other)
    #expect(!table.isComplete(other) && !table.isActive(other) && table.isActive(upload))
    table.remove(upload)
    table.remove(other)
    table.refuse("c")
    #expect(["a", "b", "c"].map(standing) == ["ended", "ended", "ended"] && table.isEmpty)
    #expect(!table.claimEnd(of: upload))
  }

  @Test("distinguishes ids and keys that only look the same")
  func ids() async {
    let (one, other) = (item("é", key: "é"), item("e\u{301}", key: "e\u{301}"))
    await table.begin(one)
    #expect(standing("e\u{301}") == "unknown")
    await table.begin(other)
    #expect(table.isActive(one) && table.isActive(other) && !one.cancellation.isCancelled)
    table.remove(one)
    #expect(standing("é") == "ended" && standing("e\u{301}") == "uploading e\u{301}")
  }

  @Test("counts open uploads, except the one to be replaced")
  func openUploads() async {
    await table.begin(item("a", key: "k"))
    #expect(table.hasRoomForUpload(replacing: ""))
    let second = item("b")
    await table.begin(second)
    #expect(!table.hasRoomForUpload(replacing: "") && !table.hasRoomForUpload(replacing: "l"))
    #expect(table.hasRoomForUpload(replacing: "k"))
    // Its end is being sent, but it is still being processed.
    #expect(table.claimEnd(of: second) && !table.hasRoomForUpload(replacing: ""))
    table.remove(second)
    #expect(table.hasRoomForUpload(replacing: ""))
  }

  @Test("starts a complete image after the previous one was removed, and is not empty in between")
  func wholeImages() async {
    let (first, second) = (item("a", isWhole: true), item("b", isWhole: true))
    await table.begin(first)
    await table.begin(item("upload"))  // does not wait
    let begun = Task { await table.begin(second) }
    for _ in 0..<20 { await Task.yield() }
    #expect(standing("b") == "unknown")
    table.remove(first)
    #expect(!table.isEmpty)
    #expect(await begun.value)
    #expect(standing("b") == "working")
  }

  @Test("replaces only the newest item of a key, which then has a reason")
  func replacing() async {
    let (first, other, second) = (item("a", key: "k"), item("b", key: "l"), item("c", key: "k"))
    for item in [first, other, second] { await table.begin(item) }
    #expect(first.cancellation.isCancelled && !other.cancellation.isCancelled && !second.cancellation.isCancelled)
    #expect(standing("a") == "working" && !table.isComplete(first))
    let reason = table.reason(PipelineError.cancelled, of: first) as? PipelineError
    #expect(reason?.message == "replaced by item c, which has the same preview_key")
    #expect(table.reason(PipelineError.cancelled, of: second) as? PipelineError == .cancelled)
    // Nobody claimed its end, so the end must still be sent.
    #expect(table.claimEnd(of: first))
    table.remove(second)
    await table.begin(item("d", key: "k"))
    #expect(standing("d") == "uploading d")
  }

  @Test("a replaced item leaves its key to the newer one when it ends")
  func keyOfNewer() async {
    let items = (0..<3).map { item("\($0)", key: "k") }
    await table.begin(items[0])
    await table.begin(items[1])
    table.remove(items[0])
    await table.begin(items[2])
    #expect(items.map(\.cancellation.isCancelled) == [true, true, false])
  }

  @Test("the stream cancels its items until they have ended")
  func stopped() async {
    let (ended, active) = (item("a"), item("b"))
    await table.begin(ended)
    await table.begin(active)
    table.remove(ended)
    stream.cancel()
    #expect(!ended.cancellation.isCancelled && active.cancellation.isCancelled)
  }

  @Test("delays items with a key while too many replaced items have not ended")
  func replacedLimit() async {
    let items = (0..<4).map { item("\($0)", key: "k") }
    await table.begin(items[0])
    await table.begin(items[1])
    let begun = Task {
      await table.begin(items[2])
      await table.begin(items[3])
    }
    while !items[1].cancellation.isCancelled { await Task.yield() }
    for _ in 0..<20 { await Task.yield() }
    #expect(standing("2") == "unknown" && standing("3") == "unknown")
    table.remove(items[0])
    table.remove(items[1])
    await begun.value
    #expect(standing("3") == "uploading 3")
  }

  @Test("lets one unfinished upload wait for memory while none has any, and always finished ones")
  func memory() async {
    let table = ItemTable(maxOpenUploads: 8, maxWholeImages: 1)
    let (first, second, finished) = (item("a"), item("b"), item("c"))
    for item in [first, second, finished] { await table.begin(item) }
    table.complete(finished)
    #expect(table.mayWaitForMemory(first) && !table.mayWaitForMemory(second) && table.mayWaitForMemory(finished))
    table.note(.reserved, of: first)
    #expect(!table.mayWaitForMemory(second))
    table.complete(first)
    #expect(table.mayWaitForMemory(second))
    table.note(.none, of: second)
    #expect(table.mayWaitForMemory(second))
  }

  @Test("lets an upload wait for a process only while no other unfinished one has or awaits one")
  func processes() async {
    let (first, second, finished) = (item("a"), item("b"), item("c"))
    for item in [first, second, finished] { await table.begin(item) }
    table.complete(finished)
    #expect(table.mayWaitForProcess(first) && !table.mayWaitForProcess(second) && table.mayWaitForProcess(finished))
    table.remove(first)
    #expect(table.mayWaitForProcess(second))
    for item in [second, finished] { table.remove(item) }
  }

  @Test("lets one whole image fewer wait than may be in progress while an upload needs the stream")
  func waitingWholeImages() async {
    let (upload, whole) = (item("a"), item("b", isWhole: true))
    for item in [upload, whole] { await table.begin(item) }
    #expect(table.mayWait(whole))
    #expect(table.mayWaitForProcess(upload) && !table.mayWait(whole))
    table.complete(upload)
    #expect(table.mayWait(whole))
    for item in [upload, whole] { table.remove(item) }
  }

  @Test("ends the chunks of uploads that can't go on, and calls itself changed when an item ends")
  func chunks() async {
    let (first, second) = (item("a"), item("b"))
    await table.begin(first)
    await table.begin(second)
    table.complete(first)
    table.finishUploads()
    for item in [first, second] {
      guard case .upload(let chunks) = item.content else { continue }
      for await _ in chunks { Issue.record("a chunk came of nowhere") }
    }
    table.remove(first)
    for await _ in table.itemEnds { break }
  }

  @Test("remembers a limited number of ended ids, and forgets the oldest first")
  func recent() {
    var ids = RecentIDs(maxCount: 4)
    for id in ["a", "b", "b", "c", "d"] { ids.insert(id) }
    #expect(["a", "b", "c", "d"].allSatisfy(ids.contains))
    ids.insert("e")
    #expect(["a", "b", "c", "d", "e"].map(ids.contains) == [false, true, true, true, true])
  }
}

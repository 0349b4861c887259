import Admission
import Foundation
import HTTPTypes
import ImagePipeline
import Testing

@testable import WorkerPlayground

@Suite("Upload store")
struct UploadStoreTests {
  private let memory = MemoryBudget(limit: 4000, maxWaiting: 4)

  private func store(maxByteCount: Int = 1 << 20) -> UploadStore {
    UploadStore(memory: memory, maxByteCount: maxByteCount)
  }

  private func keep(_ byteCount: Int, in store: UploadStore) throws -> String {
    let room = try store.reserve(byteCount)
    return room.keep(Data(count: byteCount))
  }

  @Test("charges an image from before its bytes arrive until it is removed")
  func charge() throws {
    let store = store()
    let room = try store.reserve(300)
    #expect(memory.buffered == 300)
    let id = room.keep(Data(count: 300))
    #expect(store.image(id)?.count == 300)
    #expect(memory.buffered == 300)
    #expect(store.byteCount == 300)
    store.remove(id)
    #expect(store.image(id) == nil)
    #expect(memory.buffered == 0)
    #expect(store.byteCount == 0)
  }

  @Test("releases the room of an image that does not arrive")
  func abandoned() throws {
    let store = store()
    func abandon() throws { _ = try store.reserve(300) }
    try abandon()
    #expect(memory.buffered == 0)
    #expect(store.byteCount == 0)
  }

  @Test("refuses an image that is empty, too large, or finds no room")
  func limits() throws {
    let store = store(maxByteCount: 900)
    func status(_ byteCount: Int) -> Int? {
      do throws(UploadStore.Refusal) {
        _ = try store.reserve(byteCount)
        return nil
      } catch { return error.status.code }
    }
    #expect(status(0) == 400)
    #expect(status(901) == 413)
    let id = try keep(600, in: store)
    // A quarter of the budget is for uploads.
    #expect(status(401) == 507)
    #expect(status(400) == nil)
    store.remove(id)
    #expect(status(401) == nil)
    // Half of the budget is for files that are buffered, whoever buffers them, and for small messages.
    #expect(memory.holdNow(1700))
    #expect(status(200) == 503)
    #expect(store.byteCount == 0)
    memory.endHold(1700)
  }

  @Test("limits the number of images")
  func count() throws {
    let store = store()
    for _ in 0..<UploadStore.maxCount { _ = try keep(1, in: store) }
    #expect(throws: UploadStore.Refusal.self) { try keep(1, in: store) }
  }

  @Test("forgets images that were not used for their lifetime")
  func expiry() throws {
    let store = store()
    let id = try keep(100, in: store)
    store.removeExpired(now: .now + UploadStore.lifetime - .seconds(1))
    #expect(store.image(id) != nil)
    store.removeExpired(now: .now + UploadStore.lifetime + .seconds(1))
    #expect(store.image(id) == nil)
    #expect(memory.buffered == 0)
  }

  @Test("forgets the images of a page that is gone, and no others")
  func pages() throws {
    let store = store()
    let ids = try ["one", "two", "one", ""].map { page in
      let room = try store.reserve(10)
      return room.keep(Data(count: 10), page: page)
    }
    store.removeAll(of: "one")
    #expect(ids.map { store.image($0) != nil } == [false, true, false, true])
    #expect(store.byteCount == 20 && memory.buffered == 20)
  }

  @Test("gives every image a name of its own")
  func names() throws {
    let store = store()
    let names = try (0..<50).map { _ in try keep(1, in: store) }
    #expect(Set(names).count == 50)
    #expect(names.allSatisfy { $0.count > 15 })
  }
}

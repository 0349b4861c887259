internal import Admission
internal import FoundationEssentials
internal import HTTPTypes
internal import ImagePipeline
internal import Synchronization

/// The images that pages have uploaded, in their compressed form, for as long as the pages are open.
///
/// Their bytes count in the worker's memory budget. They may use a quarter of it, so that other clients find room.
final class UploadStore: Sendable {
  /// An error of an upload, with the HTTP status that fits.
  struct Refusal: Error {
    var status: HTTPResponse.Status
    var message: String
  }

  private struct Upload {
    var image: Data
    /// The page that sent it; empty if it did not say.
    var page: String
    var expires: ContinuousClock.Instant
  }

  private struct State {
    var uploads: [String: Upload] = [:]
    /// Bytes of the images and of those that are arriving.
    var byteCount = 0
    var arrivingCount = 0
  }

  /// The time for which an image is kept after its last use.
  static let lifetime = Duration.seconds(300)
  /// Images that are kept at the same time.
  static let maxCount = 64

  private let memory: MemoryBudget
  private let maxByteCount: Int
  private let state = Mutex(State())

  /// - `maxByteCount`: the maximum size of one image.
  init(memory: MemoryBudget, maxByteCount: Int) {
    self.memory = memory
    self.maxByteCount = maxByteCount
  }

  /// The maximum size of all images together.
  var limit: Int { memory.limit / 4 }
  /// The size of all images together.
  var byteCount: Int { state.withLock { $0.byteCount } }
  var count: Int { state.withLock { $0.uploads.count } }

  /// Makes room for an image before its bytes are received.
  /// - Throws: `Refusal`.
  func reserve(_ byteCount: Int) throws(Refusal) -> Room {
    guard byteCount > 0 else { throw Refusal(status: .badRequest, message: "the image is empty") }
    guard byteCount <= maxByteCount else {
      throw Refusal(
        status: .contentTooLarge,
        message: "the image has \(byteCount) bytes, above max_message_bytes of \(maxByteCount)")
    }
    let hasPlace = state.withLock { state in
      guard state.byteCount + byteCount <= limit, state.uploads.count + state.arrivingCount < Self.maxCount else {
        return false
      }
      state.byteCount += byteCount
      state.arrivingCount += 1
      return true
    }
    guard hasPlace else {
      throw Refusal(
        status: .init(code: 507, reasonPhrase: "Insufficient Storage"),
        message: "the page's images use \(self.byteCount) of \(limit) bytes and \(count) of \(Self.maxCount) places; "
          + "close images or pages that are not needed")
    }
    guard memory.holdNow(byteCount) else {
      release(byteCount, arrivingCount: 1)
      throw Refusal(status: .serviceUnavailable, message: "there is no memory for the image now; try again later")
    }
    return Room(store: self, byteCount: byteCount)
  }

  private func release(_ byteCount: Int, arrivingCount: Int = 0) {
    state.withLock { state in
      state.byteCount -= byteCount
      state.arrivingCount -= arrivingCount
    }
  }

  /// The room of an image that is arriving; it is released unless the image is kept.
  struct Room: ~Copyable {
    private let store: UploadStore
    private let byteCount: Int
    private var isKept = false

    fileprivate init(store: UploadStore, byteCount: Int) {
      self.store = store
      self.byteCount = byteCount
    }

    /// Keeps an image that has arrived.
    /// - `page`: the page that sent it; empty for none.
    /// - Returns: A name for it, which nobody can guess.
    consuming func keep(_ image: Data, page: String = "") -> String {
      isKept = true
      let store = store
      var generator = SystemRandomNumberGenerator()
      let id = String(generator.next(), radix: 36) + String(generator.next(), radix: 36)
      store.state.withLock { state in
        state.arrivingCount -= 1
        state.uploads[id] = Upload(image: image, page: page, expires: .now + UploadStore.lifetime)
      }
      return id
    }

    deinit {
      guard !isKept else { return }
      store.release(byteCount, arrivingCount: 1)
      store.memory.endHold(byteCount)
    }
  }

  /// Returns an image, and keeps it for its lifetime again; `nil` if it was removed.
  func image(_ id: String) -> Data? {
    state.withLock { state in
      state.uploads[id]?.expires = .now + Self.lifetime
      return state.uploads[id]?.image
    }
  }

  func remove(_ id: String) { remove { name, _ in name == id } }

  /// Removes the images of a page that is gone.
  func removeAll(of page: String) { remove { $1.page == page } }

  /// Removes the images that were not used for their lifetime.
  func removeExpired(now: ContinuousClock.Instant = .now) { remove { $1.expires <= now } }

  private func remove(_ isUnneeded: (String, Upload) -> Bool) {
    let byteCount = state.withLock { state in
      let removed = state.uploads.filter { isUnneeded($0.key, $0.value) }
      for name in removed.keys { state.uploads[name] = nil }
      let byteCount = removed.values.reduce(0) { $0 + $1.image.count }
      state.byteCount -= byteCount
      return byteCount
    }
    if byteCount > 0 { memory.endHold(byteCount) }
  }

  deinit { remove { _, _ in true } }
}

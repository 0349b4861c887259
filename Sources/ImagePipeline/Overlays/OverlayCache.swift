internal import ImageKernels
internal import Synchronization

/// Decoded overlays that several images use, at the sizes at which they are drawn.
///
/// Those that were not used for the longest time make room for others.
package final class OverlayCache: Sendable {
  /// The file, and all that its pixels depend on.
  struct Key: Hashable {
    let digest: [UInt8]
    let drawing: PlannedOverlay.Drawing
  }

  private struct Entry {
    let pixels: OverlayPixels
    /// The size of the pixels and of the key.
    let byteCount: Int
    var lastUse: UInt64
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    var byteCount = 0
    var useCount: UInt64 = 0
  }

  /// The size in bytes of an entry without its pixels, and without the profile and the text in its key.
  private static let entryByteCount = 1024

  private let maxByteCount: Int
  private let state = Mutex(State())

  /// Creates an empty cache.
  /// - `maxByteCount`: the maximum size of all entries in bytes; one with more than a quarter is not kept.
  package init(maxByteCount: Int = 8 << 20) { self.maxByteCount = maxByteCount }

  /// The size of all overlays in bytes.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  /// Returns the pixels of an overlay; `nil` if they are not kept.
  func pixels(_ key: Key) -> OverlayPixels? {
    state.withLock { state in
      guard state.entries[key] != nil else { return nil }
      state.useCount += 1
      state.entries[key]?.lastUse = state.useCount
      return state.entries[key]?.pixels
    }
  }

  func keep(_ pixels: OverlayPixels, as key: Key) {
    let keyByteCount = key.drawing.profile.count + (key.drawing.text?.text.utf8.count ?? 0)
    let byteCount = pixels.byteCount + keyByteCount + Self.entryByteCount
    guard byteCount <= maxByteCount / 4 else { return }
    state.withLock { state in
      guard state.entries[key] == nil else { return }
      state.useCount += 1
      state.entries[key] = Entry(pixels: pixels, byteCount: byteCount, lastUse: state.useCount)
      state.byteCount += byteCount
      while state.byteCount > maxByteCount, let oldest = state.entries.min(by: { $0.value.lastUse < $1.value.lastUse })
      {
        state.entries[oldest.key] = nil
        state.byteCount -= oldest.value.byteCount
      }
    }
  }
}

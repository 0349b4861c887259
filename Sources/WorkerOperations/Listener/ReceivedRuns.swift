internal import NIOCore

/// A cursor over received bytes that collects contiguous runs to forward.
struct ReceivedRuns {
  let bytes: ByteBuffer
  private(set) var index: Int
  private var runStart: Int

  init(bytes: ByteBuffer) {
    self.bytes = bytes
    index = bytes.readerIndex
    runStart = index
  }

  mutating func advance(_ count: Int, isDropping: Bool) {
    index += count
    if isDropping { runStart = index }
  }

  /// Returns the bytes since the last bytes that were returned or dropped; `nil` if there are none.
  mutating func takeRun() -> ByteBuffer? {
    defer { runStart = index }
    return index > runStart ? bytes.getSlice(at: runStart, length: index - runStart) : nil
  }
}

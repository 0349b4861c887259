internal import FoundationEssentials

/// Compressed bytes, split into chunks of at most 64 KiB.
struct OutputChunks {
  static let chunkByteCount = 64 * 1024

  private var ready: [Data] = []
  private var current = Data()

  mutating func append(_ bytes: RawSpan) {
    var rest = bytes
    while !rest.isEmpty {
      let count = min(rest.byteCount, Self.chunkByteCount - current.count)
      rest.extracting(first: count).withUnsafeBytes { current.append(contentsOf: $0) }
      rest = rest.extracting(droppingFirst: count)
      if current.count == Self.chunkByteCount { closeChunk() }
    }
  }

  /// Removes and returns all buffered bytes.
  ///
  /// The last chunk may be smaller than the others: its receiver may not be able to continue without it.
  mutating func take() -> [Data] {
    closeChunk()
    defer { ready = [] }
    return ready
  }

  private mutating func closeChunk() {
    guard !current.isEmpty else { return }
    ready.append(current)
    current = Data()
  }
}

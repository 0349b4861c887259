/// The last streams that the client has ended or cancelled.
///
/// It must send no data on them. On a stream that the worker alone has ended, data may still be on its way.
struct EndedStreams {
  private static let maxCount = 64

  private var streams: [UInt32] = []
  private var oldest = 0

  mutating func insert(_ stream: UInt32) {
    if streams.count < Self.maxCount {
      streams.append(stream)
    } else {
      streams[oldest] = stream
      oldest = (oldest + 1) % Self.maxCount
    }
  }

  func contains(_ stream: UInt32) -> Bool { streams.contains(stream) }
}

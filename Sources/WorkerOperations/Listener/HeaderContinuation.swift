internal import NIOCore

/// Merges the CONTINUATION frames of one call's headers into fewer, larger frames.
///
/// The HTTP/2 handler accepts only a few of them, and clients send them with 16 KiB each.
///
/// Needed with swift-nio-http2 1.46.0.
struct HeaderContinuation {
  /// Maximum number of CONTINUATION frames that the HTTP/2 handler accepts after HEADERS.
  static let maxForwardedCount = 5
  /// Maximum number of frames that a client may send after HEADERS: 1 MiB in frames of 16 KiB, and a few smaller ones.
  private static let maxCount = 128

  let stream: UInt32
  private let maxFrameByteCount: Int
  /// When the first of its frames arrived.
  let began = NIODeadline.now()
  private var payload = ByteBuffer()
  private var count = 0

  init(stream: UInt32, maxFrameByteCount: Int) {
    self.stream = stream
    self.maxFrameByteCount = maxFrameByteCount
  }

  /// Whether the frame is the next of these headers and one that the HTTP/2 handler would accept.
  func takes(_ header: FrameHeader) -> Bool {
    header.kind == .continuation && header.stream == stream && header.length <= maxFrameByteCount
      && count < Self.maxCount
  }

  /// Consumes a frame's payload and returns the merged frames that are complete.
  mutating func push(_ bytes: inout ByteBuffer, isLast: Bool) -> ByteBuffer {
    count += 1
    payload.writeBuffer(&bytes)
    var frames = ByteBuffer()
    while payload.readableBytes > maxFrameByteCount {
      write(maxFrameByteCount, isLast: false, to: &frames)
    }
    if isLast { write(payload.readableBytes, isLast: true, to: &frames) }
    payload.discardReadBytes()
    return frames
  }

  /// Returns the buffered payload as frames, before a frame that does not belong to these headers.
  mutating func flush() -> ByteBuffer {
    var frames = ByteBuffer()
    if payload.readableBytes > 0 { write(payload.readableBytes, isLast: false, to: &frames) }
    return frames
  }

  private mutating func write(_ byteCount: Int, isLast: Bool, to frames: inout ByteBuffer) {
    guard var part = payload.readSlice(length: byteCount) else { return }
    frames.write(
      FrameHeader(
        length: byteCount, kind: .continuation, flags: isLast ? FrameHeader.endHeaders : 0, stream: stream))
    frames.writeBuffer(&part)
  }
}

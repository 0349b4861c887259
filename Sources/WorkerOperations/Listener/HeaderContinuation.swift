internal import NIOCore

/// Joins the CONTINUATION frames of one call's headers into fewer and larger ones.
///
/// The HTTP/2 handler reads only few of them, and clients make them of 16 KiB.
struct HeaderContinuation {
  /// The frames that the HTTP/2 handler reads after HEADERS.
  static let maxForwardedCount = 5
  /// The frames that a client may send after HEADERS: 1 MiB in ones of 16 KiB, and a few that are smaller.
  private static let maxCount = 128

  let stream: UInt32
  private let maxFrameByteCount: Int
  private var payload = ByteBuffer()
  private var count = 0

  init(stream: UInt32, maxFrameByteCount: Int) {
    self.stream = stream
    self.maxFrameByteCount = maxFrameByteCount
  }

  /// Whether the frame is the next of these headers, and of a kind that the HTTP/2 handler would not refuse.
  func takes(_ header: FrameHeader) -> Bool {
    header.kind == .continuation && header.stream == stream && header.length <= maxFrameByteCount
      && count < Self.maxCount
  }

  /// Takes a frame's payload; returns the frames that are complete.
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

  /// Returns what was taken, before a frame that does not belong here.
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

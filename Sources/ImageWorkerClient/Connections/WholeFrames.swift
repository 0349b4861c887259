internal import NIOCore

/// Passes on whole HTTP/2 frames, except of data, and drops those of kinds that HTTP/2 does not define.
///
/// The parser of swift-nio-http2 1.46.0 keeps what it has read for as long as every read ends within a frame, so that a
/// hostile worker could take all memory of its client with frames that mean nothing.
///
/// Source: RFC 9113, sections 4.1 and 6.
final class WholeFrames: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private enum Kind {
    static let data: UInt8 = 0
    static let last: UInt8 = 9
  }

  private static let padded: UInt8 = 0x8

  private static let headerByteCount = 9
  /// The maximum length of a frame that a client accepts; the parser refuses a longer one by its header.
  private static let maxLength = 1 << 14

  /// Received bytes that are still to be passed on.
  private var waiting = ByteBuffer()
  /// The number of bytes of the current frame that are still to be passed on or dropped.
  private var left = 0
  private var isDropping = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    if waiting.readableBytes == 0 { waiting = bytes } else { waiting.writeBuffer(&bytes) }
    while let run = nextRun() { context.fireChannelRead(wrapInboundOut(run)) }
    // A buffer keeps what was read from it; the part of a frame that is left is at most as long as one.
    waiting = ByteBuffer(bytes: waiting.readableBytesView)
  }

  /// Returns the next bytes to pass on; `nil` until more arrive.
  private func nextRun() -> ByteBuffer? {
    var byteCount = 0
    while byteCount < waiting.readableBytes {
      if left == 0 {
        guard let frame = frame(at: waiting.readerIndex + byteCount) else { break }
        let total = Self.headerByteCount + frame.length
        isDropping = frame.kind > Kind.last
        let isWhole = byteCount + total <= waiting.readableBytes
        // DATA without padding may be passed on in parts, the first of which has at least one byte of data.
        let isBegun =
          frame.kind == Kind.data && !frame.isPadded && byteCount + Self.headerByteCount < waiting.readableBytes
        guard isDropping || isBegun || frame.length > Self.maxLength || isWhole else { break }
        left = total
      }
      let step = min(left, waiting.readableBytes - byteCount)
      if isDropping {
        // The bytes before this frame are passed on first.
        if byteCount > 0 { break }
        waiting.moveReaderIndex(forwardBy: step)
      } else {
        byteCount += step
      }
      left -= step
    }
    return byteCount > 0 ? waiting.readSlice(length: byteCount) : nil
  }

  /// Reads a frame's header; `nil` if it has not arrived.
  private func frame(at index: Int) -> (length: Int, kind: UInt8, isPadded: Bool)? {
    guard index + Self.headerByteCount <= waiting.writerIndex,
      let word = waiting.getInteger(at: index, as: UInt32.self),
      let flags = waiting.getInteger(at: index + 4, as: UInt8.self)
    else { return nil }
    return (Int(word >> 8), UInt8(truncatingIfNeeded: word), flags & Self.padded != 0)
  }
}

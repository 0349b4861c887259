internal import NIOCore

/// Reads the frames that the HTTP/2 handler writes.
///
/// It withholds the windows that the handler opens, which `MessageReceiver` opens when there is memory for a message, and
/// finds out that the handler has ended the connection. Nothing more is sent on a connection that was refused or cut.
///
/// Needed with grpc-swift-nio-transport 2.9.2, which opens windows whatever memory there is, and with swift-nio-http2
/// 1.46.0, which reports the end of the connection only to the client.
final class SentFrames: ChannelOutboundHandler {
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  private let connection: ConnectionGuard
  /// Bytes still expected of the current frame.
  private var rest = 0
  /// Whether the handler has ended the connection.
  private(set) var hasGoneAway = false

  init(connection: ConnectionGuard) { self.connection = connection }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    connection.allowances.noteSent()
    guard connection.phase != .cut, case .byteBuffer(let bytes) = unwrapOutboundIn(data), !withholds(bytes) else {
      promise?.succeed()
      return
    }
    context.write(data, promise: promise)
  }

  /// Reads the header of a frame; returns `true` for a frame that must not be sent now.
  private func withholds(_ bytes: ByteBuffer) -> Bool {
    if rest > 0 {
      rest -= bytes.readableBytes
      return false
    }
    guard let header = FrameHeader(bytes, at: bytes.readerIndex) else { return false }
    let end = FrameHeader.byteCount + header.length
    rest = max(0, end - bytes.readableBytes)
    switch header.kind {
    case .goAway where header.stream == 0 && end == bytes.readableBytes: hasGoneAway = true
    case .windowUpdate where header.stream > 0:
      let increment = bytes.getInteger(at: bytes.readerIndex + FrameHeader.byteCount, as: UInt32.self)
      guard let increment, let request = connection.requests[header.stream] else { return false }
      request.messages.window.withheld += Int(increment)
      return true
    case .settings where header.flags & FrameHeader.acknowledged == 0: connection.firstWindow.noteSettingsOfHandler()
    case .data: connection.requests[header.stream]?.progress.noteSent(header.length)
    default: break
    }
    return false
  }
}

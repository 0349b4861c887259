internal import NIOCore
internal import NIOHTTP2
internal import WorkThreads

/// The flow control of a call's messages.
extension MessageReceiver {
  /// The flow-control window of a call.
  struct Window {
    /// The number of bytes that the client may still send.
    var byteCount: Int
    /// The window while no message is charged.
    var idle: Int
    /// Window that the HTTP/2 handler has opened and the client was not told of: `SentFrames` keeps it back.
    var withheld = 0
    /// The charge of an idle window that is larger than usual.
    var charge: Claim?

    init(_ byteCount: Int) { (self.byteCount, idle) = (byteCount, byteCount) }
  }

  /// Notes that the client has changed the window of every stream, because the worker announced another first window.
  func shiftWindow(by byteCount: Int) {
    window.byteCount += byteCount
    if window.charge == nil { window.idle += byteCount }
    if let context { adjustWindow(context) }
  }

  /// Lets the client send the rest of a charged message, or the beginning of the next one.
  func adjustWindow(_ context: ChannelHandlerContext) {
    guard !isOver, clientEnd == .none, waitingID == nil, !isResting, ready.isEmpty else { return }
    let rest = assembler.missingByteCount
    if rest > 0 {
      if window.byteCount < rest { openWindow(to: rest + window.idle, context) }
    } else if window.byteCount < window.idle / 2 {
      widen()
      openWindow(to: window.idle, context)
    }
  }

  /// Enlarges the window of a stream with several messages, so that it need not wait at the beginning of each.
  private func widen() {
    let limits = connection.limits
    let surplus = limits.windowByteCount - limits.streamWindowByteCount
    guard window.charge == nil, surplus > 0, let charge = limits.messages.openWindow(surplus) else { return }
    window.charge = charge
    window.idle = limits.windowByteCount
  }

  private func openWindow(to byteCount: Int, _ context: ChannelHandlerContext) {
    let missing = byteCount - window.byteCount
    if window.withheld < missing {
      // `SentFrames` withholds it meanwhile, unless the stream is closing.
      context.writeAndFlush(
        wrapOutboundOut(.windowUpdate(windowSizeIncrement: missing - window.withheld)), promise: nil)
    }
    guard window.withheld >= missing else { return }
    window.withheld -= missing
    window.byteCount = byteCount
    if !connection.isOver { connection.write { $0.writeWindowUpdate(missing, stream: stream) } }
  }
}

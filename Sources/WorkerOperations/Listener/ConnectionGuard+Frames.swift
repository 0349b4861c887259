internal import NIOCore
internal import NIOHTTP2

/// The outcome of each frame of a client.
extension ConnectionGuard {
  enum Judgement { case forward, drop, handle }

  /// The size in bytes below which the data of ended calls costs more to read than to transfer.
  private static var minDataByteCount: Int { 256 }

  func judge(_ header: FrameHeader, _ reader: inout ReceivedRuns, _ context: ChannelHandlerContext) -> Judgement {
    // The HTTP/2 handler rejects frames with a wrong size or in a wrong place.
    if headers?.takes(header) == true { return .handle }
    if let frames = headers?.flush() {
      headers = nil
      forward(&reader, context)
      if frames.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(frames)) }
      return .forward
    }
    if header.length > limits.maxFrameByteCount { return .forward }
    switch header.kind {
    case .headers:
      noteHeaders(header)
      return .forward
    case .ping: return header.length == 8 && header.stream == 0 ? .handle : .forward
    case .priority: return header.length == 5 && header.stream > 0 ? .handle : .forward
    case .reset: return header.length == 4 && header.stream > 0 && header.stream <= lastStream ? .handle : .forward
    case .settings:
      noteHandshake()
      guard header.flags & FrameHeader.acknowledged != 0 else {
        return header.length.isMultiple(of: FrameHeader.settingByteCount) && header.stream == 0 ? .handle : .forward
      }
      count(.controls)
      return judgeAcknowledgement(&reader, context)
    case .data:
      guard header.stream > 0, header.stream <= lastStream else { return .forward }
      return judgeData(header, &reader, context)
    case .windowUpdate:
      count(.controls)
      guard header.length == 4, header.stream > 0, header.stream <= lastStream else { return .forward }
      // The frame may belong to a call whose beginning is not forwarded yet.
      if requests[header.stream] == nil { forward(&reader, context) }
      return requests[header.stream] == nil ? .handle : .forward
    case .goAway, .pushPromise, nil:
      count(.controls)
      return header.kind == nil ? .drop : .forward
    case .continuation: return .forward
    }
  }

  private func noteHeaders(_ header: FrameHeader) {
    if header.flags & FrameHeader.endHeaders == 0 {
      headers = HeaderContinuation(stream: header.stream, maxFrameByteCount: limits.maxFrameByteCount)
    }
    lastStream = max(lastStream, header.stream)
    if header.flags & FrameHeader.endStream != 0 { requests[header.stream]?.messages.noteEndArrived() }
  }

  /// Judges an acknowledgement of settings; the HTTP/2 handler knows only of those that it has sent.
  private func judgeAcknowledgement(_ reader: inout ReceivedRuns, _ context: ChannelHandlerContext) -> Judgement {
    // The windows of calls that have begun before change, too.
    forward(&reader, context)
    guard let change = firstWindow.acknowledge() else { return .forward }
    for request in requests.values { request.messages.shiftWindow(by: change) }
    return .drop
  }

  private func judgeData(_ header: FrameHeader, _ reader: inout ReceivedRuns, _ context: ChannelHandlerContext)
    -> Judgement
  {
    if requests[header.stream] == nil { forward(&reader, context) }
    let isEnd = header.flags & FrameHeader.endStream != 0
    if let request = requests[header.stream] {
      if isEnd { request.messages.noteEndArrived() }
      return .forward
    }
    let isAnswered = ended.contains(header.stream)
    if isAnswered || header.length < Self.minDataByteCount { guard count(.controls) else { return .drop } }
    dropped += header.length
    if isAnswered {
      write { $0.writeReset(.streamClosed, stream: header.stream) }
    } else if isEnd {
      noteEnded(header.stream)
    }
    return .drop
  }

  func handle(_ header: FrameHeader, _ bytes: ByteBuffer, _ payload: Int, _ context: ChannelHandlerContext) {
    switch header.kind {
    case .continuation: take(bytes.getSlice(at: payload, length: header.length), flags: header.flags, context)
    case .ping: handlePing(header, bytes.getInteger(at: payload, as: UInt64.self) ?? 0)
    case .reset:
      let request = requests[header.stream]
      let isEarly = request.map { $0.age < limits.minCallTime } ?? true
      if isEarly { guard count(.resets) else { return } }
      guard let request else {
        count(.controls)
        return
      }
      if isEarly { _ = allowances.earlyResets.take(now: .now()) }
      let isWritable = context.channel.isWritable
      request.clientReset(code: bytes.getInteger(at: payload, as: UInt32.self) ?? 0, closesStream: isWritable)
      // Until the connection can be written to, the HTTP/2 handler would keep the end of the stream from this side, and
      // count the stream among those that are open.
      if !isWritable, !isOver { forward(header, bytes, payload, context) }
    case .priority:
      count(.controls)
      let dependency = bytes.getInteger(at: payload, as: UInt32.self).map { $0 & FrameHeader.lastStream }
      guard dependency == header.stream, !isOver else { return }
      // The HTTP/2 handler refuses it.
      forward(header, bytes, payload, context)
    case .settings:
      // The HTTP/2 handler looks at all streams for each.
      guard header.length <= 64 * FrameHeader.settingByteCount else { return cut("too_many_settings") }
      if count(.settings) { forwardSettings(header, bytes, payload, context) }
    case .windowUpdate:
      // The call has ended, which the client may not know; an increment of 0 is an error anyway.
      let increment = bytes.getInteger(at: payload, as: UInt32.self).map { $0 & FrameHeader.lastStream }
      if increment == 0 { write { $0.writeReset(.protocolError, stream: header.stream) } }
    case .data, .headers, .pushPromise, .goAway, nil: break
    }
  }

  private func forward(_ header: FrameHeader, _ bytes: ByteBuffer, _ payload: Int, _ context: ChannelHandlerContext) {
    let start = payload - FrameHeader.byteCount
    guard let frame = bytes.getSlice(at: start, length: FrameHeader.byteCount + header.length) else { return }
    context.fireChannelRead(wrapInboundOut(frame))
  }

  /// Forwards settings, with a table of headers that is no larger than the usual one.
  ///
  /// The HTTP/2 handler would keep as many headers of responses as the client allows, 4 GiB, and compare each header with
  /// all of them. A sender may always use less (RFC 7541, section 4.2).
  private func forwardSettings(
    _ header: FrameHeader, _ bytes: ByteBuffer, _ payload: Int, _ context: ChannelHandlerContext
  ) {
    var bytes = bytes
    for index in stride(from: payload, to: payload + header.length, by: FrameHeader.settingByteCount)
    where bytes.getInteger(at: index, as: UInt16.self) == FrameHeader.headerTableSetting {
      let byteCount = bytes.getInteger(at: index + 2, as: UInt32.self) ?? 0
      bytes.setInteger(min(byteCount, FrameHeader.maxHeaderTableByteCount), at: index + 2)
    }
    forward(header, bytes, payload, context)
  }

  private func handlePing(_ header: FrameHeader, _ data: UInt64) {
    if header.flags & FrameHeader.acknowledged != 0 {
      count(.controls)
      if case .begun(data, _) = drain { settleDrain() }
    } else if count(.pings) {
      write { $0.writePing(data, isAnswer: true) }
    }
  }

  /// Counts a frame that carries no call, and closes the connection if there are too many; returns whether it goes on.
  @discardableResult private func count(_ kind: FrameAllowances.Kind) -> Bool {
    if allowances.take(kind) { return true }
    cut(kind.rawValue)
    return false
  }
}

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

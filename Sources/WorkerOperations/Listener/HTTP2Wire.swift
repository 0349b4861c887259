internal import NIOCore
internal import NIOHTTP2

/// The header of an HTTP/2 frame.
///
/// The extension of `ByteBuffer` writes the frames that the guard sends itself.
///
/// Source: RFC 9113, sections 4.1 and 6.
struct FrameHeader: Equatable {
  static let byteCount = 9
  /// Size in bytes of the client's connection preface, `PRI * HTTP/2.0` and the lines after it.
  static let prefaceByteCount = 24
  /// The maximum stream identifier.
  static let lastStream: UInt32 = 0x7fff_ffff

  enum Kind: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goAway, windowUpdate, continuation
  }

  /// Size in bytes of one setting: its identifier and its value.
  static let settingByteCount = 6
  /// The identifier of the setting of the table of headers, and its initial value in bytes.
  static let (headerTableSetting, maxHeaderTableByteCount): (UInt16, UInt32) = (1, 4096)

  static let acknowledged: UInt8 = 0x1
  static let endStream: UInt8 = 0x1
  static let endHeaders: UInt8 = 0x4
  static let padded: UInt8 = 0x8
  /// The maximum of padding in bytes, and more than what precedes it.
  static let maxPaddingByteCount = 256

  var length: Int
  var type: UInt8
  var flags: UInt8
  var stream: UInt32

  /// The frame type; `nil` for an extension frame.
  var kind: Kind? { Kind(rawValue: type) }

  /// Whether a frame of data ends with padding.
  var isPadded: Bool { flags & Self.padded != 0 }

  init(length: Int, kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0) {
    self.length = length
    type = kind.rawValue
    self.flags = flags
    self.stream = stream
  }

  /// Reads a header at `index`; `nil` if fewer than nine bytes are available.
  init?(_ bytes: ByteBuffer, at index: Int) {
    guard let first = bytes.getInteger(at: index, as: UInt32.self),
      let flags = bytes.getInteger(at: index + 4, as: UInt8.self),
      let stream = bytes.getInteger(at: index + 5, as: UInt32.self)
    else { return nil }
    length = Int(first >> 8)
    type = UInt8(truncatingIfNeeded: first)
    self.flags = flags
    self.stream = stream & Self.lastStream
  }
}

extension ByteBuffer {
  mutating func write(_ header: FrameHeader) {
    writeInteger(UInt32(header.length) << 8 | UInt32(header.type))
    writeInteger(header.flags)
    writeInteger(header.stream)
  }

  mutating func writePing(_ data: UInt64, isAnswer: Bool) {
    write(FrameHeader(length: 8, kind: .ping, flags: isAnswer ? FrameHeader.acknowledged : 0))
    writeInteger(data)
  }

  /// Writes a GOAWAY frame; `code` is 0 for no error or 11 for ENHANCE_YOUR_CALM.
  mutating func writeGoAway(lastStream: UInt32, code: UInt32, reason: String = "") {
    write(FrameHeader(length: 8 + reason.utf8.count, kind: .goAway))
    writeInteger(lastStream)
    writeInteger(code)
    writeString(reason)
  }

  /// Writes a RST_STREAM frame.
  mutating func writeReset(_ code: HTTP2ErrorCode, stream: UInt32) {
    write(FrameHeader(length: 4, kind: .reset, stream: stream))
    writeInteger(UInt32(code.networkCode))
  }

  /// Writes a SETTINGS frame with the window of streams that begin, in bytes.
  mutating func writeFirstWindow(_ byteCount: Int) {
    write(FrameHeader(length: 6, kind: .settings))
    writeInteger(UInt16(4))
    writeInteger(UInt32(byteCount))
  }

  /// Writes a WINDOW_UPDATE that lets the peer send `byteCount` more bytes on a stream, or on the connection.
  mutating func writeWindowUpdate(_ byteCount: Int, stream: UInt32 = 0) {
    write(FrameHeader(length: 4, kind: .windowUpdate, stream: stream))
    writeInteger(UInt32(byteCount))
  }
}

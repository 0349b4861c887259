internal import ImagePipeline
internal import WorkerIsolation

/// The output of one request, which is sent in parts if it does not fit.
struct HelperOutput {
  /// The number of bytes that are worth a response, which costs two changes of processes.
  ///
  /// With 64 KiB, a result of 1.2 MB needed 19 responses.
  private static let sentByteCount = 256 * 1024

  private let connection: HelperConnection
  /// The response with the output that was not sent in parts.
  private(set) var response: HelperResponse
  private var byteCount = 0

  /// - `response`: what precedes the output.
  init(_ connection: HelperConnection, following response: HelperResponse) {
    self.connection = connection
    self.response = response
  }

  /// Whether there is so much output that its receiver should not wait for more.
  var isWorthSending: Bool { byteCount >= Self.sentByteCount }

  mutating func append(_ bytes: RawSpan, of rendition: Int) {
    var rest = bytes
    while !rest.isEmpty {
      let copied = connection.write(rest, at: byteCount)
      if copied == 0 {
        sendPart()
        continue
      }
      note(copied, of: rendition)
      rest = rest.extracting(droppingFirst: copied)
    }
  }

  private mutating func note(_ copied: Int, of rendition: Int) {
    byteCount += copied
    if response.segments.last?.rendition == rendition {
      response.segments[response.segments.count - 1].byteCount += copied
    } else {
      response.segments.append(HelperResponse.Segment(rendition: rendition, byteCount: copied))
    }
  }

  /// Sends a full output and waits until the worker has copied it.
  private mutating func sendPart() {
    response.isPartial = true
    connection.send(response.bytes)
    _ = connection.receive(idle: {})
    (response, byteCount) = (HelperResponse(), 0)
  }
}

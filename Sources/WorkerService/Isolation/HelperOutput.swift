internal import ImagePipeline
internal import WorkerIsolation

/// The output of one request, which is sent in parts if it does not fit.
struct HelperOutput {
  private let connection: HelperConnection
  private var segments: [HelperResponse.Segment] = []
  private var byteCount = 0
  private var hasSentPart = false

  init(_ connection: HelperConnection) { self.connection = connection }

  /// - `head`: what the first part of the response begins with.
  mutating func append(_ bytes: RawSpan, of rendition: Int, head: @autoclosure () -> WorkResponse) {
    var rest = bytes
    while !rest.isEmpty {
      let copied = connection.write(rest, at: byteCount)
      if copied == 0 {
        sendPart(head())
        continue
      }
      note(copied, of: rendition)
      rest = rest.extracting(droppingFirst: copied)
    }
  }

  private mutating func note(_ copied: Int, of rendition: Int) {
    byteCount += copied
    if segments.last?.rendition == rendition {
      segments[segments.count - 1].byteCount += copied
    } else {
      segments.append(HelperResponse.Segment(rendition: rendition, byteCount: copied))
    }
  }

  /// Sends a full output and waits until the worker has copied it.
  private mutating func sendPart(_ head: WorkResponse) {
    var part = HelperResponse()
    part.isPartial = true
    finish(&part, head)
    part.work.ends = []
    connection.send(part.bytes)
    _ = connection.receive(idle: {})
    (byteCount, hasSentPart) = (0, true)
  }

  /// Completes a response with the output that was not sent in parts.
  mutating func finish(_ response: inout HelperResponse, _ work: WorkResponse) {
    response.work = work
    if hasSentPart { (response.work.plan, response.work.isStarted) = (nil, false) }
    response.segments = segments
    segments = []
  }
}

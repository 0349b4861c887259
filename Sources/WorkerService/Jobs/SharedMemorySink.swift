/// Writes the bytes of results that have shared memory into it, and forwards everything else.
///
/// A header waits for the first bytes if these follow it immediately, so that the next sink sees the parts that it is left with
/// as they are available.
final class SharedMemorySink: ResultSink {
  private let next: any ResultSink
  /// The headers that wait, by rendition id.
  private var headers: [String: ResultPart] = [:]

  init(_ next: any ResultSink) { self.next = next }

  /// - Throws: The error of the memory of the only result; that of one of several is sent in place of its report.
  func send(_ part: ResultPart) async throws {
    let rendition = part.rendition
    guard let memory = rendition.memory else { return try await next.send(part) }
    switch part.content {
    case .header where part.isMoreReady: headers[rendition.id] = part
    case .header: try await next.send(part)
    case .chunk(let bytes):
      do { try memory.write(bytes) } catch { if rendition.index == nil { throw error } }
      try await sendHeader(of: rendition, isMoreReady: part.isMoreReady)
    case .report, .failure:
      try await sendHeader(of: rendition, isMoreReady: true)
      guard case .report = part.content, let error = memory.failure else { return try await next.send(part) }
      let failure = ResultPart(.failure(rendition.error(error)), of: rendition, isMoreReady: part.isMoreReady)
      try await next.send(failure)
    }
  }

  private func sendHeader(of rendition: Rendition, isMoreReady: Bool) async throws {
    guard let header = headers.removeValue(forKey: rendition.id) else { return }
    try await next.send(ResultPart(header.content, of: rendition, isMoreReady: isMoreReady))
  }
}

import ImagePipeline
import WorkerIsolation

@testable import WorkerService

/// The answers of a helper that a hostile image has taken over.
///
/// From this image on, `image-worker fault: hostile ACT SEED`, the helper works on images as before, but each of its
/// answers is an act of hostility.
struct HostileHelper {
  /// An answer that no honest helper gives, or the lack of one.
  enum Act: String, CaseIterable {
    /// A plan without renditions.
    case unplanned
    /// A valid message with other values.
    case altered
    /// A message with other bytes.
    case garbled
    /// The answer twice, so that the next request has one before it was sent.
    case repeated
    /// Messages without end that nobody waits for.
    case flooding
    /// Responses without end that are not the last ones, and have no output.
    case emptyParts
    /// Responses without end that are not the last ones, and have output.
    case parts
    /// Requests for files without end, none of which is received.
    case files
    /// Requests for files of more than the image can need.
    case largeFiles
    /// No answer, and the flag that cancels the work is overwritten.
    case deaf
    /// No answer, and no use of the CPU.
    case silent
    /// The end of the channel, but not of the process.
    case hungUp
    /// The end of the process.
    case exited
  }

  static let name = "hostile"

  /// The act of every answer; `nil` for random ones, of which some are honest answers.
  private let act: Act?
  private var generator: Generator

  init?(_ bytes: RawSpan) {
    let words = HelperFault.line(bytes)?.split(separator: " ") ?? []
    guard words.count == 3, words[0] == Self.name, let seed = UInt64(words[2]) else { return nil }
    act = Act(rawValue: String(words[1]))
    generator = Generator(state: seed)
  }

  /// Sends an answer, or what is sent instead of it.
  mutating func answer(_ response: HelperResponse, on connection: HelperConnection) {
    let random = Int.random(in: 0..<3, using: &generator) == 0 ? Act.allCases.randomElement(using: &generator) : nil
    switch act ?? random {
    case nil: connection.send(response.bytes)
    case .unplanned:
      var response = response
      response.work.plan = PlannedImage(renditions: [], workingSetByteCount: 1, reservedByteCount: 2)
      connection.send(response.bytes)
    case .altered: connection.send(altered(response).bytes)
    case .garbled: connection.send(garbled(response.bytes))
    case .repeated: for _ in 0..<2 { connection.send(response.bytes) }
    case .flooding: while true { connection.send(altered(response).bytes) }
    case .emptyParts: sendParts(byteCount: 0, on: connection)
    case .parts: sendParts(byteCount: HelperLayout.outputByteCount, on: connection)
    case .files: while true { _ = connection.requestFile(byteCount: 0, isReceived: false) }
    case .largeFiles:
      for shift in 20..<63 { _ = connection.requestFile(byteCount: 1 << UInt64(shift), isReceived: true) }
      connection.send(response.bytes)
    case .deaf:
      while true {
        connection.overwriteCancellation(0)
        HelperConnection.pause(milliseconds: 10)
      }
    case .silent: HelperConnection.wait()
    case .hungUp:
      connection.hangUp()
      HelperConnection.wait()
    case .exited: HelperConnection.exit()
    }
  }

  private func sendParts(byteCount: Int, on connection: HelperConnection) {
    var part = HelperResponse()
    part.isPartial = true
    if byteCount > 0 { part.segments = [HelperResponse.Segment(rendition: 0, byteCount: byteCount)] }
    while true {
      connection.send(part.bytes)
      HelperConnection.pause(milliseconds: 5)
    }
  }

  private mutating func garbled(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
    }
    return Array(bytes.prefix(Int.random(in: 1...bytes.count, using: &generator)))
  }

  // MARK: Other values

  private mutating func number() -> Int {
    [0, 1, 2, 255, 4096, 1 << 20, 1 << 40, 1 << 50].randomElement(using: &generator) ?? 0
  }

  private mutating func altered(_ response: HelperResponse) -> HelperResponse {
    var response = response
    for _ in 0..<Int.random(in: 1...3, using: &generator) { alter(&response) }
    return response
  }

  private mutating func alter(_ response: inout HelperResponse) {
    let info = ImageInfo(
      format: ["jpeg", "png", "b/../../a", ""].randomElement(using: &generator) ?? "",
      size: PixelSize(width: number() % (1 << 31), height: number() % (1 << 31)), orientation: number() % 256,
      hasAlpha: true, bitDepth: 8, colorSpace: "\u{1B}[31m", frameCount: number() % 256)
    switch Int.random(in: 0..<13, using: &generator) {
    case 0: response.isPartial.toggle()
    case 1: response.work.isStarted.toggle()
    case 2: response.work.isPaused.toggle()
    case 3: response.work.consumedByteCount = number()
    case 4: response.work.bufferedByteCount = number()
    case 5: response.work.plan = nil
    case 6:
      let result = PlannedResult(
        input: info, output: info, decodedByteCount: 1, warnings: [Warning(nil, "\u{1B}")])
      response.work.plan = PlannedImage(
        renditions: Array(repeating: .success(result), count: number() % 20), workingSetByteCount: UInt64(number()),
        reservedByteCount: UInt64(number()))
    case 7: response.segments.append(HelperResponse.Segment(rendition: number(), byteCount: number()))
    case 8: response.segments = []
    case 9: response.work.ends += response.work.ends + [(number(), .failure(.cancelled))]
    case 10: response.work.ends = []
    case 11:
      let code = PipelineError.Code.allCases.randomElement(using: &generator) ?? .cancelled
      response.error = response.error == nil ? PipelineError(code, "\u{1B}[31m", field: "a\nb") : nil
    default:
      let report = ProcessingReport(
        input: info, output: info, inputByteCount: 1, outputByteCount: UInt64(number()), timings: StageTimings(),
        peakMemoryByteCount: UInt64(number()), warnings: [Warning(nil, "\u{1B}")],
        compressionQuality: .nan)
      response.work.ends.append((0, .success(report)))
    }
  }

  /// SplitMix64, so that a seed gives the same acts on every system.
  private struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
      mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
      return mixed ^ mixed >> 31
    }
  }
}

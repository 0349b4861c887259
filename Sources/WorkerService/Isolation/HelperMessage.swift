internal import ImagePipeline
internal import ProtobufWire
internal import WorkerIsolation

/// A request of the worker to a helper.
enum HelperRequest {
  /// The information about a new image.
  struct ImageStart {
    var limits: ImageLimits
    /// Whether responses contain the image's spans.
    var recordsSpans = true
  }

  /// A request for the work on an image.
  struct Work {
    var request: WorkRequest
    /// The next bytes of the image in the shared input.
    var input: Range<Int>
    /// Whether no bytes follow.
    var isLast: Bool
    /// Begins a new image, which replaces the last one; `nil` for the current image.
    var start: ImageStart?
  }

  /// A part of an image for overlays.
  struct Auxiliary {
    var name: String
    /// The next bytes of its file in the shared input.
    var input: Range<Int>
    /// Whether no bytes follow.
    var isLast: Bool
    /// See `Work.start`.
    var start: ImageStart?
  }

  case work(Work)
  /// Keep bytes of an image for overlays; the response is empty.
  case auxiliary(Auxiliary)
  /// Continue after a response that is not the last one.
  case proceed
  /// Abandon the image.
  case abandon
}

struct HelperResponse {
  /// Compressed bytes in the output, one after the other.
  struct Segment: Equatable {
    var rendition: Int
    var byteCount: Int
  }

  /// Whether more responses to the same request follow after `proceed`.
  var isPartial = false
  /// The error that ended the image.
  var error: PipelineError?
  var work = WorkResponse()
  var segments: [Segment] = []
  /// The spans that have ended with this request.
  var spans: [RecordedSpan] = []
  /// The defenses that the helper lacks; only in response to `abandon`.
  var missingDefenses = MissingDefenses(rawValue: 0)  // an array literal is slow: its conversion is not inlined
}

extension HelperResponse {
  /// Whether the response contains nothing about the image.
  var isEmpty: Bool {
    !isPartial && error == nil && segments.isEmpty && spans.isEmpty && work.plan == nil && work.ends.isEmpty
      && !work.isStarted && !work.isPaused && work.consumedByteCount == 0 && work.bufferedByteCount == 0
  }

  /// Adds the next response to the same request, without its output.
  mutating func append(_ next: HelperResponse) {
    let (isStarted, plan) = (work.isStarted, work.plan)
    self = next
    work.isStarted = isStarted || next.work.isStarted
    work.plan = plan ?? next.work.plan
  }
}

/// The fields of one message that a helper or the worker has sent.
///
/// Missing and invalid fields have the value 0 or are empty: every value is checked where it is used.
struct WireMessage {
  /// The maximum number of fields of one message.
  private static let maxFieldCount = 4096

  private let bytes: [UInt8]
  private let fields: [WireField]

  /// Reads a message; returns `nil` if the bytes are no message.
  init?(_ bytes: [UInt8]) {
    do {
      fields = try WireReader.fields(of: bytes.span.bytes, in: 0..<bytes.count, maxCount: Self.maxFieldCount)
    } catch { return nil }
    self.bytes = bytes
  }

  func has(_ number: Int32) -> Bool { fields.contains { $0.number == number } }

  func integer(_ number: Int32) -> UInt64 {
    guard let field = fields.last(where: { $0.number == number }) else { return 0 }
    switch field.type {
    case .varint:
      do { return try WireReader.varint(field, of: bytes.span.bytes) } catch { return 0 }
    case .fixed64: return bytes[field.value].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    case .fixed32, .lengthDelimited: return 0
    }
  }

  /// A count, at most 2^50, so that sums do not overflow.
  func count(_ number: Int32) -> Int { Int(min(integer(number), 1 << 50)) }
  func flag(_ number: Int32) -> Bool { integer(number) != 0 }

  /// The contents of every length-delimited field with this number.
  func all(_ number: Int32) -> [[UInt8]] {
    fields.filter { $0.number == number && $0.type == .lengthDelimited }.map { Array(bytes[$0.value]) }
  }

  func texts(_ number: Int32) -> [String] { all(number).map { String(decoding: $0, as: UTF8.self) } }
  func text(_ number: Int32) -> String? { texts(number).last }
  func messages(_ number: Int32) -> [WireMessage] { all(number).compactMap { WireMessage($0) } }
  func message(_ number: Int32) -> WireMessage? { all(number).last.flatMap { WireMessage($0) } }
}

internal import ImagePipeline
internal import ProtobufWire
internal import WorkerIsolation

/// A request of the worker to a helper, about the image that the helper works on.
enum HelperRequest {
  /// What a helper learns of a new image.
  struct ImageStart {
    var limits: ImageLimits
    /// Whether responses contain the image's spans.
    var recordsSpans = true
  }

  /// Work that a helper does as soon as it has read an image's header, so that small images need no further request.
  struct Planning: Equatable {
    /// The configurations to plan.
    var configurations: [ProcessingConfiguration]
    /// The number of the image's bytes that follow those of the request.
    var beyondByteCount: UInt64 = 0
    /// The memory in bytes with which the image is started too if its plan needs no more; 0 if it must not be started.
    var admittedByteCount: UInt64 = 0
    var renditionIDs: [String] = []
  }

  /// Read the header from the next `byteCount` bytes of the input.
  ///
  /// - `start`: begins a new image, which replaces the last one; `nil` for the current image.
  /// - `planning`: what follows when the header is complete; `nil` if that is not known.
  case readHeader(byteCount: Int, isLast: Bool, start: ImageStart?, planning: Planning?)
  case plan([ProcessingConfiguration], followingByteCount: UInt64?)
  case planPreview(ProcessingConfiguration, maxSide: Int)
  /// Start, and process the next bytes as `advance` does if there are any.
  case start(renditionIDs: [String], offset: Int, byteCount: Int, isLast: Bool)
  /// Process the bytes of the input from `offset`, until enough output is waiting.
  case advance(offset: Int, byteCount: Int, isLast: Bool)
  /// Process all of the next bytes.
  case push(byteCount: Int, isLast: Bool)
  /// Continue after a response that is not the last one.
  case proceed
  /// Abandon the image.
  case abandon
}

/// A response of a helper.
struct HelperResponse {
  /// Compressed bytes in the output, one after the other.
  struct Segment: Equatable {
    var rendition: Int
    var byteCount: Int
  }

  /// Whether more responses to the same request follow after `proceed`.
  var isPartial = false
  /// Whether the image was started before an error of the same request.
  var isStarted = false
  /// The error that ended the image.
  var error: PipelineError?
  /// The number of consumed bytes; `nil` if the header needs more.
  var consumedByteCount: Int?
  /// The number of bytes behind the header that were consumed with the same request; `nil` if that did not start the
  /// image.
  var advancedByteCount: Int?
  /// The number of bytes that the reader has buffered.
  var bufferedByteCount = 0
  var isPaused = false
  var plan: PlannedImage?
  var segments: [Segment] = []
  /// The outcomes of renditions that have ended with this request, by index.
  var outcomes: [(index: Int, outcome: Result<ProcessingReport, PipelineError>)] = []
  /// The spans that have ended with this request.
  var spans: [RecordedSpan] = []
  /// The defenses that the helper lacks; only in response to `abandon`.
  var missingDefenses = MissingDefenses(rawValue: 0)  // an array literal is slow: its conversion is not inlined
  /// The refused attempts of a helper in test mode; empty otherwise.
  var attempts: [String: Int32] = [:]
}

extension HelperResponse {
  /// Adds the next response to the same request, without its output.
  mutating func append(_ next: HelperResponse) {
    let (isStarted, plan, consumed) = (isStarted, plan, consumedByteCount)
    let bufferedByteCount = bufferedByteCount
    self = next
    self.isStarted = isStarted || next.isStarted
    self.plan = plan ?? next.plan
    consumedByteCount = next.consumedByteCount ?? consumed
    self.bufferedByteCount = max(bufferedByteCount, next.bufferedByteCount)
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

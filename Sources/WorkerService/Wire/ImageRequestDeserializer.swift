package import FoundationEssentials
package import GRPCCore
internal import GRPCProtobuf
internal import ImagePipeline
package import ProtobufWire
package import SwiftProtobuf
package import WorkerProtocol

/// A request with an image, or a part of one, that is taken where it was received.
package protocol ImageRequest: Message, Sendable {
  /// The fields that contain images, by their numbers.
  static var imageFields: [Int32: ImageField] { get }

  /// The message, with its images lent by `lend` and all else read as usual.
  ///
  /// - `fields`: the message's fields in `bytes`.
  /// - Throws: the reason why the message cannot be read so.
  static func read(_ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data) throws -> Self
}

/// The contents of a field with images.
package indirect enum ImageField: Sendable {
  /// Images.
  case images
  /// A message with these fields.
  case message([Int32: ImageField])

  /// An auxiliary image, whose name counts.
  static let auxiliary = ImageField.message([2: .images])
}

/// Reads requests without copying the images in them.
///
/// A request as the deserializer of SwiftProtobuf gives it, but `bytes` fields of images keep the received message, which
/// is charged to the memory budget, and point into it. A message in which that is not possible is refused, unless it is
/// small: its copy would not be charged.
package struct ImageRequestDeserializer<Request: ImageRequest>: MessageDeserializer {
  package init() {}

  /// - Throws: INVALID_ARGUMENT for a damaged message; FAILED_PRECONDITION above the limit of ``RequestLimit``.
  package func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Request {
    let usual = RequestDeserializer<Request>()
    guard bytes.count >= ReceivedBytes<Bytes>.minLentByteCount else { return try usual.deserialize(bytes) }
    let received = ReceivedBytes(bytes)
    let request: Request? = try bytes.withUnsafeBytes { bytes in
      try RequestLimit.check(bytes.bytes, Request.imageFields)
      guard received.isFixed(at: bytes) else { return nil }
      do {
        let fields = try fields(of: bytes.bytes, in: 0..<bytes.count)
        return try Request.read(fields, of: bytes.bytes) { received.lend($0, of: bytes) }
      } catch { throw usual.undecodable(error) }
    }
    return try request ?? usual.deserialize(bytes)
  }
}

/// Reads requests as the deserializer of SwiftProtobuf, except for the error of a damaged one.
struct RequestDeserializer<Request: Message>: MessageDeserializer {
  /// - Throws: INVALID_ARGUMENT with the message's name in the contract.
  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Request {
    do { return try ProtobufDeserializer().deserialize(bytes) } catch { throw undecodable(error) }
  }

  fileprivate func undecodable(_ error: any Error) -> any Error {
    let reason = (error as? UnusualMessage).map { ": \($0.rawValue)" } ?? ""
    return WireError.status(
      any: PipelineError(.invalidField, "the message cannot be decoded as \(Request.protoMessageName)\(reason)"))
  }
}

/// The limit on what a request contains besides its images.
///
/// A request is read on an event loop, and a name in it is hashed, which takes a third of a microsecond for each of its bytes.
package enum RequestLimit {
  /// In bytes; 16 renditions with eight texts each have less.
  package static let maxOtherByteCount = 256 * 1024

  fileprivate static func check(_ bytes: RawSpan, _ images: [Int32: ImageField]) throws {
    guard bytes.byteCount > maxOtherByteCount else { return }
    let count = otherByteCount(of: bytes, in: 0..<bytes.byteCount, images)
    guard count > maxOtherByteCount else { return }
    throw WireError.status(
      any: PipelineError(
        .limitExceeded,
        "the request has \(count) bytes or more besides its images; at most \(maxOtherByteCount) are accepted",
        limit: .init(name: "request_bytes_besides_images", limit: UInt64(maxOtherByteCount), value: UInt64(count))))
  }

  /// Counts the bytes that are not in images; beyond the limit, not all of them.
  ///
  /// Bytes that cannot be read count, too, as SwiftProtobuf may read them.
  private static func otherByteCount(of bytes: RawSpan, in range: Range<Int>, _ images: [Int32: ImageField]) -> Int {
    var reader = WireReader(range)
    var (count, end) = (0, range.lowerBound)
    while count <= maxOtherByteCount, let field = try? reader.next(of: bytes) {
      end = field.range.upperBound
      switch field.type == .lengthDelimited ? images[field.number] : nil {
      case .images: break
      case .message(let inner): count += otherByteCount(of: bytes, in: field.value, inner)
      case nil: count += field.range.count
      }
    }
    return count + range.upperBound - end
  }
}

/// The bytes of a received message, which nobody writes to any more.
///
/// Unchecked, because deserializers are not told that transports' bytes are Sendable, though transports are bound to
/// bytes that are.
private final class ReceivedBytes<Bytes: GRPCContiguousBytes>: @unchecked Sendable {
  /// Below it, copying costs less than what keeping the message does.
  static var minLentByteCount: Int { 16 * 1024 }

  private let bytes: Bytes

  init(_ bytes: Bytes) { self.bytes = bytes }

  /// Whether the bytes lie at one address for as long as this lives.
  ///
  /// A transport's bytes could also be brought together anew at each access; those of NIO and arrays are not.
  func isFixed(at known: UnsafeRawBufferPointer) -> Bool {
    bytes.withUnsafeBytes { $0.baseAddress == known.baseAddress && $0.count == known.count }
  }

  /// Returns a part of the bytes, which are at `known`, that keeps this; a copy of few.
  func lend(_ range: Range<Int>, of known: UnsafeRawBufferPointer) -> Data {
    guard range.count >= Self.minLentByteCount, let base = known.baseAddress else { return Data(known[range]) }
    return Data(
      bytesNoCopy: UnsafeMutableRawPointer(mutating: base + range.lowerBound), count: range.count,
      deallocator: .custom { [self] _, _ in withExtendedLifetime(self) {} })
  }
}

/// The reason why a message that is no more damaged than others is not read.
private enum UnusualMessage: String, Error {
  case fields = "it has more than 1024 fields"
  case groups = "it has groups"
  case parts = "it has several parts, or contents"
}

/// The fields of the message at `range` of `bytes`.
/// - Throws: `WireReader.Failure`, or that it has more fields than a client has reason to send.
private func fields(of bytes: RawSpan, in range: Range<Int>) throws -> [WireField] {
  do throws(WireReader.Failure) { return try WireReader.fields(of: bytes, in: range, maxCount: 1024) } catch {
    switch error {
    case .tooManyFields: throw UnusualMessage.fields
    case .group: throw UnusualMessage.groups
    case .truncated, .overlongVarint, .invalidTag: throw error
    }
  }
}

extension [WireField] {
  /// The fields of this number that contain bytes, text or messages.
  fileprivate func contents(of number: Int32) -> [Range<Int>] {
    filter { $0.number == number && $0.type == .lengthDelimited }.map(\.value)
  }
}

// MARK: Requests

/// A message with one image, and images for its overlays.
package protocol SingleImageMessage: Message, Sendable {
  /// The numbers of the fields `image` and `auxiliary_images`.
  static var imageNumbers: (image: Int32, auxiliary: Int32) { get }
  var image: Data { get set }
  var auxiliaryImages: [Imageworker_V1_AuxiliaryImage] { get set }
}

extension SingleImageMessage {
  /// The message with the last of its images, and all images for overlays.
  package static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data
  ) throws -> Self {
    let numbers = imageNumbers
    var message = try Self(serializedBytes: fields.bytes(without: [numbers.image, numbers.auxiliary], of: bytes))
    // The last one counts.
    if let image = fields.contents(of: numbers.image).last { message.image = lend(image) }
    message.auxiliaryImages = try fields.contents(of: numbers.auxiliary).map { range in
      let fields = try WorkerService.fields(of: bytes, in: range)
      var auxiliary = try Imageworker_V1_AuxiliaryImage(serializedBytes: fields.bytes(without: [2], of: bytes))
      if let image = fields.contents(of: 2).last { auxiliary.image = lend(image) }
      return auxiliary
    }
    return message
  }
}

extension Imageworker_V1_ProcessImageRequest: ImageRequest, SingleImageMessage {
  package static var imageNumbers: (image: Int32, auxiliary: Int32) { (1, 6) }
  package static var imageFields: [Int32: ImageField] { [1: .images, 6: .auxiliary] }
}

extension Imageworker_V1_InspectImageRequest: ImageRequest, SingleImageMessage {
  package static var imageNumbers: (image: Int32, auxiliary: Int32) { (1, 4) }
  package static var imageFields: [Int32: ImageField] { [1: .images, 4: .auxiliary] }
}

extension Imageworker_V1_BatchItemStart: SingleImageMessage {
  package static var imageNumbers: (image: Int32, auxiliary: Int32) { (3, 7) }
}

extension Imageworker_V1_BatchProcessRequest: ImageRequest {
  package static var imageFields: [Int32: ImageField] { [2: .message([3: .images, 7: .auxiliary]), 3: .images] }

  /// A start or a chunk is the only part: several would be merged in memory that is not charged.
  package static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data
  ) throws -> Self {
    let (starts, chunks) = (fields.contents(of: 2), fields.contents(of: 3))
    var request = try Self(serializedBytes: fields.bytes(without: [2, 3], of: bytes))
    let otherCount = request.part == nil ? 0 : 1
    guard starts.count + chunks.count + otherCount <= 1 else { throw UnusualMessage.parts }
    if let chunk = chunks.first { request.chunk = lend(chunk) }
    if let start = starts.first {
      request.start = try .read(WorkerService.fields(of: bytes, in: start), of: bytes, lend: lend)
    }
    return request
  }
}

extension Inference_ModelInferRequest: ImageRequest {
  package static var imageFields: [Int32: ImageField] { [5: .message([5: .message([8: .images])]), 7: .images] }

  /// The images are in `raw_input_contents`, or in the contents of inputs, which are lent as a whole.
  package static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data
  ) throws -> Self {
    var message = try Self(serializedBytes: fields.bytes(without: [5, 7], of: bytes))
    message.rawInputContents = fields.contents(of: 7).map(lend)
    message.inputs = try fields.contents(of: 5).map { range in
      let fields = try WorkerService.fields(of: bytes, in: range)
      var input = try InferInputTensor(serializedBytes: fields.bytes(without: [5], of: bytes))
      let places = fields.contents(of: 5)
      guard let place = places.first else { return input }
      guard places.count == 1 else { throw UnusualMessage.parts }
      let (contents, elements) = (lend(place), try WorkerService.fields(of: bytes, in: place))
      input.contents = try Inference_InferTensorContents(serializedBytes: elements.bytes(without: [8], of: bytes))
      input.contents.bytesContents = elements.contents(of: 8).map { element in
        let start = contents.startIndex + element.lowerBound - place.lowerBound
        return contents[start..<start + element.count]
      }
      return input
    }
    return message
  }
}

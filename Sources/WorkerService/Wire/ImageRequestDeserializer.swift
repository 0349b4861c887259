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

  /// The message, with its image lent by `lend` and all else read as usual.
  ///
  /// - `fields`: the message's fields in `bytes`.
  /// - Returns: `nil` where the message must be read as usual.
  static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data?
  ) throws -> Self?
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
/// A request as the deserializer of SwiftProtobuf gives it, but `bytes` fields of images keep the received message and
/// point into it. Whatever is not plain in a message, be it of many fields, or damaged, is left to SwiftProtobuf.
package struct ImageRequestDeserializer<Request: ImageRequest>: MessageDeserializer {
  package init() {}

  /// - Throws: INVALID_ARGUMENT for a damaged message; FAILED_PRECONDITION above the limit of ``RequestLimit``.
  package func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Request {
    let plain = RequestDeserializer<Request>()
    guard bytes.count >= ReceivedBytes<Bytes>.minLentByteCount else { return try plain.deserialize(bytes) }
    let received = ReceivedBytes(bytes)
    let request: Request? = try bytes.withUnsafeBytes { bytes in
      try RequestLimit.check(bytes.bytes, Request.imageFields)
      guard received.isFixed(at: bytes), let fields = plainFields(of: bytes.bytes, in: 0..<bytes.count) else {
        return nil
      }
      return try? Request.read(fields, of: bytes.bytes) { received.lend($0, of: bytes) }
    }
    return try request ?? plain.deserialize(bytes)
  }
}

/// Reads requests as the deserializer of SwiftProtobuf, except for the error of a damaged one.
struct RequestDeserializer<Request: Message>: MessageDeserializer {
  /// - Throws: INVALID_ARGUMENT with the message's name in the contract.
  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Request {
    do { return try ProtobufDeserializer().deserialize(bytes) } catch {
      throw WireError.status(
        any: PipelineError(.invalidField, "the message cannot be decoded as \(Request.protoMessageName)"))
    }
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

  /// Returns a part of the bytes, which are at `known`, that keeps this; `nil` for few.
  func lend(_ range: Range<Int>, of known: UnsafeRawBufferPointer) -> Data? {
    guard range.count >= Self.minLentByteCount, let base = known.baseAddress else { return nil }
    return Data(
      bytesNoCopy: UnsafeMutableRawPointer(mutating: base + range.lowerBound), count: range.count,
      deallocator: .custom { [self] _, _ in withExtendedLifetime(self) {} })
  }
}

/// The fields of the message at `range` of `bytes`; `nil` when it is damaged, or has groups or more fields than a plain
/// message has.
///
/// What has many is left to SwiftProtobuf, which holds nothing for each.
private func plainFields(of bytes: RawSpan, in range: Range<Int>) -> [WireField]? {
  try? WireReader.fields(of: bytes, in: range, maxCount: 32)
}

// MARK: Requests

/// A message with one image.
package protocol SingleImageMessage: Message, Sendable {
  /// The number of the field `image`.
  static var imageNumber: Int32 { get }
  var image: Data { get set }
}

extension SingleImageMessage {
  /// The message, with its image lent; `nil` where it can't be lent.
  package static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data?
  ) throws -> Self? {
    guard let image = fields.soleContents(of: imageNumber).flatMap(lend) else { return nil }
    var message = try Self(serializedBytes: fields.bytes(without: imageNumber, of: bytes))
    message.image = image
    return message
  }
}

extension Imageworker_V1_ProcessImageRequest: ImageRequest, SingleImageMessage {
  package static var imageNumber: Int32 { 1 }
  package static var imageFields: [Int32: ImageField] { [1: .images, 6: .auxiliary] }
}

extension Imageworker_V1_InspectImageRequest: ImageRequest, SingleImageMessage {
  package static var imageNumber: Int32 { 1 }
  package static var imageFields: [Int32: ImageField] { [1: .images, 4: .auxiliary] }
}

extension Imageworker_V1_BatchItemStart: SingleImageMessage {
  package static var imageNumber: Int32 { 3 }
}

extension Imageworker_V1_BatchProcessRequest: ImageRequest {
  package static var imageFields: [Int32: ImageField] { [2: .message([3: .images, 7: .auxiliary]), 3: .images] }

  package static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data?
  ) throws -> Self? {
    // Of several parts the last one counts, and several starts are merged: such messages are not plain.
    let parts = fields.filter { $0.number != 1 }
    guard parts.count == 1, let body = fields.soleContents(of: parts[0].number) else { return nil }
    let part: OneOf_Part?
    switch parts[0].number {
    case 2:
      guard let inner = plainFields(of: bytes, in: body) else { return nil }
      part = try Imageworker_V1_BatchItemStart.read(inner, of: bytes, lend: lend).map(OneOf_Part.start)
    case 3: part = lend(body).map(OneOf_Part.chunk)
    default: part = nil
    }
    guard let part else { return nil }
    var request = try Self(serializedBytes: fields.bytes(without: parts[0].number, of: bytes))
    request.part = part
    return request
  }
}

extension Inference_ModelInferRequest: ImageRequest {
  package static var imageFields: [Int32: ImageField] { [5: .message([5: .images]), 7: .images] }

  /// The images are lent together: in the only element of `raw_input_contents`, or in the contents of the only input.
  package static func read(
    _ fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data?
  ) throws -> Self? {
    guard fields.contains(where: { $0.number == 7 }) else { return try read(contents: fields, of: bytes, lend: lend) }
    guard let images = fields.soleContents(of: 7).flatMap(lend) else { return nil }
    var message = try Self(serializedBytes: fields.bytes(without: 7, of: bytes))
    message.rawInputContents = [images]
    return message
  }

  private static func read(
    contents fields: [WireField], of bytes: RawSpan, lend: (Range<Int>) -> Data?
  ) throws -> Self? {
    guard let body = fields.soleContents(of: 5), let input = plainFields(of: bytes, in: body),
      let place = input.soleContents(of: 5), let contents = lend(place)
    else { return nil }
    let elements = try WireReader.fields(of: bytes, in: place, maxCount: InferenceRequest.maxImageCount)
    guard elements.allSatisfy({ $0.number == 8 && $0.type == .lengthDelimited }) else { return nil }
    var message = try Self(serializedBytes: fields.bytes(without: 5, of: bytes))
    message.inputs = [try InferInputTensor(serializedBytes: input.bytes(without: 5, of: bytes))]
    message.inputs[0].contents.bytesContents = elements.map { element in
      let start = contents.startIndex + element.value.lowerBound - place.lowerBound
      return contents[start..<start + element.value.count]
    }
    return message
  }
}

internal import FoundationEssentials
internal import GRPCCore
internal import ImagePipeline
internal import ProtobufWire
internal import SwiftProtobuf
internal import WorkerProtocol

/// The response of a call of `ModelInfer`, in parts: what precedes the rows of its tensor, and what follows them.
///
/// The rows are written by their images, so that no other copy of them is needed.
struct InferenceResponse {
  private static let rawContentsNumber: Int32 = 6

  private let wire: Inference_ModelInferResponse

  /// - `shape`: that of a row of the tensor.
  init(_ request: InferenceRequest, _ model: InferenceModel, _ shape: TensorShape) {
    let count = Int64(request.images.count)
    wire = .with { wire in
      (wire.modelName, wire.modelVersion, wire.id) = (model.name, InferenceModel.version, request.id)
      wire.outputs = InferenceOutput.allCases.filter(request.outputs.contains).map { output in
        let type = output.type(shape)
        return .with { ($0.name, $0.datatype, $0.shape) = (output.rawValue, type.datatype, [count] + type.shape) }
      }
    }
  }

  /// Returns the message up to the first byte of the first row; without rows, up to the other outputs.
  /// - `rowsByteCount`: the size of all rows; `nil` if the tensor is not returned.
  func head(rowsByteCount: Int?) throws -> [UInt8] {
    var writer = WireWriter()
    writer.append(try wire.serializedBytes())
    if let rowsByteCount { writer.header(Self.rawContentsNumber, byteCount: rowsByteCount) }
    return writer.bytes
  }

  /// Returns the outputs that follow the tensor.
  ///
  /// Their elements for images that lack it are empty, or zero.
  static func tail(_ outcomes: [InferenceOutcome], outputs: Set<InferenceOutput>) -> [UInt8] {
    var writer = WireWriter()
    for output in InferenceOutput.allCases where output != .tensor && outputs.contains(output) {
      writer.data(rawContentsNumber, outcomes.flatMap(output.element))
    }
    return writer.bytes
  }
}

extension InferenceOutput {
  /// The type of the elements, and the shape of what it has for an image.
  /// - `row`: the shape of a row of the tensor.
  func type(_ row: TensorShape) -> (datatype: String, shape: [Int64]) {
    switch self {
    case .tensor: (row.datatype, row.dimensions.map { Int64($0 ?? -1) })
    case .error: ("BYTES", [])
    case .contentBox: ("INT32", [4])
    case .imageSize: ("INT32", [2])
    }
  }

  /// Returns the serialized element of an image.
  fileprivate func element(_ outcome: InferenceOutcome) -> [UInt8] {
    switch (self, outcome) {
    case (.tensor, _):
      return []
    case (.error, _):
      let text = (outcome.error.map(WireError.text(any:)) ?? "").utf8
      return Self.integers([text.count]) + text
    case (.contentBox, .result(let box, _)):
      return Self.integers([box.x, box.y, box.width, box.height])
    case (.imageSize, .result(_, let size)):
      return Self.integers([size.width, size.height])
    case (.contentBox, .failure):
      return Self.integers([0, 0, 0, 0])
    case (.imageSize, .failure):
      return Self.integers([0, 0])
    }
  }

  private static func integers(_ values: [Int]) -> [UInt8] {
    values.flatMap { value in (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
  }
}

/// Sends messages that are serialized already.
struct ResponseMessageSerializer: MessageSerializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ message: ResponseMessage) throws -> Bytes {
    message.serialized { Bytes($0) }
  }
}

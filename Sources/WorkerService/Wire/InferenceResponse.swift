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

  /// - `shape`: that of a row; `nil` if the tensor is not returned.
  init(_ request: InferenceRequest, _ model: InferenceModel, _ shape: TensorShape?) {
    let count = Int64(request.images.count)
    wire = .with { wire in
      (wire.modelName, wire.modelVersion, wire.id) = (model.name, InferenceModel.version, request.id)
      if let shape {
        wire.outputs.append(
          .with { output in
            (output.name, output.datatype) = (InferenceModel.output, shape.datatype)
            output.shape = [count] + shape.dimensions.map { Int64($0 ?? -1) }
          })
      }
      guard request.reportsErrors else { return }
      wire.outputs.append(
        .with { ($0.name, $0.datatype, $0.shape) = (InferenceModel.errors, "BYTES", [count]) })
    }
  }

  /// Returns the message up to the first byte of the first row; without rows, up to the errors.
  /// - `rowsByteCount`: the size of all rows; `nil` if the tensor is not returned.
  func head(rowsByteCount: Int?) throws -> [UInt8] {
    var writer = WireWriter()
    writer.append(try wire.serializedBytes())
    if let rowsByteCount { writer.header(Self.rawContentsNumber, byteCount: rowsByteCount) }
    return writer.bytes
  }

  /// Returns the elements of the output for errors, by the index of the image; empty for those without one.
  static func tail(_ errors: [Int: any Error], rowCount: Int) -> [UInt8] {
    var elements: [UInt8] = []
    for row in 0..<rowCount {
      let text = errors[row].map { Array(WireError.text(any: $0).utf8) } ?? []
      elements += (0..<4).map { UInt8(truncatingIfNeeded: text.count >> (8 * $0)) }
      elements += text
    }
    var writer = WireWriter()
    writer.data(rawContentsNumber, elements)
    return writer.bytes
  }
}

/// Sends messages that are serialized already.
struct ResponseMessageSerializer: MessageSerializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ message: ResponseMessage) throws -> Bytes {
    message.serialized { Bytes($0) }
  }
}

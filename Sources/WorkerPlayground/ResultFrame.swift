internal import FoundationEssentials
internal import GRPCCore
internal import GRPCProtobuf
internal import NIOCore
internal import SwiftProtobuf
internal import WorkerProtocol
internal import WorkerService

/// A part of a response that contains several results: one byte for its kind, four for its length, and its contents.
///
/// Kinds of a preview are lower case.
struct ResultFrame {
  enum Kind: UInt8 {
    /// `ImageInfo` as JSON.
    case header = 0x48  // H
    /// Bytes of the result.
    case chunk = 0x43  // C
    /// `ProcessingReport` as JSON.
    case report = 0x52  // R
    /// An error as JSON; the last part but one.
    case error = 0x45  // E
    /// The spans of the call as JSON; the last part.
    case spans = 0x53  // S
  }

  private static let previewBit: UInt8 = 0x20

  /// The contract's names, and numbers that scripts can calculate with.
  static let jsonOptions: JSONEncodingOptions = {
    var options = JSONEncodingOptions()
    options.preserveProtoFieldNames = true
    options.alwaysPrintInt64sAsNumbers = true
    return options
  }()

  private let kind: UInt8
  private let contents: [UInt8]
  private let chunk: Data

  private init(_ kind: Kind, _ contents: [UInt8] = [], chunk: Data = Data(), isPreview: Bool = false) {
    self.kind = kind.rawValue | (isPreview ? Self.previewBit : 0)
    self.contents = contents
    self.chunk = chunk
  }

  /// The frame of one part of a result; `nil` for a part that pages do not request.
  init?(_ response: Imageworker_V1_ProcessImageResponse) throws {
    let isPreview = response.isPreview
    switch response.part {
    case .header(let info):
      self.init(.header, try info.jsonUTF8Bytes(options: Self.jsonOptions), isPreview: isPreview)
    case .chunk(let bytes): self.init(.chunk, chunk: bytes, isPreview: isPreview)
    case .report(let report):
      self.init(.report, try report.jsonUTF8Bytes(options: Self.jsonOptions), isPreview: isPreview)
    case .error, nil: return nil
    }
  }

  /// The frame of an error that ends the call.
  init(_ error: any Error) { self.init(.error, PlaygroundError(error).json) }

  /// The frame of the call's spans.
  init(_ spans: [RecordedSpan]) {
    self.init(.spans, Array((try? JSONEncoder().encode(spans.map(PageSpan.init))) ?? Data()))
  }

  func append(to buffer: inout ByteBuffer) {
    buffer.writeInteger(kind)
    buffer.writeInteger(UInt32(contents.count + chunk.count))
    buffer.writeBytes(contents)
    buffer.writeBytes(chunk)
  }
}

/// A span as pages show it; times are in nanoseconds since 1970, and attributes are texts.
private struct PageSpan: Encodable {
  let name: String
  let start: UInt64
  let end: UInt64
  let attributes: [String: String]

  init(_ span: RecordedSpan) {
    (name, start, end) = (span.name, span.began, max(span.began, span.ended))
    attributes = span.attributes.mapValues(\.description)
  }
}

/// An error as pages show it.
struct PlaygroundError: Encodable {
  var code: String
  var message: String
  /// The reason, as `Errors.md` lists them; empty if there is none.
  var reason = ""
  /// The field of the request that is at fault, as in `configuration.max_width`; empty if there is none.
  var field = ""
}

extension PlaygroundError {
  /// The error of a call.
  init(_ error: any Error) {
    // One with a delay is an `RPCError`, which contains the status.
    let rpcError = error as? RPCError
    if let status = error as? GoogleRPCStatus ?? rpcError.flatMap({ try? $0.unpackGoogleRPCStatus() }) {
      self.init(code: "\(status.code)", message: status.message)
      let info = status.details.lazy.compactMap(\.errorInfo).first
      reason = info?.reason ?? ""
      field = info?.metadata["field"] ?? ""
    } else if let rpcError {
      self.init(code: "\(rpcError.code)", message: rpcError.message)
    } else {
      self.init(code: "internalError", message: "the worker failed; its log contains the cause")
    }
  }

  var json: [UInt8] { Array((try? JSONEncoder().encode(self)) ?? Data()) }
}

import CoreMetrics
import Foundation
import GRPCCore
import GRPCInProcessTransport
import GRPCProtobuf
import ImagePipeline
import ResultCache
import SwiftProtobuf
import TestSupport
import Tracing
import WorkerOperations
import WorkerProtocol
import WorkerService
import WorkerTelemetry

typealias Client = Imageworker_V1_ImageWorkerService.Client<InProcessTransport.Client>

/// Runs `body` with a client of a service in this process.
func withWorker(
  limits: WorkerLimits = .defaults, memoryLimit: Int = 256 << 20, drain: DrainState = DrainState(),
  takesOnlyPresets: Bool = false, cache: ResultCache? = nil, tracer: any Tracer = NoOpTracer(),
  metrics: any MetricsFactory = NOOPMetricsHandler.instance, helpers: HelperPool? = nil,
  takesSharedMemory: Bool = false,
  _ body: (Client, WorkerEnvironment) async throws -> Void
) async throws {
  var environment = WorkerEnvironment(
    limits: limits, cache: cache, memoryLimit: memoryLimit, threadCount: 2, helpers: helpers, drain: drain,
    metrics: metrics)
  environment.takesOnlyPresets = takesOnlyPresets
  environment.tracer = tracer
  environment.traceID = { $0.traceID }
  environment.takesSharedMemory = takesSharedMemory
  let (service, served) = (ImageWorkerService(environment: environment), environment)
  let transport = InProcessTransport()
  try await withGRPCServer(
    transport: transport.server, services: [service],
    interceptors: [TracingInterceptor(tracer: tracer)]
  ) { _ in
    try await withGRPCClient(transport: transport.client) { client in
      try await body(Client(wrapping: client), served)
    }
  }
}

extension WorkerEnvironment {
  /// Returns the environment with some changes.
  func with(_ change: (inout Self) -> Void) -> Self {
    var environment = self
    change(&environment)
    return environment
  }
}

/// The result of one item or one call.
struct Collected: Sendable {
  var header: Imageworker_V1_ImageInfo?
  var bytes: [UInt8] = []
  var report: Imageworker_V1_ProcessingReport?
  var errors: [Google_Rpc_Status] = []
  /// The kinds of the received parts, in order.
  var parts: [String] = []
  /// The positions of these parts in the whole response stream.
  var places: [Int] = []
  var largestChunk = 0

  mutating func append(chunk: Data) {
    bytes += chunk
    largestChunk = max(largestChunk, chunk.count)
    parts.append("chunk")
  }
}

extension Client {
  func process(
    _ bytes: [UInt8], preset: String = "", _ change: (inout Imageworker_V1_ProcessingConfiguration) -> Void = { _ in }
  ) async throws -> Collected {
    var request = Imageworker_V1_ProcessImageRequest()
    request.image = Data(bytes)
    request.preset = preset
    change(&request.configuration)
    return try await processRenditions(request)[""] ?? Collected()
  }

  /// Collects the results by rendition, with a preview as "~preview".
  func processRenditions(_ request: Imageworker_V1_ProcessImageRequest) async throws -> [String: Collected] {
    try await processImage(request) { response in
      var all: [String: Collected] = [:]
      var place = 0
      for try await message in response.messages {
        let id = message.isPreview ? "\(message.renditionID)~preview" : message.renditionID
        var collected = all[id] ?? Collected()
        place += 1
        collected.places.append(place)
        switch message.part {
        case .header(let header):
          collected.header = header
          collected.parts.append("header")
        case .chunk(let chunk): collected.append(chunk: chunk)
        case .report(let report):
          collected.report = report
          collected.parts.append("report")
        case .error(let error):
          collected.errors.append(error)
          collected.parts.append("error")
        case nil: collected.parts.append("nothing")
        }
        all[id] = collected
      }
      return all
    }
  }

  /// Sends the requests and collects the results by item.
  ///
  /// Renditions have the key "item/rendition" and previews "item~preview".
  func batch(_ requests: [Imageworker_V1_BatchProcessRequest]) async throws -> [String: Collected] {
    try await batchProcess { writer in
      for request in requests { try await writer.write(request) }
    } onResponse: { response in
      var items: [String: Collected] = [:]
      var place = 0
      for try await message in response.messages {
        let name = message.renditionID.isEmpty ? message.itemID : "\(message.itemID)/\(message.renditionID)"
        let id = message.isPreview ? "\(name)~preview" : name
        var item = items[id] ?? Collected()
        place += 1
        item.places.append(place)
        switch message.part {
        case .header(let header):
          item.header = header
          item.parts.append("header")
        case .chunk(let chunk): item.append(chunk: chunk)
        case .report(let report):
          item.report = report
          item.parts.append("report")
        case .error(let error):
          item.errors.append(error)
          item.parts.append("error")
        case nil: item.parts.append("nothing")
        }
        items[id] = item
      }
      return items
    }
  }
}

extension Imageworker_V1_Rendition {
  static func named(
    _ id: String, preset: String = "", _ change: (inout Imageworker_V1_ProcessingConfiguration) -> Void = { _ in }
  ) -> Self {
    .with { rendition in
      rendition.renditionID = id
      rendition.preset = preset
      change(&rendition.configuration)
    }
  }
}

extension Google_Rpc_Status {
  /// The reason of an error, and the field that it names.
  var reasonAndField: [String?] {
    get throws {
      let status = try GoogleRPCStatus(serializedBytes: serializedBytes() as [UInt8])
      return [
        status.details.first?.errorInfo?.reason,
        status.details.compactMap(\.badRequest).first?.violations.first?.field,
      ]
    }
  }
}

extension Imageworker_V1_BatchProcessRequest {
  static func start(
    _ id: String, preset: String = "", image: [UInt8] = [],
    _ change: (inout Imageworker_V1_ProcessingConfiguration) -> Void = { _ in }
  ) -> Self {
    .with { request in
      request.itemID = id
      request.start.preset = preset
      request.start.image = Data(image)
      change(&request.start.configuration)
    }
  }

  static func chunk(_ id: String, _ bytes: some Sequence<UInt8>) -> Self {
    .with { request in
      request.itemID = id
      request.chunk = Data(bytes)
    }
  }

  static func end(_ id: String) -> Self {
    .with { request in
      request.itemID = id
      request.end = Imageworker_V1_BatchItemEnd()
    }
  }
}

/// Returns the error of a call, with its details unpacked.
func failure(_ body: () async throws -> Void) async -> GoogleRPCStatus? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? RPCError).flatMap { error in
      do { return try error.unpackGoogleRPCStatus() } catch { return nil }
    }
  }
}

extension Message {
  /// Returns a changed copy of this message.
  func changed(_ change: (inout Self) -> Void) -> Self {
    var changed = self
    change(&changed)
    return changed
  }
}

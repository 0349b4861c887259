import FoundationEssentials
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import GRPCProtobuf
import SwiftProtobuf
import Synchronization
import WorkerProtocol

/// A worker without images: each result is the reverse of its upload.
///
/// What it does to an item is up to the test.
final class FakeWorker: Sendable {
  /// Ends the stream, as the loss of the worker does.
  struct Break: Error {}

  /// Returns `nil` to process the image, an error to send, or throws ``Break``; gets the image and how often it came.
  typealias Behavior = @Sendable (Data, Int) async throws -> GoogleRPCStatus?

  struct Record: Sendable {
    /// How often each image arrived completely.
    var seen: [Data: Int] = [:]
    var starts: [Imageworker_V1_BatchItemStart] = []
    var streamCount = 0
    var tokens: [String?] = []
  }

  let address: String
  private let service: Service

  /// What has arrived.
  var record: Record { service.record.withLock { $0 } }
  /// How often each image arrived completely.
  var counts: Set<Int> { Set(record.seen.values) }

  private init(address: String, service: Service) {
    self.address = address
    self.service = service
  }

  /// Runs a server on a free port of this machine while `body` uses it.
  /// - `refusal`: the error of every stream.
  /// - `refusesStream`: gets the number of a stream, from 1; whether it ends with UNAVAILABLE before anything is read.
  static func with<Value: Sendable>(
    refusal: RPCError? = nil, refusesStream: @escaping @Sendable (Int) -> Bool = { _ in false },
    _ behavior: @escaping Behavior = { _, _ in nil },
    _ body: (FakeWorker) async throws -> Value
  ) async throws -> Value {
    let service = Service(behavior: behavior, refusal: refusal, refusesStream: refusesStream)
    let server = GRPCServer(
      transport: .http2NIOPosix(address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext),
      services: [service])
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await server.serve() }
      defer { group.cancelAll() }
      let address = try await server.listeningAddress
      let worker = FakeWorker(address: "127.0.0.1:\(address?.ipv4?.port ?? 0)", service: service)
      let outcome: Result<Value, any Error>
      do { outcome = .success(try await body(worker)) } catch { outcome = .failure(error) }
      // A stream that begins after serving was cancelled traps, so the connections get time to end.
      server.beginGracefulShutdown()
      group.addTask { try await Task.sleep(for: .seconds(1)) }
      _ = try? await group.next()
      return try outcome.get()
    }
  }

  /// An address where nobody listens.
  static func deadAddress() async throws -> String { try await with { $0.address } }

  fileprivate final class Service: Imageworker_V1_ImageWorkerService.ServiceProtocol {
    let record = Mutex(Record())
    private let behavior: Behavior
    private let refusal: RPCError?
    private let refusesStream: @Sendable (Int) -> Bool

    init(behavior: @escaping Behavior, refusal: RPCError?, refusesStream: @escaping @Sendable (Int) -> Bool) {
      self.behavior = behavior
      self.refusal = refusal
      self.refusesStream = refusesStream
    }

    private func outcome(_ image: Data) async throws -> GoogleRPCStatus? {
      let count = record.withLock { record in
        record.seen[image, default: 0] += 1
        return record.seen[image] ?? 0
      }
      do { return try await behavior(image, count) } catch is Break {
        throw RPCError(code: .unavailable, message: "broken")
      }
    }

    private func note(_ metadata: Metadata) {
      record.withLock { $0.tokens.append(metadata[stringValues: "authorization"].first { _ in true }) }
    }

    func processImage(
      request: ServerRequest<Imageworker_V1_ProcessImageRequest>, context: ServerContext
    ) async throws -> StreamingServerResponse<Imageworker_V1_ProcessImageResponse> {
      note(request.metadata)
      if let error = try await outcome(request.message.image) { throw error }
      let ids = request.message.renditions.isEmpty ? [""] : request.message.renditions.map(\.renditionID)
      return StreamingServerResponse { writer in
        for id in ids {
          try await writer.write(
            .with {
              $0.header = Self.info; $0.renditionID = id
            })
          for chunk in Self.chunks(request.message.image) {
            try await writer.write(
              .with {
                $0.chunk = chunk; $0.renditionID = id
              })
          }
          try await writer.write(
            .with {
              $0.report = Self.report(request.message.image); $0.renditionID = id
            })
        }
        return [:]
      }
    }

    func batchProcess(
      request: StreamingServerRequest<Imageworker_V1_BatchProcessRequest>, context: ServerContext
    ) async throws -> StreamingServerResponse<Imageworker_V1_BatchProcessResponse> {
      note(request.metadata)
      let number = record.withLock { record in
        record.streamCount += 1
        return record.streamCount
      }
      if let refusal { throw refusal }
      if refusesStream(number) { throw RPCError(code: .unavailable, message: "no worker") }
      return StreamingServerResponse { writer in
        var uploads: [String: Data] = [:]
        for try await message in request.messages {
          let id = message.itemID
          switch message.part {
          case .start(let start):
            self.record.withLock { $0.starts.append(start) }
            uploads[id] = start.image
            if start.image.isEmpty { continue }
          case .chunk(let chunk):
            uploads[id, default: Data()] += chunk
            continue
          case .end, nil: break
          }
          let image = uploads.removeValue(forKey: id) ?? Data()
          if let error = try await self.outcome(image) {
            let status = try Google_Rpc_Status(serializedBytes: error.serializedBytes() as [UInt8])
            try await writer.write(
              .with {
                $0.itemID = id; $0.error = status
              })
            continue
          }
          try await writer.write(
            .with {
              $0.itemID = id; $0.header = Self.info
            })
          for chunk in Self.chunks(image) {
            try await writer.write(
              .with {
                $0.itemID = id; $0.chunk = chunk
              })
          }
          try await writer.write(
            .with {
              $0.itemID = id; $0.report = Self.report(image)
            })
        }
        return [:]
      }
    }

    func inspectImage(
      request: ServerRequest<Imageworker_V1_InspectImageRequest>, context: ServerContext
    ) async throws -> ServerResponse<Imageworker_V1_InspectImageResponse> {
      let image = request.message.image
      let count = record.withLock { record in
        record.seen[image, default: 0] += 1
        return record.seen[image] ?? 0
      }
      if let status = try await behavior(image, count) { throw status }
      return ServerResponse(message: .with { $0.info = Self.info })
    }

    func listPresets(
      request: ServerRequest<Imageworker_V1_ListPresetsRequest>, context: ServerContext
    ) async throws -> ServerResponse<Imageworker_V1_ListPresetsResponse> {
      ServerResponse(message: .with { $0.presets = [.with { $0.name = "default" }] })
    }

    private static let info = Imageworker_V1_ImageInfo.with {
      $0.format = "jpeg"
      $0.width = 1
      $0.height = 2
    }

    private static func report(_ image: Data) -> Imageworker_V1_ProcessingReport {
      .with {
        $0.output = info
        $0.outputBytes = UInt64(image.count)
      }
    }

    private static func chunks(_ image: Data) -> [Data] {
      let result = Data(image.reversed())
      return stride(from: 0, to: result.count, by: 65536).map { result.dropFirst($0).prefix(65536) }
    }
  }
}

extension GoogleRPCStatus {
  /// An error as the worker sends it.
  static func worker(
    _ code: RPCError.Code, _ reason: String, retryAfter: Duration? = nil, _ metadata: [String: String] = [:]
  ) -> GoogleRPCStatus {
    let info = ErrorDetails.errorInfo(.init(reason: reason, domain: "imageworker.v1", metadata: metadata))
    let retry = retryAfter.map { [ErrorDetails.retryInfo(.init(delay: $0))] } ?? []
    return GoogleRPCStatus(code: code, message: "the message of \(reason)", details: [info] + retry)
  }
}

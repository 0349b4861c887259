import FoundationEssentials
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import SwiftProtobuf
import Synchronization
import WorkerProtocol

/// A worker that sends what none should, for as long as somebody receives it.
///
/// An image whose bytes are `good` gets a result.
final class HostileWorker: Imageworker_V1_ImageWorkerService.ServiceProtocol {
  /// What it sends without end, after the header of a result.
  enum Attack: CaseIterable {
    case bytes, singleBytes, largeMessages, emptyChunks, headers, resultsOfOthers, endsOfOthers, earlyEnds, nothing
  }

  static let good = Data("good".utf8)
  private static let info = Imageworker_V1_ImageInfo.with { $0.format = "jpeg" }

  private let attack: Attack
  private let attacks = Mutex(0)
  private let sent = Mutex(0)

  /// The bytes of results that were sent.
  var sentByteCount: Int { sent.withLock { $0 } }

  /// The number of calls that it attacks: 0 when the client has ended all of them.
  var attackCount: Int { attacks.withLock { $0 } }

  private init(_ attack: Attack) { self.attack = attack }

  /// Runs a server while `body` uses its address.
  static func with(_ attack: Attack, _ body: (HostileWorker, String) async throws -> Void) async throws {
    let worker = HostileWorker(attack)
    let server = GRPCServer(
      transport: .http2NIOPosix(address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext),
      services: [worker])
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await server.serve() }
      defer { group.cancelAll() }
      let address = try await server.listeningAddress
      try await body(worker, "127.0.0.1:\(address?.ipv4?.port ?? 0)")
      server.beginGracefulShutdown()
      group.addTask { try await Task.sleep(for: .seconds(1)) }
      _ = try? await group.next()
    }
  }

  /// The part that is sent without end; `nil` for a silence.
  private func part(_ id: String) -> Imageworker_V1_ProcessImageResponse? {
    var part = Imageworker_V1_ProcessImageResponse()
    part.renditionID = id
    switch attack {
    case .bytes: part.chunk = Data(count: 65536)
    case .singleBytes: part.chunk = Data(count: 1)
    case .largeMessages: part.chunk = Data(count: 5 << 20)
    case .emptyChunks: part.chunk = Data()
    case .headers: part.header = Self.info
    case .resultsOfOthers: (part.renditionID, part.chunk) = ("other", Data(count: 65536))
    case .endsOfOthers: (part.renditionID, part.report) = ("other", .with { $0.output = Self.info })
    // Of bytes that it does not send.
    case .earlyEnds: part.report = .with { ($0.output, $0.outputBytes) = (Self.info, 4) }
    case .nothing: return nil
    }
    return part
  }

  /// Sends parts until the call is cancelled.
  private func attack(
    _ id: String, _ context: ServerContext, write: (Imageworker_V1_ProcessImageResponse) async throws -> Void
  ) async throws {
    attacks.withLock { $0 += 1 }
    defer { attacks.withLock { $0 -= 1 } }
    try await write(.with { ($0.header, $0.renditionID) = (Self.info, id) })
    var count = 0
    while !context.cancellation.isCancelled {
      count += 1
      // Without pauses it would keep the threads of all other tests: it must send less than a busy machine can take.
      if count.isMultiple(of: 16) { try await Task.sleep(for: .milliseconds(20)) }
      guard let part = part(id) else {
        try await Task.sleep(for: .milliseconds(10))
        continue
      }
      try await write(part)
      sent.withLock { $0 += part.chunk.count }
    }
  }

  func processImage(
    request: ServerRequest<Imageworker_V1_ProcessImageRequest>, context: ServerContext
  ) async throws -> StreamingServerResponse<Imageworker_V1_ProcessImageResponse> {
    StreamingServerResponse { writer in
      try await self.attack(request.message.renditions.first?.renditionID ?? "", context) { try await writer.write($0) }
      return [:]
    }
  }

  func batchProcess(
    request: StreamingServerRequest<Imageworker_V1_BatchProcessRequest>, context: ServerContext
  ) async throws -> StreamingServerResponse<Imageworker_V1_BatchProcessResponse> {
    StreamingServerResponse { writer in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for try await message in request.messages {
          guard case .start(let start) = message.part else { continue }
          group.addTask { try await self.answer(message.itemID, start, context, writer) }
        }
        try await group.waitForAll()
      }
      return [:]
    }
  }

  private func answer(
    _ id: String, _ start: Imageworker_V1_BatchItemStart, _ context: ServerContext,
    _ writer: RPCWriter<Imageworker_V1_BatchProcessResponse>
  ) async throws {
    if start.image == Self.good {
      try await writer.write(.with { ($0.itemID, $0.report) = (id, .with { $0.output = Self.info }) })
      return
    }
    try await attack(start.renditions.first?.renditionID ?? "", context) { part in
      var response = Imageworker_V1_BatchProcessResponse()
      (response.itemID, response.renditionID) = (id, part.renditionID)
      switch part.part {
      case .header(let header): response.header = header
      case .chunk(let chunk): response.chunk = chunk
      case .report(let report): response.report = report
      case .error(let error): response.error = error
      case nil: break
      }
      try await writer.write(response)
    }
  }

  func inspectImage(
    request: ServerRequest<Imageworker_V1_InspectImageRequest>, context: ServerContext
  ) async throws -> ServerResponse<Imageworker_V1_InspectImageResponse> {
    try await Task.sleep(for: .seconds(300))
    return ServerResponse(message: Imageworker_V1_InspectImageResponse())
  }

  func listPresets(
    request: ServerRequest<Imageworker_V1_ListPresetsRequest>, context: ServerContext
  ) async throws -> ServerResponse<Imageworker_V1_ListPresetsResponse> {
    throw RPCError(code: .unimplemented, message: "")
  }
}

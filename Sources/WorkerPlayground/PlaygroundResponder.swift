internal import Admission
internal import FoundationEssentials
internal import GRPCCore
internal import HTTPTypes
internal import HummingbirdCore
internal import ImagePipeline
internal import NIOCore
internal import SwiftProtobuf
internal import WorkerProtocol
internal import WorkerService

/// Answers the requests of pages.
///
/// | request | answer |
/// |---|---|
/// | `GET /`, `GET /app.css`, … | the page and its parts |
/// | `GET /api/contract` | the fields, filters and limits, from which the page makes its controls |
/// | `GET /api/presets` | the presets, as `ListPresets` returns them |
/// | `GET /api/state` | how much memory is in use |
/// | `GET /api/pages/PAGE` | lasts as long as the page; its images are removed when the connection ends |
/// | `POST /api/images?page=PAGE` | keeps an image, and returns its name and its properties |
/// | `POST /api/images/keep` | keeps images longer, and returns those that still exist |
/// | `DELETE /api/images/ID` | removes an image |
/// | `POST /api/results?image=ID&view=NAME&side=PIXELS` | the results of a `ProcessImageRequest` in JSON, as frames |
/// | … `&auxiliary=ID,ID` | the same; its `auxiliary_images`, which have names alone, are these images |
/// | `HEAD` | the head of what `GET` returns, except for `/api/pages/PAGE` |
struct PlaygroundResponder: Sendable {
  /// The maximum size of a request that contains no image.
  private static let maxTextByteCount = 64 * 1024
  /// The bytes of an image that must have arrived for each second after the first ones, as its memory is charged meanwhile.
  private static let uploadRate = (byteCount: 4096.0, afterSeconds: 30.0)
  /// The sides that a page can request for its previews.
  private static let previewSides = 64...1024

  let gate: RequestGate
  let uploads: UploadStore
  let environment: WorkerEnvironment
  let worker: WorkerAddress
  private let views = ViewTable()
  private let pages = ViewTable()

  /// Cancels the results that pages wait for, and those that they still request.
  func stop() {
    views.close()
    pages.close()
  }

  /// Whether `stop` was called.
  var isStopping: Bool { views.isClosed }

  private var service: ImageWorkerService { ImageWorkerService(environment: environment) }

  /// Returns the response to a request; whatever fails has one, too.
  func respond(to request: Request) async -> Response {
    var response: Response
    if let refusal = gate.refusal(request) {
      response = Self.error(.forbidden, refusal)
    } else {
      do { response = try await answer(request) } catch let error as UploadStore.Refusal {
        response = Self.error(error.status, error.message)
      } catch { response = Self.json(bytes: PlaygroundError(error).json, status: .internalServerError) }
    }
    for field in RequestGate.headers { response.headers[field.name] = field.value }
    // What is left of the request would be read before the connection can be used again.
    if response.status.kind != .successful { response.headers[.connection] = "close" }
    return request.method == .head ? response.createHeadResponse() : response
  }

  private func answer(_ request: Request) async throws -> Response {
    let path = request.uri.path
    let image = path.hasPrefix("/api/images/") ? String(path.dropFirst("/api/images/".count)) : ""
    let page = path.hasPrefix("/api/pages/") ? String(path.dropFirst("/api/pages/".count)) : ""
    switch (request.method == .head ? .get : request.method, path) {
    case (.get, "/api/contract"): return Self.json(contract)
    case (.get, "/api/presets"): return try await presets()
    case (.get, "/api/state"): return Self.json(WorkerState(environment, uploads))
    case (.get, _) where (1...64).contains(page.utf8.count) && request.method == .get:
      return presence(of: page, request)
    case (.post, "/api/images"): return try await upload(request)
    case (.post, "/api/images/keep"): return try await keep(request)
    case (.delete, _) where !image.isEmpty:
      uploads.remove(image)
      return Response(status: .noContent)
    case (.post, "/api/results"): return try await results(request)
    case (.get, _): return PageFile.named(path)?.response ?? Self.error(.notFound, "there is no \(path.prefix(64))")
    default: return Self.error(.methodNotAllowed, "\(request.method) is not served here")
    }
  }

  private var contract: ContractDescription {
    var contract = ContractDescription.shared
    contract.worker = .init(address: worker.current, isSecure: worker.isSecure)
    contract.limits = .init(
      imageMemory: environment.limits.image.memory, memory: environment.memory.limit,
      message: environment.limits.maxMessageByteCount, uploads: uploads.limit, uploadCount: UploadStore.maxCount,
      uploadSeconds: Int(UploadStore.lifetime.components.seconds))
    contract.takesOnlyPresets = environment.takesOnlyPresets
    return contract
  }

  private func presets() async throws -> Response {
    let presets = try await call { try await service.listPresets(request: .init(), context: $0) }
    return Self.json(bytes: try presets.jsonUTF8Bytes(options: ResultFrame.jsonOptions))
  }

  /// Runs a call whose response is one message.
  private func call<Result>(_ body: (ServerContext) async throws -> Result) async throws -> Result {
    try await withServerContextRPCCancellationHandle { handle in
      let descriptor = Imageworker_V1_ImageWorkerService.Method.InspectImage.descriptor
      return try await body(
        ServerContext(descriptor: descriptor, remotePeer: "playground", localPeer: "playground", cancellation: handle))
    }
  }

  // MARK: Images

  private func upload(_ request: Request) async throws -> Response {
    guard let byteCount = request.headers[.contentLength].flatMap({ Int($0) }) else {
      return Self.error(.lengthRequired, "the header Content-Length is required")
    }
    let room = try uploads.reserve(byteCount)
    var image = Data(capacity: byteCount)
    let began = ContinuousClock.now
    for try await buffer in request.body {
      let seconds = began.duration(to: .now) / .seconds(1)
      guard Double(image.count) >= (seconds - Self.uploadRate.afterSeconds) * Self.uploadRate.byteCount else {
        throw UploadStore.Refusal(status: .requestTimeout, message: "the image arrives too slowly")
      }
      guard image.count + buffer.readableBytes <= byteCount else { throw UploadStore.Refusal.wrongLength }
      image.append(contentsOf: buffer.readableBytesView)
    }
    guard image.count == byteCount else { throw UploadStore.Refusal.wrongLength }
    var inspection = Imageworker_V1_InspectImageRequest()
    inspection.image = image
    let info: [UInt8]
    do {
      let response = try await call { try await service.inspectImage(request: inspection, context: $0) }
      info = try response.jsonUTF8Bytes(options: ResultFrame.jsonOptions)
    } catch { return Self.json(bytes: PlaygroundError(error).json, status: .unprocessableContent) }
    let id = room.keep(image, page: request.uri.queryParameters["page"].map(String.init) ?? "")
    return Self.json(bytes: Array("{\"id\":\"\(id)\",\"image\":".utf8) + info + Array("}".utf8))
  }

  private func keep(_ request: Request) async throws -> Response {
    var request = request
    let body = try await text(of: &request)
    guard let ids = try? JSONDecoder().decode([String].self, from: Data(body.readableBytesView)),
      ids.count <= UploadStore.maxCount
    else {
      return Self.error(.badRequest, "the body must be a list of at most \(UploadStore.maxCount) images")
    }
    return Self.json(ids.filter { uploads.image($0) != nil })
  }

  private func presence(of page: String, _ request: Request) -> Response {
    let presence = PagePresence(page: page, uploads: uploads, pages: pages)
    return Response(
      status: .ok, headers: [.contentType: "text/plain", .connection: "close"],
      body: ResponseBody { [request] writer in try await presence.write(to: &writer, of: request) })
  }

  private func text(of request: inout Request) async throws -> ByteBuffer {
    do { return try await request.collectBody(upTo: Self.maxTextByteCount) } catch is NIOTooManyBytesError {
      throw UploadStore.Refusal(
        status: .contentTooLarge, message: "the body is larger than \(Self.maxTextByteCount) bytes")
    }
  }

  // MARK: Results

  private func results(_ request: Request) async throws -> Response {
    var request = request
    let parameters = request.uri.queryParameters
    guard let view = parameters["view"].map(String.init), (1...64).contains(view.utf8.count) else {
      return Self.error(.badRequest, "view must have between 1 and 64 bytes")
    }
    guard let image = parameters["image"].flatMap({ uploads.image(String($0)) }) else { return Self.gone }
    var environment = environment
    if let side = parameters["side"].flatMap({ Int($0) }) {
      environment.maxPreviewSide = min(max(side, Self.previewSides.lowerBound), Self.previewSides.upperBound)
    }
    let body = try await text(of: &request)
    var message: Imageworker_V1_ProcessImageRequest
    do { message = try .init(jsonUTF8Bytes: Array(body.readableBytesView)) } catch {
      return Self.error(.badRequest, "the body is not a ProcessImageRequest in JSON: \(error)")
    }
    guard message.renditions.isEmpty, message.image.isEmpty else {
      return Self.error(.badRequest, "image and renditions must be empty; request each result separately")
    }
    message.image = image
    if let refusal = addAuxiliaryImages(parameters["auxiliary"].map { $0.split(separator: ",") } ?? [], to: &message) {
      return refusal
    }
    let stream = ResultStream(environment: environment, request: message, view: view, views: views)
    return Response(
      status: .ok, headers: [.contentType: "application/octet-stream", .connection: "close"],
      body: ResponseBody { [request] writer in try await stream.write(to: &writer, of: request) })
  }

  /// Adds uploads to the auxiliary images of a request, which have names alone.
  /// - Returns: What is wrong with them; `nil` if nothing is.
  private func addAuxiliaryImages(
    _ ids: [some StringProtocol], to message: inout Imageworker_V1_ProcessImageRequest
  ) -> Response? {
    guard ids.count == message.auxiliaryImages.count, message.auxiliaryImages.allSatisfy(\.image.isEmpty) else {
      return Self.error(.badRequest, "auxiliary must name an image for each of auxiliary_images, which must have none")
    }
    for (index, id) in ids.enumerated() {
      guard let image = uploads.image(String(id)) else { return Self.gone }
      message.auxiliaryImages[index].image = image
    }
    return nil
  }

  // MARK: Responses

  private static var gone: Response { error(.gone, "the image is no longer here; send it again") }

  private static func json(_ value: some Encodable) -> Response {
    json(bytes: Array((try? JSONEncoder().encode(value)) ?? Data()))
  }

  private static func json(bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: "application/json"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  private static func error(_ status: HTTPResponse.Status, _ message: String) -> Response {
    json(bytes: PlaygroundError(code: status.reasonPhrase, message: message).json, status: status)
  }
}

extension UploadStore.Refusal {
  fileprivate static let wrongLength = Self(
    status: .badRequest, message: "the image differs in size from Content-Length")
}

/// How much of the worker is in use.
private struct WorkerState: Encodable {
  var memoryUsed: Int
  var memoryPeak: Int
  var memoryBuffered: Int
  var memoryLimit: Int
  var uploadBytes: Int
  var uploadCount: Int

  init(_ environment: WorkerEnvironment, _ uploads: UploadStore) {
    let memory = environment.memory
    (memoryUsed, memoryPeak, memoryBuffered, memoryLimit) = (memory.used, memory.peak, memory.buffered, memory.limit)
    (uploadBytes, uploadCount) = (uploads.byteCount, uploads.count)
  }
}

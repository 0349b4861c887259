import Hummingbird
import ImageWorkerKit

/// An HTTP server: `thumbnail-server [<port>]`, 8080 by default.
///
/// `POST /thumbnail?max_width=400&preferred_format=webp` answers an image with its thumbnail. Images are decoded as they
/// arrive, so that large ones are never whole in memory.
@main
struct ThumbnailServer {
  static func main() async throws {
    let port = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 8080
    let server = Application(
      router: router(ImageProcessor()), configuration: .init(address: .hostname("127.0.0.1", port: port)))
    try await server.runService()
  }

  /// All requests share a processor, and with it the limit of the memory for images.
  static func router(_ processor: ImageProcessor) -> Router<BasicRequestContext> {
    let router = Router()
    router.get("health") { _, _ in HTTPResponse.Status.ok }
    router.post("thumbnail") { request, _ in
      do {
        return try await thumbnail(of: request, by: processor)
      } catch let error as ImageProcessingError {
        throw HTTPError(HTTPResponse.Status(error.reason), message: "\(error)")
      }
    }
    return router
  }

  static func thumbnail(of request: Request, by processor: ImageProcessor) async throws -> Response {
    let image = request.body.map { $0.readableBytesView }
    let chunks = processor.process(image, as: try configuration(request.uri.queryParameters))
    // The result is small. An error after its first byte would come too late for a status.
    var result = ByteBuffer()
    for try await chunk in chunks { result.writeBytes(chunk) }
    let format = chunks.report?.output.format ?? ""
    return Response(
      status: .ok, headers: [.contentType: "image/\(format)"], body: ResponseBody(byteBuffer: result))
  }

  /// The preset `preview`, or the one that the parameter `preset` names, with the fields of the other parameters.
  static func configuration(_ parameters: Parameters) throws(ImageProcessingError) -> ProcessingConfiguration {
    var configuration = try ProcessingConfiguration(preset: parameters["preset"].map(String.init) ?? "preview")
    for (name, value) in parameters where name != "preset" { try configuration.set(String(name), to: String(value)) }
    return configuration
  }
}

extension HTTPResponse.Status {
  /// The status of an image or a request that failed.
  init(_ reason: ImageProcessingError.Reason) {
    switch reason {
    case .invalidField, .unsupportedField, .unknownPreset: self = .badRequest
    case .emptyImage, .corruptImage, .truncatedImage: self = .unprocessableContent
    case .unknownFormat, .unsupportedImage: self = .unsupportedMediaType
    case .limitExceeded: self = .contentTooLarge
    case .overloaded: self = .serviceUnavailable
    default: self = .internalServerError
    }
  }
}

internal import Foundation
internal import ImageCodecs
internal import ImagePipeline

/// Processes one image any number of times on one thread, so that its instructions can be counted.
///
/// `CostGate` prints the names of the jobs. `CostGate NAME COUNT` processes the image of a job; the instructions of one
/// image are the difference between two counts, without those of starting the process.
@main
enum CostGate {
  /// An image and the configuration of its result.
  private struct Job {
    let name: String
    let image: String
    let configuration: ProcessingConfiguration
  }

  private static let photo = "Sources/image-worker/Documentation.docc/Resources/before-after.jpg"
  private static let fixtures = "Tests/TestSupport/Fixtures/"

  private static let jobs: [Job] = [
    Job(
      name: "jpeg-preview", image: photo,
      configuration: ProcessingConfiguration(maxWidth: 150, compressionQuality: 0.8, preferredFormat: .jpeg)),
    Job(
      name: "jpeg-resize", image: photo,
      configuration: ProcessingConfiguration(maxWidth: 450, compressionQuality: 0.8, preferredFormat: .jpeg)),
    Job(
      name: "jpeg-fine", image: photo,
      configuration: ProcessingConfiguration(maxWidth: 450, compressionQuality: 1, preferredFormat: .jpeg)),
    Job(
      name: "jpeg-same-size", image: photo,
      configuration: ProcessingConfiguration(compressionQuality: 0.7, preferredFormat: .jpeg, alwaysEncode: true)),
    Job(
      name: "never-larger", image: photo,
      configuration: ProcessingConfiguration(
        maxWidth: 450, compressionQuality: 0.8, preferredFormat: .jpeg, neverLarger: true)),
    Job(
      name: "lowered", image: photo,
      configuration: ProcessingConfiguration(
        maxWidth: 560, compressionQuality: 1, preferredFormat: .jpeg, neverLarger: true)),
    Job(name: "jpeg-copy", image: photo, configuration: ProcessingConfiguration()),
    Job(name: "jpeg-rotate", image: photo, configuration: ProcessingConfiguration(rotation: 90)),
    Job(
      name: "jpeg-progressive", image: fixtures + "photo-progressive.jpg",
      configuration: ProcessingConfiguration(maxWidth: 200, compressionQuality: 0.8, preferredFormat: .jpeg)),
    Job(
      name: "png-read", image: fixtures + "photo.png",
      configuration: ProcessingConfiguration(maxWidth: 100, compressionQuality: 0.8, preferredFormat: .jpeg)),
    Job(
      name: "png-write", image: photo, configuration: ProcessingConfiguration(maxWidth: 200, preferredFormat: .png)),
    Job(
      name: "webp-read", image: fixtures + "photo.webp",
      configuration: ProcessingConfiguration(maxWidth: 100, compressionQuality: 0.8, preferredFormat: .jpeg)),
    Job(
      name: "webp-write", image: photo,
      configuration: ProcessingConfiguration(maxWidth: 150, compressionQuality: 0.8, preferredFormat: .webp)),
    Job(
      name: "gif-same-size", image: fixtures + "animated-transparent.gif",
      configuration: ProcessingConfiguration(preferredFormat: .gif, alwaysEncode: true, maxFrames: 0)),
    Job(
      name: "filters", image: photo,
      configuration: ProcessingConfiguration(
        maxWidth: 300, compressionQuality: 0.8, preferredFormat: .jpeg,
        filters: [
          Filter(name: "blur", intensity: 1, parameters: ["radius": 3]), Filter(name: "saturation", intensity: 0.5),
        ])),
    Job(
      name: "max-bytes", image: photo,
      configuration: ProcessingConfiguration(maxWidth: 200, preferredFormat: .jpeg, maxBytes: 8000)),
    Job(
      name: "similarity", image: photo,
      configuration: ProcessingConfiguration(maxWidth: 200, preferredFormat: .jpeg, targetSimilarity: 80)),
    Job(
      name: "tensor", image: photo,
      configuration: ProcessingConfiguration(
        maxWidth: 224, maxHeight: 224, preferredFormat: .raw, resizeMode: .fill, allowUpscale: true,
        tensor: TensorOptions(elementType: .f16, layout: .chw, normalization: .imagenet))),
  ]

  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let name = arguments.first, let count = arguments.last.flatMap({ Int($0) }) else {
      for job in jobs { print(job.name) }
      return
    }
    guard let job = jobs.first(where: { $0.name == name }) else { throw Failure(message: "there is no job \(name)") }
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: job.image)))
    var byteCount = 0
    for _ in 0..<count { byteCount = try process(bytes, job.configuration) }
    print(byteCount)
  }

  /// Returns the size of the result in bytes.
  private static func process(_ bytes: [UInt8], _ configuration: ProcessingConfiguration) throws -> Int {
    var reader = ImageReader(limits: ImageLimits())
    let header = try reader.push(bytes.span.bytes, isLast: true)
    let rest = bytes.span.bytes.extracting(droppingFirst: header.consumedByteCount)
    let plan = try reader.plan([configuration], followingByteCount: UInt64(rest.byteCount))
    let route = try reader.takeRoute(plan, cancellation: Cancellation())
    var byteCount = 0
    guard header.isComplete, try route.push(rest, isLast: true, output: { byteCount += $1.byteCount }),
      case .success = route.outcome(of: 0)
    else { throw Failure(message: "the image is incomplete") }
    return byteCount
  }

  private struct Failure: Error, CustomStringConvertible {
    let message: String
    var description: String { message }
  }
}

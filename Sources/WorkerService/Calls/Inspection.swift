internal import Admission
internal import FoundationEssentials
internal import ImagePipeline

/// Plans an image from its first bytes, without decoding any of it.
struct Inspection {
  let environment: WorkerEnvironment
  let caller: ImageCaller
  let cancellation: Cancellation

  /// Plans the result of an image.
  ///
  /// - `bytes`: the image, or a prefix of it that contains the header.
  /// - `auxiliary`: the images that overlays name.
  /// - Throws: `truncatedImage` with `neededByteCount` if the header is incomplete, and the errors of planning.
  func plan(
    _ bytes: Data, configuration: ProcessingConfiguration, auxiliary: AuxiliaryImages = AuxiliaryImages()
  ) async throws(PipelineError) -> PlannedImage {
    let configuration = try configuration.withoutAnalysis()
    let channel = environment.makeChannel(for: caller, cancellation, auxiliary, isPreview: false)
    let work = ImageWork(channel, memory: environment.memory)
    try await work.channel.prepare()
    let results = WorkRequest.Planning.Results.renditions([configuration])
    let planning = WorkRequest.Planning(
      results: results, lateOrientation: ImageReader.lateOrientation(of: bytes.bytes),
      countedFrames: ImageReader.frameCount(of: bytes.bytes), reportsGainMap: true)
    var plan: PlannedImage
    var rest = bytes
    do throws(PipelineError) {
      repeat {
        let isLast = rest.count <= work.channel.maxByteCount && !ImageReader.isBeginning(bytes)
        let window = rest.prefix(work.channel.maxByteCount)
        rest = rest.dropFirst(try work.readHeader(window.bytes, isLast: isLast, planning))
      } while work.plan == nil && !rest.isEmpty
      guard let planned = work.plan else {
        throw PipelineError(.truncatedImage, "the image ends before its header does")
      }
      plan = planned
    } catch {
      throw error.code == .truncatedImage ? ImageReader.incomplete(error, bytes.bytes) : error
    }
    var result = try plan.renditions[0].get()
    if let map = ImageReader.gainMap(of: bytes.bytes) {
      result.input.gainMap = map.displayed(orientation: result.input.orientation)
      plan.renditions[0] = .success(result)
    }
    return plan
  }
}

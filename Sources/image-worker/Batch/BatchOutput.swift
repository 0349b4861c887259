internal import ImagePipeline
internal import SystemPackage

/// Where the results of a batch go, and what is known of those that are finished.
struct BatchOutput: Sendable {
  let directory: FilePath
  let folders: ResultFolders
  let destinations: Destinations
  let journal: BatchJournal?
  let skipsExisting: Bool
  /// The results that are requested of images without a request of their own.
  private let requested: RequestedResults
  private let fingerprint: String

  init(
    directory: FilePath, images: [BatchImage], requested: RequestedResults, journal: BatchJournal?, skipsExisting: Bool
  ) {
    self.directory = directory
    self.requested = requested
    self.journal = journal
    self.skipsExisting = skipsExisting
    folders = ResultFolders(directory: directory)
    destinations = Destinations(images: images.map(\.path))
    fingerprint = requested.fingerprint
  }

  func requested(of image: BatchImage) -> RequestedResults { image.requested ?? requested }

  /// The presets that workers are asked for by name and this program does not have.
  func foreignPresets(of images: [BatchImage]) -> Set<String> {
    images.reduce(into: requested.foreignPresets) { names, image in
      if let own = image.requested { names.formUnion(own.foreignPresets) }
    }
  }

  private func fingerprint(of image: BatchImage) -> String { image.requested?.fingerprint ?? fingerprint }

  /// The outcomes of an image that an earlier run finished; `nil` if there is work to do.
  func finished(_ image: BatchImage) -> [ResultLine]? {
    guard image.problem == nil, let record = journal?.record(of: image, request: fingerprint(of: image)) else {
      return nil
    }
    if record.status == .ignored { return image.mayBeNoImage ? [ResultLine(ignored: image)] : nil }
    return record.outputs.map { output in
      let place = directory.pushing(FilePath(text: output.path))
      // No other image of this run may write there.
      try? destinations.claim(place, for: image.path)
      return ResultLine(skipped: image, output: place, rendition: output.rendition)
    }
  }

  /// The outcomes of an image whose results are all there; `nil` if one is not, or if that is not known.
  func existing(_ image: BatchImage) -> [ResultLine]? {
    let requested = requested(of: image)
    let results = requested.results
    let file = ImageFile(path: image.path).with(requested.auxiliary, requested.limits)
    guard let plan = try? file.plan(.renditions(results.map(\.configuration))) else { return nil }
    var places: [FilePath] = []
    for (result, rendition) in zip(results, plan.renditions) {
      guard case .success(let plan) = rendition else { return nil }
      let folder = directory.pushing(image.folder)
      let possible = plan.fileExtensions.map { folder.appending(text: "\(image.name)\(result.suffix).\($0)") }
      guard let place = possible.first(where: FileSystem.isFile) else { return nil }
      places.append(place)
    }
    return zip(results, places).map { result, place in
      ResultLine(skipped: image, output: place, rendition: result.id.isEmpty ? nil : result.id)
    }
  }

  /// Notes an image that is finished, unless one of its results failed or was there before.
  /// - `input`: the image's file before it was read; `nil` if it was not there.
  func note(_ image: BatchImage, _ input: FileSystem.Version?, _ lines: [ResultLine]) throws {
    guard let journal, let input, image.problem == nil, !lines.isEmpty else { return }
    if lines.allSatisfy({ $0.status == .ignored }) {
      return try journal.add(image, input, request: fingerprint(of: image), .ignored, outputs: [])
    }
    var outputs: [BatchJournal.Output] = []
    for line in lines {
      guard line.status == .done, let output = line.output,
        let byteCount = line.outputBytes ?? FileSystem.version(of: FilePath(text: output))?.byteCount
      else { return }
      var path = FilePath(text: output)
      guard path.removePrefix(directory) else { return }
      outputs.append(
        BatchJournal.Output(path: path.text, bytes: byteCount, rendition: line.rendition, facts: line.facts))
    }
    try journal.add(image, input, request: fingerprint(of: image), .done, outputs: outputs)
  }
}

internal import ImageCodecs

/// The frames of an image that a result contains.
struct FrameSelection: Sendable, Hashable {
  /// The first frame alone, or the default image of an APNG, for which decoders need the least memory.
  static let first = FrameSelection(first: 0, count: 1)

  /// The index of the first frame; negative to count from the end.
  var first: Int
  /// The maximum number of frames; 0 for all.
  var count: Int
  /// Whether a default image that is none of the frames is left out.
  private var skipsDefaultImage = false

  /// Whether all frames are selected.
  var isAll: Bool { first == 0 && count == 0 }

  /// Whether the result may have several frames.
  var isAnimation: Bool { count != 1 }

  init(first: Int, count: Int) {
    self.first = first
    self.count = count
  }

  /// Returns the warnings of a header for a result with these frames.
  func warnings(of header: ImageHeader) -> [Warning] {
    let left = first < 0 ? min(-first, header.frameCount) : header.frameCount - first
    let shown = max(1, count == 0 ? left : min(count, left))
    return header.warnings.map { Warning($0, of: header, frameCount: shown) }
  }

  /// Returns the frames that a configuration selects.
  /// - `counted`: The number of frames of a GIF or WebP whose whole file is known; otherwise `nil`.
  /// - `isCounted`: Whether the header has that number although no result needs it, as for an inspection.
  /// - Throws: `invalidField` if the image lacks the first one, `unservedField` if its format has no decoder for it.
  init(
    _ configuration: ProcessingConfiguration, of header: ImageHeader, counted: Int?, isCounted: Bool
  ) throws(PipelineError) {
    let index = try Self.index(configuration.frameIndex?.value ?? 0, of: header, counted: counted)
    self.init(first: index, count: configuration.maxFrames ?? 1)
    skipsDefaultImage = header.hasDefaultImage && (configuration.frameIndex != nil || isAnimation)
    if header.frameCount == 1, !skipsDefaultImage {
      guard index == 0 || index == -1 else { throw Self.missing(index, of: 1) }
      // An image that is processed has the results of an animation, as it turns out only then that it has one frame.
      if !isCounted { self = .first }
    } else if header.hasPages {
      self.init(first: try Self.page(index, of: header), count: 1)
    } else if header.hasFrames {
      guard index >= 0 || header.frameCount > 0 else {
        throw PipelineError(
          .unservedField,
          "frame_index is \(index), but a \(header.format.rawValue) does not specify the number of its frames; count from "
            + "the first one, or send the whole image in one message", field: "frame_index")
      }
    } else {
      let name = header.format.rawValue
      guard index == 0 else {
        throw PipelineError(
          .unservedField, "frame_index is \(index), but only the first image of \(name) files is decoded",
          field: "frame_index")
      }
      if isAnimation, header.frameCount == 0, header.format.traits.hasSequences {
        throw PipelineError(
          .unservedField,
          "max_frames is \(count), but only the first frame of \(name) files is decoded; leave it unset",
          field: "max_frames")
      }
      self = .first
    }
  }

  /// Returns the index of a page from the first one on.
  private static func page(_ index: Int, of header: ImageHeader) throws(PipelineError) -> Int {
    let page = index < 0 ? index + header.frameCount : index
    guard (0..<header.frameCount).contains(page) else {
      throw PipelineError(
        .invalidField, "frame_index is \(index), but the file has \(header.frameCount) images", field: "frame_index")
    }
    return page
  }

  /// Returns an index from the first frame on if the frames were counted.
  private static func index(_ index: Int, of header: ImageHeader, counted: Int?) throws(PipelineError) -> Int {
    guard index < 0, header.hasFrames, let counted else { return index }
    guard index + counted >= 0 else { throw missing(index, of: counted) }
    return index + counted
  }

  /// As the decoders report it of frames that they count.
  private static func missing(_ index: Int, of count: Int) -> PipelineError {
    PipelineError(
      .invalidField, "frame_index is \(index), but the image has \(count) frame\(count == 1 ? "" : "s")",
      field: "frame_index")
  }

  /// Checks that fields of a configuration can be used for results with several frames.
  /// - Throws: `unservedField` with the first field that cannot.
  static func checkFields(_ configuration: ProcessingConfiguration, format: ImageFormat) throws(PipelineError) {
    let unserved: String? =
      if configuration.maxBytes != nil, configuration.allowSmallerDimensions ?? false {
        "allow_smaller_dimensions"
      } else if configuration.targetSimilarity != nil {
        "target_similarity"
      } else if format == .png, configuration.png?.isInterlaced ?? false {
        "png.interlaced"
      } else if configuration.trim != nil {
        "trim"
      } else {
        nil
      }
    guard let unserved else { return }
    throw PipelineError(
      .unservedField,
      "\(unserved) is not supported for results with several frames; leave it unset or set max_frames "
        + "to 1", field: unserved)
  }
}

extension ImageReader {
  /// Selects the frames that all results of the image need, and updates the header; a format that stores one frame needs
  /// one.
  /// - Parameter configurations: The configurations of the results.
  /// - Throws: The errors of `FrameSelection`; `invalidField` if the results need different frames.
  mutating func selectFrames(_ configurations: [ProcessingConfiguration]) throws(PipelineError) {
    guard let header else { throw .unfinishedHeader }
    let isCounted = hasCountedHeader && !configurations.contains { ($0.frameIndex?.value ?? 0) < 0 }
    var selection: FrameSelection?
    for configuration in configurations {
      var next = try FrameSelection(
        configuration, of: header, counted: countedFrames, isCounted: isCounted)
      if next != .first { try select(next) }
      if next.isAnimation, let header = self.header {
        let format = Plan.formats(of: header, configuration, size: nil, isAnimation: true)[0]
        if format.storesFrames {
          try FrameSelection.checkFields(configuration, format: format)
        } else {
          next.count = 1
        }
      }
      guard selection == nil || selection == next else {
        throw PipelineError(
          .invalidField,
          "max_frames, frame_index and the format select other frames than those of another rendition; send separate "
            + "requests", field: "max_frames")
      }
      selection = next
    }
    try select(selection ?? .first)
  }

  private mutating func select(_ frames: FrameSelection) throws(PipelineError) {
    guard selectedFrames != frames else { return }
    selectedFrames = frames
    header = try withDecoder { (decoder) throws(CodecError) in
      try decoder.selectFrames(first: frames.first, count: frames.count)
      return decoder.header
    }
    countFrames()
  }
}

/// A request for the work on one image; the image's next bytes are lent together with it.
///
/// An `ImageServer` answers it: in this process, or in a helper process.
package enum WorkRequest {
  /// Read the header from the next bytes, then plan the results, and start the image if the planning allows it.
  case readHeader(Planning)
  /// Start decoding a planned image; no bytes are lent.
  ///
  /// - `renditionIDs`: the names of the renditions in traces; empty for a single result.
  case start(renditionIDs: [String])
  /// Process the next bytes until enough output is buffered.
  case advance

  /// The results to plan when the header is complete, and the memory in which the image may then start.
  package struct Planning {
    /// The results to plan.
    package enum Results {
      /// A result for each configuration.
      case renditions([ProcessingConfiguration])
      /// A small preview of the configuration's result, with sides of at most `maxSide` pixels.
      case preview(ProcessingConfiguration, maxSide: Int)

      /// Those of renditions: previews have one format, and neither metadata nor a gain map.
      private var renditions: [ProcessingConfiguration] {
        if case .renditions(let configurations) = self { configurations } else { [] }
      }

      /// The configurations of the results; that of a preview selects one frame.
      var configurations: [ProcessingConfiguration] {
        switch self {
        case .renditions(let configurations): return configurations
        case .preview(var configuration, _):
          configuration.maxFrames = nil
          return [configuration]
        }
      }

      /// Whether a result begins with a frame that is counted from the end.
      package var countsFromEnd: Bool { configurations.contains { ($0.frameIndex?.value ?? 0) < 0 } }
      /// Whether a result may have several frames.
      package var mayHaveFrames: Bool { configurations.contains { $0.maxFrames ?? 1 != 1 } }
      /// Whether a result may contain the gain map of the image.
      package var keepsGainMap: Bool { renditions.contains { $0.gainMap == .keep } }
      /// Whether a result may contain metadata of the image.
      var readMetadata: Bool { renditions.contains(where: \.readsMetadata) }
      /// The number of planned results.
      package var count: Int { configurations.count }

      /// Whether the format of the result at an index depends on its rows.
      package func choosesFormat(at index: Int) -> Bool {
        renditions.indices.contains(index) && renditions[index].preferredFormat == .auto
      }
    }

    /// The results to plan.
    package var results: Results
    /// The number of the image's bytes behind those that are lent; `nil` if it is not known.
    package var followingByteCount: UInt64?
    /// The EXIF orientation behind the image data of a PNG whose whole file is known; `nil` if there is none.
    package var lateOrientation: Int?
    /// The number of frames of a GIF or WebP whose whole file is known, if a frame is counted from the end or the image
    /// is only inspected; otherwise `nil`.
    package var countedFrames: Int?
    /// Whether the image is only planned: the plan describes the gain map of an HEIC or AVIF, and nothing is decoded, as if
    /// searches of pixels found nothing.
    package var isInspection = false
    /// The memory in bytes in which the image may be started at once; 0 if it must be admitted first.
    package var admittedByteCount: UInt64 = 0
    /// See `start`.
    package var renditionIDs: [String] = []

    /// Creates a planning of results, by default those of an image that must be admitted before it starts.
    package init(
      results: Results, followingByteCount: UInt64? = nil, lateOrientation: Int? = nil, countedFrames: Int? = nil,
      isInspection: Bool = false, admittedByteCount: UInt64 = 0, renditionIDs: [String] = []
    ) {
      self.results = results
      self.followingByteCount = followingByteCount
      self.lateOrientation = lateOrientation
      self.countedFrames = countedFrames
      self.isInspection = isInspection
      self.admittedByteCount = admittedByteCount
      self.renditionIDs = renditionIDs
    }
  }
}

/// The response to a `WorkRequest` that has not failed; the output is lent while the request is served.
package struct WorkResponse {
  /// The outcome of a rendition that has ended.
  package typealias End = (index: Int, outcome: RenditionOutcome)

  /// The number of bytes consumed of those that were lent.
  package var consumedByteCount = 0
  /// The number of bytes that the reader has buffered.
  package var bufferedByteCount = 0
  /// The plan, in response to the request that has completed the header.
  package var plan: PlannedImage?
  /// Whether this request has started the image.
  package var isStarted = false
  /// Whether work is paused because enough output is buffered; the next request lends the unconsumed bytes again.
  package var isPaused = false
  /// The outcomes of renditions that have ended with this request.
  package var ends: [End] = []

  /// Creates the response to a request that has done nothing.
  package init() {}
}

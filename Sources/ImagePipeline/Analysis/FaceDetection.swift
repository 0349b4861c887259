internal import ImageCodecs
internal import ImageKernels
internal import LibC
internal import Synchronization

/// The detector of faces that this process uses.
package enum FaceDetection {
  /// The file that is used unless another one is named: that of Debian's package `opencv-data`.
  package static let defaultPath = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt2.xml"
  /// The name that stands for no detector.
  package static let noPath = "none"
  /// The maximum size of a file; those of OpenCV have up to 3 MB.
  private static let maxByteCount = 8 << 20

  private enum State {
    /// The default, which is read when it is first needed.
    case unread
    case read(FaceModel?)
  }

  private static let state = Mutex<State>(.unread)

  /// Uses the detector in a file; must be called before the first image is searched.
  /// - `path`: The path of the file, or `none`.
  /// - Throws: `invalidField` with a message that starts with the path.
  package static func use(path: String) throws(PipelineError) {
    let model = path == noPath ? nil : try load(path)
    state.withLock { $0 = .read(model) }
  }

  private static func load(_ path: String) throws(PipelineError) -> FaceModel {
    let bytes: [UInt8]
    do throws(FileReadError) { bytes = try readFile(path, maxByteCount: maxByteCount) } catch {
      throw unusable(path, error.reason)
    }
    do throws(FaceModelError) { return try FaceModel(bytes: bytes) } catch { throw unusable(path, error.reason) }
  }

  private static func unusable(_ path: String, _ reason: String) -> PipelineError {
    PipelineError(
      .invalidField,
      "\(path), which is not a face detector: \(reason); it must be a cascade of OpenCV with Haar features, such "
        + "as \(defaultPath) of the package opencv-data, a sparse full-range network of MediaPipe, or \(noPath)")
  }

  /// Reads the default unless another file is used, for a process that can open no files later.
  package static func prepare() { _ = model }

  /// The detector; `nil` if there is none.
  static var model: FaceModel? {
    state.withLock { state in
      if case .read(let model) = state { return model }
      let model = try? load(defaultPath)
      state = .read(model)
      return model
    }
  }

  /// A hash of the detector, on which results with faces depend; 0 without one.
  package static var identity: UInt64 { model?.identity ?? 0 }
}

extension ProcessingConfiguration {
  /// Whether the part that `fill` keeps is chosen by the faces of the image.
  var choosesByFaces: Bool { gravity == .faces && choosesByPixels }

  /// Whether the faces of the image are hidden.
  package var hidesFaces: Bool { (regions ?? []).contains { $0.shape == .faces } }

  /// Whether the result depends on the faces of the image.
  package var findsFaces: Bool { choosesByFaces || hidesFaces }

  /// Checks that faces can be found.
  /// - Throws: `unservedField` if the result depends on faces and there is no detector.
  func checkDetector() throws(PipelineError) {
    guard findsFaces, FaceDetection.model == nil else { return }
    let field = hidesFaces ? "regions" : "gravity"
    throw PipelineError(
      .unservedField,
      "\(hidesFaces ? "a region has the shape FACES" : "gravity is FACES"), but no face detector is loaded; install the "
        + "package opencv-data, or name a detector with --face-detector", field: field)
  }
}

extension FoundFace {
  /// Returns the rectangle in an image of `size`, around whole pixels.
  func rectangle(in size: PixelSize) -> PixelRect {
    let (left, top) = (Int(x * Double(size.width)), Int(y * Double(size.height)))
    let right = min(size.width, Int(((x + width) * Double(size.width)).rounded(.up)))
    let bottom = min(size.height, Int(((y + height) * Double(size.height)).rounded(.up)))
    return PixelRect(x: left, y: top, width: max(1, right - left), height: max(1, bottom - top))
  }
}

extension PixelRect {
  /// The area that hides the face in this rectangle: with a quarter of its size on every side, for hair and chin.
  var hidingFace: Crop {
    let (across, down) = (Double(width) / 4, Double(height) / 4)
    let (left, top) = (max(0, Double(x) - across), max(0, Double(y) - down))
    return Crop(
      x: left, y: top, width: Double(x + width) + across - left, height: Double(y + height) + down - top)
  }
}

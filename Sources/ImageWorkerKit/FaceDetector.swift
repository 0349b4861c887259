internal import ImagePipeline

/// The detector of faces of this process, for ``Gravity/faces`` and regions of faces.
///
/// It is a file that OpenCV has trained, and that Debian's package `opencv-data` contains. If it is installed there, nothing
/// needs to be done. Without a detector, configurations that ask for faces are refused.
public enum FaceDetector {
  /// The file that is used unless ``use(path:)`` names another one.
  public static let defaultPath = FaceDetection.defaultPath

  /// Uses the detector in a file: a cascade of OpenCV with Haar features, or the sparse full-range network of MediaPipe.
  ///
  /// Call it before the first image is processed.
  /// - Parameter path: The path of the file.
  /// - Throws: ``ImageProcessingError`` with the path and the reason, if it is no such file.
  public static func use(path: String) throws(ImageProcessingError) {
    try ImageProcessingError.mapping { () throws(PipelineError) in try FaceDetection.use(path: path) }
  }
}

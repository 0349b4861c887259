internal import ImagePipeline

/// The file with which faces are found.
enum FaceDetectorFile {
  private static let option = "--face-detector"

  static let help =
    "Find faces with this cascade of OpenCV, an XML file of Haar features, or sparse full-range network of MediaPipe, a "
    + "TensorFlow Lite file; \(FaceDetection.noPath) for no detector."

  /// The detector that is used if no file is named.
  static let defaultText = "the cascade of the package opencv-data, if it is installed"

  /// Uses a file in this process.
  /// - Throws: an error that names the option.
  static func use(_ path: String) throws(SettingsError) {
    do throws(PipelineError) { try FaceDetection.use(path: path) } catch {
      throw SettingsError(description: "\(option) is \(error.message)")
    }
  }

  /// Uses a file, or the default, and reads it now.
  /// - Throws: an error that names the option, of a file that was named.
  static func load(_ path: String?) throws(SettingsError) {
    if let path { try use(path) }
    FaceDetection.prepare()
  }
}

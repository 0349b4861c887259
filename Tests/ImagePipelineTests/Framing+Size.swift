import ImagePipeline
import Testing

/// Returns the result's size for an image shown with `size`.
///
/// If the configuration is refused, it records an issue and returns `size`.
func outputSize(of size: PixelSize, configuration: ProcessingConfiguration) -> PixelSize {
  do { return try Framing(shown: size, configuration: configuration).canvasSize } catch {
    Issue.record("\(configuration) is refused: \(error)")
    return size
  }
}

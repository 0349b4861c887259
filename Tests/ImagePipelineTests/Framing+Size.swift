import ImagePipeline
import Testing

/// The size of the result for an image shown with `size`; an issue, and `size`, where the configuration is refused.
func outputSize(of size: PixelSize, configuration: ProcessingConfiguration) -> PixelSize {
  do { return try Framing(shown: size, configuration: configuration).canvasSize } catch {
    Issue.record("\(configuration) is refused: \(error)")
    return size
  }
}

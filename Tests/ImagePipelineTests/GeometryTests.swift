import ImageKernels
import ImagePipeline
import TestSupport
import Testing

@Suite("Geometry")
struct GeometryTests {
  @Test("a 4000x3000 image under thumbnail becomes 960x720")
  func thumbnail() {
    let size = outputSize(
      of: PixelSize(width: 4000, height: 3000), configuration: ProcessingConfiguration(maxWidth: 1280, maxHeight: 720))
    #expect(size == PixelSize(width: 960, height: 720))
  }

  @Test("fit respects both bounds and the aspect ratio within half a pixel, and never enlarges")
  func fitProperties() {
    var random = SeededGenerator(seed: 4)
    for _ in 0..<20_000 {
      let shown = PixelSize(
        width: .random(in: 1...20_000, using: &random), height: .random(in: 1...20_000, using: &random))
      let bounds = PixelSize(
        width: .random(in: 1...5000, using: &random), height: .random(in: 1...5000, using: &random))
      let factor = Bool.random(using: &random) ? 1 : Double.random(in: 1...4, using: &random)
      let configuration = ProcessingConfiguration(
        maxWidth: bounds.width, maxHeight: bounds.height, scaleFactor: factor)
      let size = outputSize(of: shown, configuration: configuration)
      let limit = (max(1, Int(Double(bounds.width) / factor)), max(1, Int(Double(bounds.height) / factor)))
      #expect(size.width >= 1 && size.height >= 1)
      #expect(size.width <= limit.0 && size.height <= limit.1, "\(shown) in \(bounds) at \(factor)")
      #expect(size.width <= shown.width && size.height <= shown.height)
      let scale = min(1, Double(limit.0) / Double(shown.width), Double(limit.1) / Double(shown.height))
      #expect(abs(Double(size.width) - max(1, Double(shown.width) * scale)) <= 0.5 + 1e-9)
      #expect(abs(Double(size.height) - max(1, Double(shown.height) * scale)) <= 0.5 + 1e-9)
    }
  }

  @Test("allow_upscale enlarges to the bounds, and one bound alone is enough")
  func upscaleAndSingleBound() {
    let small = PixelSize(width: 100, height: 50)
    func size(_ configuration: ProcessingConfiguration) -> PixelSize {
      outputSize(of: small, configuration: configuration)
    }
    #expect(size(ProcessingConfiguration(maxWidth: 200, maxHeight: 200)) == small)
    #expect(size(ProcessingConfiguration(maxWidth: 200, maxHeight: 200, allowUpscale: true)).width == 200)
    #expect(size(ProcessingConfiguration(maxWidth: 50)) == PixelSize(width: 50, height: 25))
    #expect(size(ProcessingConfiguration(maxHeight: 10)) == PixelSize(width: 20, height: 10))
    #expect(size(ProcessingConfiguration()) == small)
  }

  @Test("scale_factor divides the bounds: 1280 at 2 is 640")
  func scaleFactor() {
    let size = outputSize(
      of: PixelSize(width: 4000, height: 4000), configuration: ProcessingConfiguration(maxWidth: 1280, scaleFactor: 2))
    #expect(size == PixelSize(width: 640, height: 640))
  }

  @Test("stretch returns exactly the bounds")
  func stretch() {
    let size = outputSize(
      of: PixelSize(width: 400, height: 300),
      configuration: ProcessingConfiguration(maxWidth: 100, maxHeight: 200, resizeMode: .stretch))
    #expect(size == PixelSize(width: 100, height: 200))
  }

  @Test("the decode scale never falls below the residual on either axis")
  func decodeScale() {
    for width in stride(from: 64, through: 8000, by: 97) {
      for target in [16, 64, 300, 960] {
        let stored = PixelSize(width: width, height: width * 3 / 4)
        let wanted = PixelSize(width: target, height: max(1, target * 3 / 4))
        let scale = Geometry.decodeScale(window: stored, target: wanted, scales: [8, 1, 2, 4], residual: 2)
        #expect(scale == 8 || Double(stored.width) * Double(scale) / 8 >= 2 * Double(wanted.width))
        #expect(scale == 8 || Double(stored.height) * Double(scale) / 8 >= 2 * Double(wanted.height))
        if scale > 1 {
          let smaller = scale == 8 ? 4 : scale / 2
          #expect(
            Double(stored.width) * Double(smaller) / 8 < 2 * Double(wanted.width)
              || Double(stored.height) * Double(smaller) / 8 < 2 * Double(wanted.height))
        }
      }
    }
  }

  @Test("a subsampled plane of odd length extends past the end, or past the start if shown in reverse")
  func chromaSiting() {
    func axis(_ isReversed: Bool) -> AxisGeometry {
      AxisGeometry(
        sourceCount: 50, sourceScale: 0.5, sourceLength: 100, destinationScale: 0.5, destinationLength: 33,
        isReversed: isReversed)
    }
    #expect(axis(false).destinationCount == 17)
    #expect(axis(false).ratio == 50 / 16.5 && axis(false).offset == 0)
    #expect(axis(true).offset == -0.5 * 50 / 16.5)
  }
}

import ImageCodecs
import ImagePipeline
import Testing
import WorkerProtocol

@testable import WorkerService

@Suite("Tensors on the wire")
struct TensorWireTests {
  private static func info(_ tensor: TensorInfo?) -> ImageInfo {
    ImageInfo(
      format: "raw", size: PixelSize(width: 48, height: 40), orientation: 1, hasAlpha: false, bitDepth: 16,
      colorSpace: "rgb", frameCount: 1, tensor: tensor)
  }

  @Test("are read as they were written", arguments: TensorOptions.Layout.allCases, TensorOptions.ElementType.allCases)
  func roundTrip(layout: TensorOptions.Layout, element: TensorOptions.ElementType) {
    for channels in TensorOptions.Channels.allCases {
      let tensor = TensorInfo(
        element: element, layout: layout, channels: channels, size: PixelSize(width: 48, height: 40),
        content: PixelRect(x: 0, y: 4, width: 48, height: 32))
      let wire = Imageworker_V1_ImageInfo(Self.info(tensor))
      #expect(wire.tensor.shape.map(Int.init) == tensor.shape && wire.tensor.strides.map(Int.init) == tensor.strides)
      #expect(wire.tensor.byteOrder == "little" && wire.tensor.content.y == 4 && wire.tensor.content.height == 32)
      #expect(ImageInfo(wire) == Self.info(tensor))
    }
    #expect(!Imageworker_V1_ImageInfo(Self.info(nil)).hasTensor)
  }

  @Test("with values that no result has are ignored")
  func hostile() {
    let tensor = TensorInfo(
      element: .u8, layout: .hwc, channels: .rgb, size: PixelSize(width: 48, height: 40),
      content: PixelRect(x: 0, y: 0, width: 48, height: 40))
    let wire = Imageworker_V1_ImageInfo(Self.info(tensor))
    let changes: [(inout Imageworker_V1_TensorInfo) -> Void] = [
      { $0.shape = [] }, { $0.shape = [1, 2] }, { $0.shape[0] = .max }, { $0.elementType = .unspecified },
      { $0.layout = .UNRECOGNIZED(9) }, { $0.content.x = .max }, { $0.clearContent() }, { $0 = .init() },
    ]
    for (index, change) in changes.enumerated() {
      var changed = wire
      change(&changed.tensor)
      #expect(ImageInfo(changed).tensor == nil, "\(index)")
    }
  }
}

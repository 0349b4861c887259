import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Default images of APNGs")
struct DefaultImageTests {
  private static let gray = [UInt8](repeating: 90, count: 12)
  private static let red = (0..<4).flatMap { _ in [200, 0, 0] as [UInt8] }
  private static let blue = (0..<4).flatMap { _ in [0, 0, 200] as [UInt8] }

  /// An APNG of 2x2 pixels whose gray default image is none of its frames.
  private static func apng(_ frames: [[UInt8]]) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { Container.bigEndian(value, byteCount: 4) }
    func rows(_ pixels: [UInt8]) -> [UInt8] { [0] + pixels.prefix(6) + [0] + pixels.suffix(6) }
    let still = Container.png(width: 2, height: 2, bitDepth: 8, colorType: 2, rows: rows(gray))
    let counted = Container.png(still, adding: [("acTL", number(frames.count) + number(3))])
    var chunks: [(type: String, body: [UInt8])] = []
    for (index, pixels) in frames.enumerated() {
      let control: [[UInt8]] = [number(2 * index), number(2), number(2), number(0), number(0), [0, 7, 0, 100, 0, 0]]
      chunks.append(("fcTL", control.flatMap(\.self)))
      chunks.append(("fdAT", number(2 * index + 1) + Container.stored(rows(pixels))))
    }
    return Container.png(counted, appending: chunks)
  }

  private static func opaque(_ pixels: [UInt8]) -> [UInt8] {
    stride(from: 0, to: 12, by: 3).flatMap { pixels[$0..<$0 + 3] + [255] }
  }

  @Test(
    "a frame is shown if frames were requested, otherwise the default image", arguments: [[red], [red, blue]],
    [true, false])
  func selection(frames: [[UInt8]], isEncoded: Bool) throws {
    let bytes = Self.apng(frames)
    var configuration = ProcessingConfiguration(preferredFormat: .png, alwaysEncode: isEncoded)
    let shown = try process(bytes, configuration)
    #expect(try Pixels.decode(shown.bytes).planes == [Self.gray])
    configuration.maxFrames = 0
    let all = try Pixels.decode(process(bytes, configuration).bytes, frames: (0, 0))
    #expect(all.frameBytes == frames.map(Self.opaque))
    configuration.maxFrames = nil
    for index in frames.indices {
      for selected in [index, index - frames.count] {
        configuration.frameIndex = FrameIndex(selected)
        let (result, report) = try process(bytes, configuration)
        #expect(try Pixels.decode(result).planes == [Self.opaque(frames[index])])
        #expect(report.output.frameCount == 1)
      }
    }
  }

  @Test("a still format gets the first frame of an animation that was requested")
  func stillFormat() throws {
    let bytes = Self.apng([Self.red])
    for (configuration, expected) in [
      (ProcessingConfiguration(preferredFormat: .jpeg), 90.0),
      (ProcessingConfiguration(preferredFormat: .jpeg, maxFrames: 0), 200),
      (ProcessingConfiguration(preferredFormat: .jpeg, frameIndex: FrameIndex(0)), 200),
    ] {
      let pixels = try Pixels.decode(process(bytes, configuration).bytes)
      #expect(abs(pixels.color(x: 0, y: 0)[0] - expected) < 6)
    }
  }

  @Test("a search of the pixels is refused for frames, as it sees the default image")
  func search() throws {
    let bytes = Self.apng([Self.red, Self.blue])
    for (configuration, field) in [
      (ProcessingConfiguration(preferredFormat: .jpeg, maxFrames: 0, trim: Trim()), "max_frames"),
      (ProcessingConfiguration(preferredFormat: .jpeg, frameIndex: FrameIndex(0), trim: Trim()), "frame_index"),
    ] {
      let error = #expect(throws: PipelineError.self) { try process(bytes, configuration) }
      #expect(error?.code == .unservedField && error?.field == field)
    }
    _ = try process(bytes, ProcessingConfiguration(preferredFormat: .jpeg, trim: Trim()))
  }

  @Test("renditions of the default image and of a frame are refused")
  func renditions() throws {
    let still = ProcessingConfiguration(preferredFormat: .png)
    let error = #expect(throws: PipelineError.self) {
      let frame = ProcessingConfiguration(preferredFormat: .png, frameIndex: FrameIndex(0))
      _ = try process(Self.apng([Self.red]), [still, frame])
    }
    #expect(error?.code == .invalidField && error?.field == "max_frames")
  }
}

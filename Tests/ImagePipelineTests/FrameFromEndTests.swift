import ImageCodecs
import ImagePipeline
import TestSupport
import Testing

@Suite("Frames counted from the end")
struct FrameFromEndTests {
  @Test("a bitmap of an icon has nothing of the PNG before it")
  func iconAfterPNG() throws {
    let (icon, png) = (Fixture.bytes("icon-bitmap.ico"), Fixture.bytes("pngsuite-basn2c16.png"))
    let bitmap = Array(icon[22...])
    func entry(_ size: [UInt8], _ byteCount: Int, at place: Int) -> [UInt8] {
      size + [0, 0, 1, 0, 32, 0] + Container.littleEndian(byteCount, byteCount: 4)
        + Container.littleEndian(place, byteCount: 4)
    }
    let file =
      [0, 0, 1, 0, 2, 0] + entry([0, 0], png.count, at: 38)
      + entry([icon[6], icon[7]], bitmap.count, at: 38 + png.count)
      + png + bitmap
    func result(_ file: [UInt8], _ index: Int?) throws -> (bytes: [UInt8], report: ProcessingReport) {
      var configuration = ProcessingConfiguration(preferredFormat: .png)
      configuration.frameIndex = index.map { FrameIndex($0) }
      configuration.png = PNGOptions(bitDepth: 16)
      return try process(file, configuration)
    }
    #expect(try result(file, nil).report.output.bitDepth == 16)
    let (other, alone) = (try result(file, 1), try result(icon, nil))
    #expect(other.bytes == alone.bytes && other.report.output.bitDepth == 8)
  }

  @Test("a frame of a GIF counts from the end if the whole file is known", arguments: 1...8 as ClosedRange<UInt64>)
  func fromTheEnd(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var file = GIFAnimation.random(&generator, frameCount: 4).bytes
    file.insert(contentsOf: [0x21, 0xFE, 3, 0x61, 0x62, 0x63, 0, 0], at: 37)  // a comment, and a stray terminator
    #expect(ImageReader.frameCount(of: file.span.bytes) == 4)
    for count in 0..<file.count where seed == 1 {
      #expect(ImageReader.frameCount(of: file.span.bytes.extracting(first: count)) == nil)
    }
    func frame(_ index: Int) throws(PipelineError) -> [UInt8] {
      var reader = ImageReader(limits: ImageLimits())
      reader.countedFrames = ImageReader.frameCount(of: file.span.bytes)
      let consumed = try reader.push(file.span.bytes, isLast: true).consumedByteCount
      let plan = try reader.plan(ProcessingConfiguration(preferredFormat: .png, frameIndex: FrameIndex(index)))
      let route = try reader.takeRoute(plan, cancellation: Cancellation())
      var output: [UInt8] = []
      _ = try route.push(file.span.bytes.extracting(droppingFirst: consumed), isLast: true) { output.append($0) }
      return output
    }
    for index in 1...4 { #expect(try frame(-index) == frame(4 - index)) }
    let error = #expect(throws: PipelineError.self) { _ = try frame(-5) }
    #expect(error?.code == .invalidField && error?.field == "frame_index")
    let unknown = #expect(throws: PipelineError.self) {
      _ = try process(file, ProcessingConfiguration(frameIndex: FrameIndex(-1)))
    }
    #expect(unknown?.code == .unservedField && unknown?.field == "frame_index")
  }

  @Test("a frame of a WebP counts from the end, whether its frames are counted or it is buffered")
  func fromTheEndOfWebP() throws {
    var generator = SeededGenerator(seed: 2)
    let gif = GIFAnimation.random(&generator, frameCount: 5).bytes
    let lossless = WebPOptions(isLossless: true)
    let file = try process(gif, ProcessingConfiguration(preferredFormat: .webp, maxFrames: 0, webp: lossless)).bytes
    let count = try Pixels.decode(file, frames: (0, 0)).frames.count
    #expect(count > 3 && ImageReader.frameCount(of: file.span.bytes) == count)
    for length in 0..<file.count {
      #expect(ImageReader.frameCount(of: file.span.bytes.extracting(first: length)) == nil)
    }
    for windowByteCount in [50, Int.max] {
      func frame(_ index: Int, counted: Int?) throws(PipelineError) -> [UInt8] {
        let configuration = ProcessingConfiguration(preferredFormat: .png, frameIndex: FrameIndex(index))
        return try process(file, configuration, windowByteCount: windowByteCount, countedFrames: counted).bytes
      }
      for index in 1...count {
        let expected = try frame(count - index, counted: nil)
        #expect(try frame(-index, counted: nil) == expected && frame(-index, counted: count) == expected)
      }
      for counted in [nil, count] {
        let error = #expect(throws: PipelineError.self) { _ = try frame(-count - 1, counted: counted) }
        #expect(error?.code == .invalidField && error?.field == "frame_index")
      }
    }
  }
}

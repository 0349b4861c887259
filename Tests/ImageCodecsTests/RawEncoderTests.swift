import ImageCodecs
import TestSupport
import Testing

/// Compares raw results with their definition, element by element.
@Suite("Raw results")
struct RawEncoderTests {
  private static let height = 5

  /// The size of the parts in which the first plane leaves.
  private static let partByteCount = 64 * 1024

  /// Widths around the sizes of vectors and of blocks.
  private static let widths = [1, 7, 8, 15, 16, 17, 23, 24, 25, 224, 239, 240, 241, 500]

  private static let scalings: [TensorOptions] = [
    TensorOptions(elementType: .u8),
    TensorOptions(elementType: .f32), TensorOptions(elementType: .f16, normalization: .imagenet),
    TensorOptions(elementType: .bf16, normalization: .clip), TensorOptions(elementType: .f16, normalization: .half),
    TensorOptions(elementType: .f32, normalization: TensorOptions.Normalization.none),
    // Denormal halves, and values on both sides of the middle between two of them.
    TensorOptions(elementType: .f16, scale: 1e-7, mean: ChannelValues([1e-5])),
    TensorOptions(elementType: .f16, scale: 8.0009765625, standardDeviation: ChannelValues([0.5, 1, 3])),
    TensorOptions(
      elementType: .bf16, scale: 1.001, mean: ChannelValues([-3, 0.1, 17]),
      standardDeviation: ChannelValues([0.3, 1, 77])),
  ]

  private func encode(_ samples: [UInt8], _ options: EncoderOptions, rowCount: Int) throws -> [UInt8] {
    let budget = ImageBudget(limit: 1 << 24)
    var output: [UInt8] = []
    do {
      var encoder = try Encoder(options: options, budget: budget)
      let buffer = try PixelBuffer(byteCount: 100, budget: budget)
      let rows = try rowBuffer(samples, rowByteCount: options.width * options.pixelFormat.pixelByteCount)
      let isPlanar = options.tensor.isPlanar && options.tensor.order.count > 1
      let rowByteCount = Int(try options.maxByteCount()) / options.height / (isPlanar ? 3 : 1)
      for first in stride(from: 0, to: options.height, by: rowCount) {
        let count = min(rowCount, options.height - first)
        try encoder.write(Strip(format: options.pixelFormat, rows: rows.rows(first: first, count: count)))
        encoder.drain(buffer) { output.append($0) }
        // Interleaved rows leave at once, those of the first plane in parts.
        let complete = (first + count) * rowByteCount
        #expect(output.count == (isPlanar ? complete / Self.partByteCount * Self.partByteCount : complete))
      }
      try encoder.finish()
      encoder.drain(buffer) { output.append($0) }
      #expect(UInt64(budget.peak) <= (try options.estimatedByteCount()) + 4096)
    }
    #expect(budget.used == 0)
    return output
  }

  /// Returns the sample of a channel, in the order of the result.
  private func sample(_ pixel: ArraySlice<UInt8>, _ channel: Int, _ channels: TensorOptions.Channels) -> UInt8 {
    let rgb = pixel.count == 1 ? [pixel.first!, pixel.first!, pixel.first!] : Array(pixel)
    switch channels {
    case .rgb: return rgb[channel]
    case .bgr: return rgb[2 - channel]
    case .gray:
      let weighted = 19595 * UInt32(rgb[0]) + 38470 * UInt32(rgb[1]) + 7471 * UInt32(rgb[2])
      return UInt8((weighted + 32768) >> 16)
    }
  }

  private func element(_ sample: UInt8, _ channel: Int, _ options: TensorOptions) -> [UInt8] {
    func bytes(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.littleEndian, Array.init) }
    let (scale, offset) = options.scaling[channel]
    let product = Float(sample) * scale
    let value = product + offset
    switch options.element {
    case .u8: return [sample]
    case .f32: return bytes(value.bitPattern)
    case .bf16:
      let bits = value.bitPattern
      return bytes(UInt16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16))
    case .f16: return bytes(Float16(value).bitPattern)
    }
  }

  private func expected(_ samples: [UInt8], _ options: EncoderOptions) -> [UInt8] {
    let tensor = options.tensor
    let size = options.pixelFormat.pixelByteCount
    let pixels = (0..<options.width * options.height).map { samples[$0 * size..<($0 + 1) * size] }
    let channels = Array(0..<tensor.order.count)
    func element(_ pixel: ArraySlice<UInt8>, _ channel: Int) -> [UInt8] {
      self.element(sample(pixel, channel, tensor.order), channel, tensor)
    }
    return tensor.isPlanar
      ? channels.flatMap { channel in pixels.flatMap { element($0, channel) } }
      : pixels.flatMap { pixel in channels.flatMap { element(pixel, $0) } }
  }

  @Test("have the elements of their definition, for any width and strip height", arguments: scalings, widths)
  func definition(scaling: TensorOptions, width: Int) throws {
    for format in [PixelFormat.rgb8, .gray8] {
      let samples = noiseSamples(width * Self.height * format.pixelByteCount)
      for layout in TensorOptions.Layout.allCases {
        for channels in TensorOptions.Channels.allCases {
          var options = EncoderOptions(format: .raw, width: width, height: Self.height, pixelFormat: format)
          options.tensor = scaling
          (options.tensor.layout, options.tensor.channels) = (layout, channels)
          let result = try encode(samples, options, rowCount: 2)
          #expect(result == expected(samples, options), "\(format) to \(channels) \(layout)")
          #expect(UInt64(result.count) == (try options.maxByteCount()))
          #expect(try encode(samples, options, rowCount: Self.height) == result)
        }
      }
    }
  }

  @Test("of planes leave in parts as the rows of the first plane arrive")
  func parts() throws {
    var options = EncoderOptions(format: .raw, width: 224, height: 320, pixelFormat: .gray8)
    options.tensor = TensorOptions(elementType: .f16, layout: .chw, normalization: .imagenet)
    let samples = noiseSamples(options.width * options.height)
    #expect(try encode(samples, options, rowCount: 7) == encode(samples, options, rowCount: options.height))
  }

  @Test("have the values of well-known normalizations")
  func normalizations() {
    func scaling(_ name: TensorOptions.Normalization?, _ channels: TensorOptions.Channels = .rgb) -> [[Float]] {
      TensorOptions(elementType: .f32, channels: channels, normalization: name).scaling.map { [$0.scale, $0.offset] }
    }
    #expect(scaling(nil) == Array(repeating: [1 / 255, 0], count: 3) && scaling(.unit) == scaling(nil))
    #expect(scaling(TensorOptions.Normalization.none) == Array(repeating: [1, 0], count: 3))
    #expect(scaling(.half)[0] == [Float(2.0 / 255), -1])
    #expect(scaling(.imagenet)[2] == [Float(1 / 255 / 0.225), Float(-0.406 / 0.225)])
    #expect(scaling(.imagenet, .bgr) == scaling(.imagenet).reversed())
    #expect(scaling(.clip)[0] == [Float(1 / 255 / 0.26862954), Float(-0.48145466 / 0.26862954)])
    #expect(TensorOptions().scaling.map(\.scale) == [1, 1, 1])
  }

  @Test("of planes are refused if they exceed the memory limit")
  func memory() {
    var options = EncoderOptions(format: .raw, width: 1000, height: 1000, pixelFormat: .rgb8)
    options.tensor = TensorOptions(elementType: .f32, layout: .chw)
    let error = #expect(throws: CodecError.self) {
      _ = try Encoder(options: options, budget: ImageBudget(limit: 1 << 20))
    }
    #expect(error?.code == .outOfMemory)
  }
}

import CPixels
import Testing

/// A resampling to test.
struct ResizeCase: Sendable, CustomTestStringConvertible {
  var source: (width: Int, height: Int)
  var destination: (width: Int, height: Int)
  let channels: Int
  /// A factor applied to the ratio of the sizes.
  let scale: Double
  let offset: Double
  let kernel: cpixels_kernel
  let emphasis: Double
  /// Whether `cpixels_exact` resamples.
  let isExact: Bool
  /// Of `cpixels_exact`: how the image is displayed.
  var isColumnsFirst = false
  var isReversed = (horizontal: false, vertical: false)
  /// Converts samples to linear light, as `cpixels_resizer` drops taps outside the source then; `nil` to leave them.
  let light: Light?

  /// The channels that are signals of light.
  enum Light {
    case color, colorAndAlpha
  }

  init(
    _ source: (Int, Int), _ destination: (Int, Int), channels: Int = 1, scale: Double = 1, offset: Double = 0,
    kernel: cpixels_kernel = CPIXELS_KERNEL_LANCZOS3, emphasis: Double = 0, isExact: Bool = false,
    light: Light? = nil
  ) {
    self.source = source
    self.destination = destination
    self.channels = channels
    self.scale = scale
    self.offset = offset
    self.kernel = kernel
    self.emphasis = emphasis
    self.isExact = isExact
    self.light = light
  }

  var testDescription: String {
    let sizes = "\(source.width)x\(source.height) to \(destination.width)x\(destination.height)"
    let kernel = "kernel \(kernel.rawValue), scale \(scale), offset \(offset), emphasis \(emphasis)"
    return
      "\(sizes), \(channels) channels, \(kernel)\(isExact ? ", exact" : "")\(light.map { ", light of \($0)" } ?? "")"
  }

  var sourceRowSampleCount: Int { source.width * channels }
  var sourceSampleCount: Int { sourceRowSampleCount * source.height }
  var destinationRowCount: Int { destination.width * channels }

  func ratio(_ source: Int, _ destination: Int) -> Double { Double(source) / Double(destination) * scale }

  func options(_ sample: cpixels_sample, _ isa: cpixels_isa) -> cpixels_resizer_options {
    func axis(_ source: Int, _ destination: Int, _ isReversed: Bool) -> cpixels_axis_options {
      cpixels_axis_options(
        source_count: UInt32(source), destination_count: UInt32(destination), ratio: ratio(source, destination),
        offset: offset, kernel: kernel, emphasis: emphasis, drops_outside: light != nil,
        is_reversed: isReversed)
    }
    return cpixels_resizer_options(
      horizontal: axis(source.width, destination.width, isReversed.horizontal),
      vertical: axis(source.height, destination.height, isReversed.vertical), channels: UInt8(channels),
      sample: sample, in_linear_light: light != nil, has_alpha: light == .colorAndAlpha,
      columns_first: isColumnsFirst, isa: isa)
  }

  /// Returns the whole image resampled, with rows pushed and read in portions.
  func resize<Sample: FixedWidthInteger>(
    _ source: [Sample], isa: cpixels_isa, _ portions: ResizePortions = ResizePortions(pushed: 16, read: 16),
    known: ResizeDriver? = nil
  ) -> [Sample] {
    let driver = ResizeDriver(self, sampleSize: MemoryLayout<Sample>.size, isa: isa, known: known)
    var output: [Sample] = []
    var rows = [Sample](repeating: 0, count: destinationRowCount * portions.read)
    var pushed = 0
    while output.count < destinationRowCount * destination.height {
      let count = driver.push(source, from: pushed, rowCount: min(portions.pushed, self.source.height - pushed))
      pushed += count
      let read = driver.read(into: &rows, rowCount: portions.read)
      if count == 0, read == 0 {
        Issue.record("stuck after \(pushed) rows in, \(output.count / destinationRowCount) out")
        break
      }
      output += rows.prefix(read * destinationRowCount)
    }
    driver.expectFencesIntact()
    return output
  }
}

struct ResizePortions {
  let pushed: Int
  let read: Int
}

/// Owns a resizer in a memory block with guard bytes around it.
final class ResizeDriver {
  private static let fenceByteCount = 256
  private let test: ResizeCase
  private let sampleSize: Int
  private let block: UnsafeMutableRawBufferPointer
  let resizer: OpaquePointer

  /// - `known`: a resizer whose weights are copied where axes are the same.
  init(_ test: ResizeCase, sampleSize: Int, isa: cpixels_isa, known: ResizeDriver? = nil) {
    var options = test.options(sampleSize == 1 ? CPIXELS_SAMPLE_U8 : CPIXELS_SAMPLE_U16, isa)
    var byteCount = 0
    #expect(
      test.isExact ? cpixels_exact_measure(&options, &byteCount) : cpixels_resizer_measure(&options, &byteCount))
    block = .allocate(byteCount: byteCount + 2 * Self.fenceByteCount, alignment: 64)
    block.initializeMemory(as: UInt8.self, repeating: 0xA5)
    let memory = block.baseAddress! + Self.fenceByteCount
    resizer =
      test.isExact ? cpixels_exact_init(&options, memory)! : cpixels_resizer_init(&options, known?.resizer, memory)!
    self.test = test
    self.sampleSize = sampleSize
  }

  deinit { block.deallocate() }

  func push<Sample>(_ source: [Sample], from row: Int, rowCount: Int) -> Int {
    let rowByteCount = test.sourceRowSampleCount * sampleSize
    return source.withUnsafeBytes {
      let rows = $0.baseAddress! + row * rowByteCount
      return test.isExact
        ? cpixels_exact_push(resizer, rows, rowByteCount, rowCount)
        : cpixels_resizer_push(resizer, rows, rowByteCount, rowCount)
    }
  }

  func read<Sample>(into rows: inout [Sample], rowCount: Int) -> Int {
    let rowByteCount = test.destinationRowCount * sampleSize
    return rows.withUnsafeMutableBytes {
      test.isExact
        ? cpixels_exact_read(resizer, $0.baseAddress!, rowByteCount, rowCount)
        : cpixels_resizer_read(resizer, $0.baseAddress!, rowByteCount, rowCount)
    }
  }

  func expectFencesIntact() {
    #expect(block.prefix(Self.fenceByteCount).allSatisfy { $0 == 0xA5 })
    #expect(block.suffix(Self.fenceByteCount).allSatisfy { $0 == 0xA5 })
  }
}

/// Returns repeatable samples without a pattern.
func noise(_ count: Int) -> [UInt8] {
  var state: UInt32 = 12345
  return (0..<count).map { _ in
    state = state &* 1_664_525 &+ 1_013_904_223
    return UInt8(state >> 24)
  }
}

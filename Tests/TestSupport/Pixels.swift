package import ImageCodecs
package import ImagePipeline

/// A completely decoded image, for comparisons.
package struct Pixels: Equatable, Sendable {
  package var format: PixelFormat
  package var layout: [PlaneLayout]
  /// The bytes of each plane; of an animation, of all frames one after another.
  package var planes: [[UInt8]]
  /// The frames that were decoded.
  package var frames: [ImageFrame] = []
  /// The warnings after the last row.
  package var warnings: [ImageHeader.Warning] = []
  package var damagedRow: Int?

  /// Decodes `bytes`, supplied in windows of `windowByteCount` bytes.
  package static func decode(
    _ bytes: [UInt8], windowByteCount: Int = .max, scale: Int = 8, maySkipSmoothing: Bool = false,
    returnsRGB: Bool = false, frames: (first: Int, count: Int) = (0, 1),
    toleratesTruncation: Bool = false, toleratesDamage: Bool = false,
    budget: ImageBudget = ImageBudget(limit: 1 << 30),
    limits: CodecLimits = CodecLimits(maxPixels: 0, maxBufferedPixels: 0, maxScans: 100)
  ) throws(CodecError) -> Pixels {
    guard let format = ImageFormat.sniff(bytes.span.bytes) else {
      throw CodecError(code: .unsupported, message: "no known format")
    }
    var decoder = try Decoder(format: format, limits: limits, budget: budget)
    var windows = Windows(bytes: bytes, windowByteCount: windowByteCount)
    while true {
      let progress = try decoder.readHeader(windows.current, isLast: windows.isLast)
      windows.consume(progress.consumedByteCount)
      if progress.value { break }
      windows.advance()
    }
    if frames != (0, 1) { try decoder.selectFrames(first: frames.first, count: frames.count) }
    let layout = try decoder.start(
      scale: scale, toleratesTruncation: toleratesTruncation, toleratesDamage: toleratesDamage,
      maySkipSmoothing: maySkipSmoothing, returnsRGB: returnsRGB)
    var isInFrame = false
    var pixels = Pixels(format: layout.format, layout: layout.planes, planes: layout.planes.map { _ in [] })
    while true {
      let progress = try decoder.read(windows.current, isLast: windows.isLast)
      windows.consume(progress.consumedByteCount)
      switch progress.value {
      case .needsInput: windows.advance()
      case .stripReady:
        decoder.withStrip { strip in pixels.append(strip) }
        isInFrame = true
      case .frameDone:
        pixels.frames.append(decoder.frame)
        isInFrame = false
      case .done:
        // A tolerated end between two frames leaves no rows of the next one.
        if isInFrame { pixels.frames.append(decoder.frame) }
        pixels.warnings = decoder.header.warnings
        pixels.damagedRow = decoder.header.damagedRow
        return pixels
      }
    }
  }

  mutating func append(_ strip: borrowing Strip) {
    for index in planes.indices {
      for row in 0..<strip.plane(index).rowCount {
        strip.plane(index).withRow(row) { span in
          span.extracting(first: layout[index].width * format.pixelByteCount).withUnsafeBytes {
            planes[index].append(contentsOf: $0)
          }
        }
      }
    }
  }

  /// The bytes of each frame of an image with one plane.
  package var frameBytes: [[UInt8]] {
    let count = planes[0].count / frames.count
    return frames.indices.map { Array(planes[0][$0 * count..<($0 + 1) * count]) }
  }

  package func sample(x: Int, y: Int, channel: Int = 0, plane: Int = 0) -> Int {
    let index = (y * layout[plane].width + x) * format.channelCount + channel
    guard format.is16Bit else { return Int(planes[plane][index]) }
    return planes[plane].withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 2 * index, as: UInt16.self)) }
  }

  /// Returns red, green and blue of a pixel, 0 to 255, over a white background.
  package func color(x: Int, y: Int) -> [Double] {
    switch format {
    case .gray8, .gray16: return [Double](repeating: level(x, y, 0), count: 3)
    case .rgb8, .rgb16: return (0..<3).map { level(x, y, $0) }
    case .rgba8, .rgba16:
      let alpha = level(x, y, 3) / 255
      return (0..<3).map { level(x, y, $0) * alpha + 255 * (1 - alpha) }
    case .ycc8:
      let luma = Double(sample(x: x, y: y))
      let chroma = (1...2).map { plane in
        let layout = layout[plane]
        let (cx, cy) = (Int(Double(x) * layout.horizontalScale), Int(Double(y) * layout.verticalScale))
        return Double(sample(x: min(cx, layout.width - 1), y: min(cy, layout.height - 1), plane: plane)) - 128
      }
      return [luma + 1.402 * chroma[1], luma - 0.344136 * chroma[0] - 0.714136 * chroma[1], luma + 1.772 * chroma[0]]
        .map { min(255, max(0, $0)) }
    case .premultipliedRGBA16, .cmyk8: preconditionFailure("decoders do not give these")
    }
  }

  private func level(_ x: Int, _ y: Int, _ channel: Int) -> Double {
    Double(sample(x: x, y: y, channel: channel)) / (format.is16Bit ? 257 : 1)
  }

  package var mean: [Double] {
    let (width, height) = (layout[0].width, layout[0].height)
    var sum = [0.0, 0.0, 0.0]
    for y in 0..<height {
      for x in 0..<width {
        let color = color(x: x, y: y)
        for channel in 0..<3 { sum[channel] += color[channel] }
      }
    }
    return sum.map { $0 / Double(width * height) }
  }
}

/// A byte array supplied one window at a time.
package struct Windows {
  private let bytes: [UInt8]
  private let windowByteCount: Int
  private var start = 0
  private var end: Int

  package init(bytes: [UInt8], windowByteCount: Int) {
    self.bytes = bytes
    self.windowByteCount = windowByteCount
    end = min(windowByteCount, bytes.count)
  }

  /// The unread rest of the current window.
  package var current: RawSpan {
    @_lifetime(borrow self)
    get { bytes.span.bytes.extracting(start..<end) }
  }

  package var isLast: Bool { end == bytes.count }

  package mutating func consume(_ count: Int) { start += count }

  /// Moves to the next window and skips the rest of the current one.
  package mutating func advance() {
    start = end
    end = bytes.count - end > windowByteCount ? end + windowByteCount : bytes.count
  }
}

/// Processes a complete image with the pipeline.
package func process(
  _ bytes: [UInt8], _ configuration: ProcessingConfiguration, windowByteCount: Int = .max,
  limits: ImageLimits = ImageLimits(), cancellation: Cancellation = Cancellation(),
  tracing: TraceTarget = TraceTarget(), countedFrames: Int? = nil, auxiliary: AuxiliaryImages = AuxiliaryImages()
) throws(PipelineError) -> (bytes: [UInt8], report: ProcessingReport) {
  var reader = ImageReader(limits: limits, keepsMetadata: configuration.readsMetadata)
  reader.configurations = [configuration]
  reader.countedFrames = countedFrames
  reader.auxiliary = auxiliary
  var windows = Windows(bytes: bytes, windowByteCount: windowByteCount)
  try reader.readHeader(&windows)
  let plan = try reader.plan(configuration)
  let pipeline = try reader.takeRoute(plan, cancellation: cancellation, tracing: tracing)
  var output: [UInt8] = []
  while true {
    let isDone = try pipeline.push(windows.current, isLast: windows.isLast) { span in
      span.withUnsafeBytes { output.append(contentsOf: $0) }
    }
    if isDone { return (output, pipeline.report(queued: .zero, total: .zero)) }
    windows.advance()
  }
}

extension ProcessingReport {
  /// The messages of the warnings, except that the result is larger than its image, as most results of fixtures are.
  package var messages: [String] { warnings.filter { $0.code != .largerThanImage }.map(\.message) }
}

package typealias RenditionResult = Result<(bytes: [UInt8], report: ProcessingReport), PipelineError>

/// Processes a complete image with the pipeline once for all configurations.
package func process(
  _ bytes: [UInt8], _ configurations: [ProcessingConfiguration], windowByteCount: Int = .max,
  limits: ImageLimits = ImageLimits(), cancellation: Cancellation = Cancellation(),
  tracing: TraceTarget = TraceTarget(), auxiliary: AuxiliaryImages = AuxiliaryImages()
) throws(PipelineError) -> (plan: ImagePlan, results: [RenditionResult]) {
  var reader = ImageReader(limits: limits)
  reader.configurations = configurations
  reader.auxiliary = auxiliary
  var windows = Windows(bytes: bytes, windowByteCount: windowByteCount)
  try reader.readHeader(&windows)
  let plan = try reader.plan(configurations)
  let pipeline = try reader.takeRoute(
    plan, renditionIDs: configurations.indices.map { "\($0)" }, cancellation: cancellation,
    tracing: tracing)
  var outputs = configurations.map { _ in [UInt8]() }
  while !(try pipeline.push(
    windows.current, isLast: windows.isLast,
    output: { index, span in span.withUnsafeBytes { outputs[index].append(contentsOf: $0) } }))
  {
    windows.advance()
  }
  let results = configurations.indices.map { index -> RenditionResult in
    switch pipeline.outcome(of: index) {
    case .success(let report): .success((outputs[index], report))
    case .failure(let error): .failure(error)
    case nil: .failure(PipelineError(.internalDefect, "a rendition did not end"))
    }
  }
  return (plan, results)
}

extension ImageReader {
  /// Supplies windows until the header is complete.
  fileprivate mutating func readHeader(_ windows: inout Windows) throws(PipelineError) {
    while true {
      let progress = try push(windows.current, isLast: windows.isLast)
      windows.consume(progress.consumedByteCount)
      if progress.isComplete { return }
      windows.advance()
    }
  }
}

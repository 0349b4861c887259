internal import CPixels
internal import ImageCodecs

/// Rows of the result's size to the pixels that filters or the encoder take: colour planes to RGB, alpha divided out or
/// flattened on the background, samples of 16 bits rounded to 8.
///
/// Where both agree already, strips pass as they are.
struct ColorStage {
  private enum Conversion {
    case none, grayToRGB, yccToRGB, unpremultiply, flatten, premultiplyAndFlatten
    // Of samples of 16 bits, to 8 but for the last two.
    case narrow, narrowGrayToRGB, deepPremultiplyAndFlatten, deepGrayToRGB, deepUnpremultiply

    var needsScratch: Bool {
      [.premultiplyAndFlatten, .deepPremultiplyAndFlatten, .narrowGrayToRGB].contains(self)
    }
  }

  private let conversion: Conversion
  private let width: Int
  private let background: Color
  private let outputFormat: PixelFormat
  private let output: PixelBuffer?
  // A row between two steps.
  private let scratch: PixelBuffer?
  private let queues: [RowQueue]

  private static let rowCount = 16
  // Chroma lags behind luma by what its wider filter spans, and both come in portions of rowCount.
  private static let queuedRowCount = 64

  init(plan: Plan, input: PixelFormat, output format: PixelFormat, budget: PictureBudget) throws(PipelineError) {
    let conversion = try Self.conversion(from: input, to: format)
    let width = plan.storedOutputSize.width
    self.conversion = conversion
    self.width = width
    background = plan.background
    outputFormat = format
    let outputByteCount = width * format.pixelByteCount * Self.rowCount
    do {
      output = conversion == .none ? nil : try PixelBuffer(byteCount: outputByteCount, budget: budget)
      scratch =
        conversion.needsScratch
        ? try PixelBuffer(byteCount: width * PixelFormat.premultipliedRGBA16.pixelByteCount, budget: budget) : nil
      var queues: [RowQueue] = []
      for _ in 0..<(conversion == .yccToRGB ? 3 : 0) {
        queues.append(try RowQueue(rowByteCount: width, capacity: Self.queuedRowCount, budget: budget))
      }
      self.queues = queues
    } catch { throw PipelineError(error) }
  }

  /// An upper bound of what this stage charges for rows of `width` pixels.
  static func estimatedByteCount(width: Int, input: PixelFormat, output: PixelFormat) -> Int {
    guard input != output else { return 0 }
    return width * (output.pixelByteCount * rowCount + (input == .ycc8 ? 3 * queuedRowCount : 8))
  }

  /// Converts the strip's rows and hands them on.
  func push(
    _ strip: borrowing Strip, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard let destination = output?.base else { return try next(strip) }
    if conversion == .yccToRGB { return try pushPlanes(strip, destination, next: next) }
    let all = strip.plane(0)
    for rows in all.portions(of: Self.rowCount) {
      for row in 0..<rows.rowCount { convert(rows, row, to: destination + row * outputStride) }
      try next(Strip(format: outputFormat, rows: outputRows(destination, rows.rowCount)))
    }
  }

  /// The planes' filters finish rows at different times; only rows that all three have can be converted.
  private func pushPlanes(
    _ strip: borrowing Strip, _ destination: UnsafeMutableRawPointer,
    next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    var waiting = (0..<3).map { strip.plane($0) }
    while waiting.contains(where: { $0.rowCount > 0 }) {
      do {
        for index in 0..<3 {
          let portion = waiting[index].prefix(Self.rowCount)
          try queues[index].append(portion)
          waiting[index].dropFirst(portion.rowCount)
        }
      } catch { throw PipelineError(error) }
      try convertQueued(destination, next: next)
    }
  }

  private func convertQueued(
    _ destination: UnsafeMutableRawPointer, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    while true {
      let count = min(Self.rowCount, queues.map(\.rowCount).min() ?? 0)
      guard count > 0 else { return }
      let (luma, blue, red) = (queues[0].take(count), queues[1].take(count), queues[2].take(count))
      for row in 0..<count {
        cpixels_ycc_to_rgb(
          luma.row(row), blue.row(row), red.row(row),
          (destination + row * outputStride).assumingMemoryBound(to: UInt8.self),
          width, CPIXELS_ISA_BEST)
      }
      try next(Strip(format: outputFormat, rows: outputRows(destination, count)))
    }
  }

  private func convert(_ rows: Strip.Rows, _ row: Int, to destination: UnsafeMutableRawPointer) {
    let output = destination.assumingMemoryBound(to: UInt8.self)
    let deepOutput = destination.assumingMemoryBound(to: UInt16.self)
    let color = [background.red, background.green, background.blue]
    switch conversion {
    case .none, .yccToRGB: break
    case .grayToRGB: cpixels_gray_to_rgb(rows.row(row), output, width)
    case .unpremultiply: cpixels_unpremultiply(rows.deepRow(row), output, width, CPIXELS_ISA_BEST)
    case .flatten: cpixels_flatten(rows.deepRow(row), color, output, width, CPIXELS_ISA_BEST)
    case .narrow: cpixels_narrow(rows.deepRow(row), output, width * outputFormat.channelCount)
    case .deepGrayToRGB: cpixels_gray_to_rgb_deep(rows.deepRow(row), deepOutput, width)
    case .deepUnpremultiply: cpixels_unpremultiply_deep(rows.deepRow(row), deepOutput, width)
    case .premultiplyAndFlatten, .deepPremultiplyAndFlatten, .narrowGrayToRGB:
      convertInTwo(rows, row, to: output, color)
    }
  }

  private func convertInTwo(
    _ rows: Strip.Rows, _ row: Int, to output: UnsafeMutablePointer<UInt8>, _ color: [UInt8]
  ) {
    guard let scratch else { return }
    let premultiplied = scratch.base.assumingMemoryBound(to: UInt16.self)
    switch conversion {
    case .narrowGrayToRGB:
      let gray = scratch.base.assumingMemoryBound(to: UInt8.self)
      cpixels_narrow(rows.deepRow(row), gray, width)
      return cpixels_gray_to_rgb(gray, output, width)
    case .deepPremultiplyAndFlatten: cpixels_premultiply_deep(rows.deepRow(row), premultiplied, width)
    default: cpixels_premultiply(rows.row(row), premultiplied, width, CPIXELS_ISA_BEST)
    }
    cpixels_flatten(premultiplied, color, output, width, CPIXELS_ISA_BEST)
  }

  private var outputStride: Int { width * outputFormat.pixelByteCount }

  private func outputRows(_ base: UnsafeMutableRawPointer, _ count: Int) -> Strip.Rows {
    Strip.Rows(base: UnsafeRawPointer(base), rowStride: outputStride, rowCount: count)
  }

  private static func conversion(
    from input: PixelFormat, to output: PixelFormat
  ) throws(PipelineError) -> Conversion {
    switch (input, output) {
    case _ where input == output: .none
    case (.gray8, .rgb8): .grayToRGB
    case (.ycc8, .rgb8): .yccToRGB
    case (.premultipliedRGBA16, .rgba8): .unpremultiply
    case (.premultipliedRGBA16, .rgb8): .flatten
    case (.premultipliedRGBA16, .rgba16): .deepUnpremultiply
    case (.rgba8, .rgb8): .premultiplyAndFlatten
    case (.rgba16, .rgb8): .deepPremultiplyAndFlatten
    case (.gray16, .rgb8): .narrowGrayToRGB
    case (.gray16, .rgb16): .deepGrayToRGB
    case (.gray16, .gray8), (.rgb16, .rgb8), (.rgba16, .rgba8): .narrow
    default: throw PipelineError(.internalDefect, "no conversion from \(input) to \(output)")
    }
  }
}

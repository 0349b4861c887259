internal import CPixels
internal import ImageCodecs

/// Colours of the picture's profile to sRGB, on rows of the result's size.
///
/// Samples of 16 bits are rounded to 8 by the conversion. Where the colours are sRGB already, strips pass as they are, and
/// nothing is allocated.
struct ProfileStage {
  private let conversion: ColorConversion?
  private let format: PixelFormat
  private let output: PixelBuffer?
  private let width: Int

  private static let rowCount = 16

  /// - `conversion`: `nil` when there is nothing to convert; inks are then converted without a profile, and samples of 16
  ///   bits rounded.
  init(plan: Plan, conversion: ColorConversion?, budget: PictureBudget) throws(PipelineError) {
    self.conversion = conversion
    format = plan.profileFormat
    width = plan.storedOutputSize.width
    let isIdle = conversion == nil && Self.outputFormat(of: plan.profileFormat) == plan.profileFormat
    let byteCount = width * Self.outputFormat(of: format).pixelByteCount * Self.rowCount
    do { output = isIdle ? nil : try PixelBuffer(byteCount: byteCount, budget: budget) } catch {
      throw PipelineError(error)
    }
  }

  /// An upper bound of what this stage charges, its conversion included.
  static func estimatedByteCount(_ plan: Plan, conversionByteCount: Int) -> Int {
    guard conversionByteCount > 0 || outputFormat(of: plan.profileFormat) != plan.profileFormat else { return 0 }
    return plan.storedOutputSize.width * 4 * rowCount + conversionByteCount
  }

  private static func outputFormat(of format: PixelFormat) -> PixelFormat {
    switch format {
    case .cmyk8, .rgb16: .rgb8
    case .gray16: .gray8
    case .rgba16: .rgba8
    default: format
    }
  }

  /// Converts the strip's rows and hands them on.
  func push(
    _ strip: borrowing Strip, next: (borrowing Strip) throws(PipelineError) -> Void
  ) throws(PipelineError) {
    guard let base = output?.base else { return try next(strip) }
    let outputFormat = Self.outputFormat(of: format)
    let stride = width * outputFormat.pixelByteCount
    let all = strip.plane(0)
    for rows in all.portions(of: Self.rowCount) {
      for row in 0..<rows.rowCount {
        let destination = (base + row * stride).assumingMemoryBound(to: UInt8.self)
        if let conversion {
          conversion.convert(rows.row(row), to: destination, pixelCount: width)
        } else if format == .cmyk8 {
          cpixels_inks_to_rgb(rows.row(row), destination, width)
        } else {
          cpixels_narrow(rows.deepRow(row), destination, width * format.channelCount)
        }
      }
      let converted = Strip.Rows(base: UnsafeRawPointer(base), rowStride: stride, rowCount: rows.rowCount)
      try next(Strip(format: outputFormat, rows: converted))
    }
  }
}

internal import ImageCodecs
internal import ImageKernels

/// Converts colors from the image's profile to the color space of the result, on rows of the result's size.
///
/// The conversion rounds 16-bit samples to 8 bits, unless the result keeps them. Without a conversion, CMYK is converted
/// without a profile, and 16-bit samples are rounded. If neither applies, strips bypass the stage and it allocates nothing.
struct ProfileStage: Stage {
  private let width: Int
  private let conversionByteCount: Int
  private let key: ConversionKey?
  private let keepsDepth: Bool
  private var format = PixelFormat.rgb8
  private var work: Work?

  /// The activity of a started stage.
  private enum Work {
    /// Converts colors, and possibly the pixel format, into a buffer.
    case colors(ColorConversion, output: RowBuffer)
    /// Converts the pixel format alone.
    case format(PixelConverter)
  }

  private static let rowCount = 16

  init(_ plan: Plan) {
    width = plan.storedOutputSize.width
    conversionByteCount = plan.conversionByteCount
    key = ConversionKey(plan)
    keepsDepth = plan.color.isDeep
  }

  /// Returns an upper bound that includes the color conversion.
  func estimatedByteCount(_ layout: inout PixelLayout) -> Int {
    let input = layout.format
    layout.format = output(input)
    guard conversionByteCount > 0 || layout.format != input else { return 0 }
    return width * max(4, layout.format.pixelByteCount) * Self.rowCount + conversionByteCount
  }

  mutating func start(_ layout: inout PixelLayout, _ context: borrowing StageContext) throws(CodecError) -> Bool {
    let (input, output) = (layout.format, output(layout.format))
    format = output
    if let key, key.format == input, let conversion = context.conversions[key] {
      let buffer = try RowBuffer(
        rowByteCount: width * output.pixelByteCount, rowCount: Self.rowCount, budget: context.budget)
      work = .colors(conversion, output: buffer)
    } else if input != output {
      work = .format(
        try PixelConverter(from: input, to: output, width: width, rowCount: Self.rowCount, budget: context.budget))
    } else {
      return false
    }
    layout.format = output
    return true
  }

  private func output(_ input: PixelFormat) -> PixelFormat { keepsDepth ? input : input.afterProfile }

  func push(_ strip: borrowing Strip, next: NextStage) throws(PipelineError) {
    for rows in strip.plane(0).portions(of: Self.rowCount) {
      switch work {
      case .colors(let conversion, let output):
        conversion.convert(rows, width: width, to: output)
        try next(Strip(format: format, rows: output.rows(count: rows.rowCount)))
      case .format(let converter): try next(Strip(format: format, rows: converter.convert(rows)))
      case nil: break
      }
    }
  }
}

internal import CPixels
package import ImageCodecs

/// A converter of rows of one plane from one pixel format to another, a few rows at a time, into its own buffer.
///
/// It converts gray or CMYK to RGB, unpremultiplies alpha or flattens it onto a background, and rounds 16-bit samples
/// to 8 bits.
package struct PixelConverter {
  private enum Conversion {
    case grayToRGB, cmykToRGB, unpremultiply, flatten, premultiplyAndFlatten
    // These read 16-bit samples; all but the last two write 8-bit samples.
    case narrow, grayToRGB8Bit, premultiplyAndFlatten16Bit, grayToRGB16Bit, unpremultiply16Bit

    var needsScratch: Bool {
      switch self {
      case .premultiplyAndFlatten, .premultiplyAndFlatten16Bit, .grayToRGB8Bit: true
      case .grayToRGB, .cmykToRGB, .unpremultiply, .flatten, .narrow, .grayToRGB16Bit, .unpremultiply16Bit: false
      }
    }
  }

  private let conversion: Conversion
  private let width: Int
  private let sourceRowByteCount: Int
  private let channelCount: Int
  /// The background color: red, green and blue.
  private let background: [UInt8]
  private let output: RowBuffer
  // The intermediate row of a conversion in two steps.
  private let scratch: RowBuffer?

  /// The default for the maximum number of rows per call.
  package static let usualRowCount = 16

  /// Returns the luma of red, green and blue.
  package static func luma(_ color: [UInt8]) -> UInt8 {
    // Source: JFIF 1.02, "Conversion to and from RGB", in 1/65536.
    let (red, green, blue) = (Int(color[0]), Int(color[1]), Int(color[2]))
    return UInt8((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16)
  }

  /// Creates a converter and allocates its output rows.
  /// - `background`: red, green and blue behind pixels that are not opaque, if the result has no alpha.
  /// - `rowCount`: the maximum number of rows per call.
  /// - Throws: `misuse` for an unsupported conversion, `outOfMemory` if the budget is exhausted.
  package init(
    from input: PixelFormat, to format: PixelFormat, width: Int, background: [UInt8] = [255, 255, 255],
    rowCount: Int = usualRowCount, budget: ImageBudget
  ) throws(CodecError) {
    precondition(background.count == 3)
    conversion = try Self.conversion(from: input, to: format)
    self.width = width
    self.background = background
    sourceRowByteCount = width * input.pixelByteCount
    channelCount = format.channelCount
    output = try RowBuffer(rowByteCount: width * format.pixelByteCount, rowCount: rowCount, budget: budget)
    scratch =
      conversion.needsScratch
      ? try RowBuffer(
        rowByteCount: width * PixelFormat.premultipliedRGBA16.pixelByteCount, rowCount: 1, budget: budget) : nil
  }

  /// Returns an upper bound of the bytes that a converter charges, with the default number of rows.
  package static func estimatedByteCount(width: Int, to format: PixelFormat) -> Int {
    width * (format.pixelByteCount * usualRowCount + PixelFormat.premultipliedRGBA16.pixelByteCount)
  }

  /// The maximum number of rows per call.
  package var rowCount: Int { output.rowCount }

  /// Converts at most `rowCount` rows; the result is valid until the next call.
  package func convert(_ rows: Strip.Rows) -> Strip.Rows {
    precondition(rows.isEmpty || rows.rowByteCount >= sourceRowByteCount, "rows are shorter")
    for row in 0..<rows.rowCount { convert(rows, row) }
    return output.rows(count: rows.rowCount)
  }

  private func convert(_ rows: Strip.Rows, _ row: Int) {
    switch conversion {
    case .grayToRGB: cpixels_gray_to_rgb(rows.bytes(row), output.bytes(row), width)
    case .cmykToRGB: cpixels_cmyk_to_rgb(rows.bytes(row), output.bytes(row), width)
    case .unpremultiply: cpixels_unpremultiply(rows.samples(row), output.bytes(row), width, CPIXELS_ISA_BEST)
    case .flatten: cpixels_flatten(rows.samples(row), background, output.bytes(row), width, CPIXELS_ISA_BEST)
    case .narrow: cpixels_convert_to_8bit(rows.samples(row), output.bytes(row), width * channelCount)
    case .grayToRGB16Bit: cpixels_gray_to_rgb_16bit(rows.samples(row), output.samples(row), width)
    case .unpremultiply16Bit: cpixels_unpremultiply_16bit(rows.samples(row), output.samples(row), width)
    case .premultiplyAndFlatten, .premultiplyAndFlatten16Bit, .grayToRGB8Bit: convertInTwo(rows, row)
    }
  }

  private func convertInTwo(_ rows: Strip.Rows, _ row: Int) {
    guard let scratch else { return }
    let (premultiplied, output) = (scratch.samples(0), output.bytes(row))
    if conversion == .grayToRGB8Bit {
      cpixels_convert_to_8bit(rows.samples(row), scratch.bytes(0), width)
      return cpixels_gray_to_rgb(scratch.bytes(0), output, width)
    }
    if conversion == .premultiplyAndFlatten16Bit {
      cpixels_premultiply_16bit(rows.samples(row), premultiplied, width)
    } else {
      cpixels_premultiply(rows.bytes(row), premultiplied, width, CPIXELS_ISA_BEST)
    }
    cpixels_flatten(premultiplied, background, output, width, CPIXELS_ISA_BEST)
  }

  private static func conversion(from input: PixelFormat, to output: PixelFormat) throws(CodecError) -> Conversion {
    switch (input, output) {
    case (.gray8, .rgb8): .grayToRGB
    case (.cmyk8, .rgb8): .cmykToRGB
    case (.premultipliedRGBA16, .rgba8): .unpremultiply
    case (.premultipliedRGBA16, .rgb8): .flatten
    case (.premultipliedRGBA16, .rgba16): .unpremultiply16Bit
    case (.rgba8, .rgb8): .premultiplyAndFlatten
    case (.rgba16, .rgb8): .premultiplyAndFlatten16Bit
    case (.gray16, .rgb8): .grayToRGB8Bit
    case (.gray16, .rgb16): .grayToRGB16Bit
    case (.gray16, .gray8), (.rgb16, .rgb8), (.rgba16, .rgba8): .narrow
    default: throw CodecError(code: .misuse, message: "no conversion from \(input) to \(output)")
    }
  }
}

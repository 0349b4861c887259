internal import ImageCodecs

/// The format of a result, and the options of its encoder.
extension Plan {
  /// Chooses the options of an encoder.
  /// - `colorFormat`: The pixel format that filters, color conversion and padding need; `nil` if there are none.
  static func encoder(
    header: ImageHeader, format: ImageFormat, outputSize: PixelSize, configuration: ProcessingConfiguration,
    colorFormat: PixelFormat?
  ) throws(PipelineError) -> EncoderOptions {
    guard format.isEncodable else {
      throw PipelineError(
        .unservedField, "this worker was built without the encoder for \(format.rawValue); request another format",
        field: "preferred_format")
    }
    let quality = configuration.compressionQuality ?? 1
    var options = EncoderOptions(
      format: format, width: outputSize.width, height: outputSize.height,
      pixelFormat: colorFormat.map { format.takes($0) ? $0 : .rgb8 } ?? pixelFormat(of: format, header: header),
      subsampling: quality < Double(EncoderOptions.minQualityOfFullChroma) / 100 ? .quarter : .full,
      quality: max(1, Int((quality * 100).rounded())))
    options.apply(configuration)
    return try options.aimed(configuration)
  }

  /// Returns the file formats that the result can have: one unless its rows decide, and never none.
  /// - `size`: The size of the result; `nil` before it is known.
  /// - `isAnimation`: Whether the result may have several frames.
  static func formats(
    of header: ImageHeader, _ configuration: ProcessingConfiguration, size: PixelSize?, isAnimation: Bool = false
  ) -> [ImageFormat] {
    if configuration.preferredFormat == .auto {
      return FormatChoice.formats(
        header: header, configuration: configuration, size: size, isAnimation: isAnimation,
        hasAlpha: header.hasAlpha)
    }
    let isKept =
      switch header.format.traits.output?.keeping {
      case .all: header.format.isEncodable
      case .animations: header.format.isEncodable && isAnimation
      case .never, nil: false
      }
    return [configuration.preferredFormat?.imageFormat ?? (isKept ? header.format : header.hasAlpha ? .png : .jpeg)]
  }

  /// Returns the input format of the encoder: the closest to the decoder's output that `format` supports.
  private static func pixelFormat(of format: ImageFormat, header: ImageHeader) -> PixelFormat {
    let formats: [PixelFormat] =
      switch header.colorSpace {
      case .ycbcr: [.ycc8]
      case .gray: header.hasAlpha ? [] : [.gray8]
      case .rgb, .cmyk, .ycck: []
      }
    return (formats + (header.hasAlpha ? [.rgba8] : [])).first(where: format.takes) ?? .rgb8
  }
}

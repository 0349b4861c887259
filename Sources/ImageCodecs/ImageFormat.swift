internal import CCodecs

/// A picture file format that the worker decodes, or recognises well enough to name in a refusal.
package enum ImageFormat: String, Sendable, Hashable, CaseIterable {
  case jpeg, png, webp, gif, bmp, tga, psd, pnm, hdr
  case tiff, avif, heic, jxl, jpeg2000, ico, qoi

  /// How many first bytes settle the format of any file.
  package static let sniffByteCount = Int(CCODECS_SNIFF_BYTES)

  /// The format of a file from its first `sniffByteCount` bytes, or all there are; `nil` when no format matches.
  package static func sniff(_ bytes: RawSpan) -> ImageFormat? {
    ImageFormat(bytes.withUnsafeBytes { ccodecs_sniff($0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count) })
  }

  /// Whether a `Decoder` can be made for this format.
  package var isDecodable: Bool { ccodecs_format_can_decode(handle) }

  /// Whether an `Encoder` can be made for this format.
  package var isEncodable: Bool { ccodecs_format_can_encode(handle) }

  init?(_ handle: ccodecs_format) {
    guard let match = ImageFormat.allCases.first(where: { $0.handle == handle }) else { return nil }
    self = match
  }

  var handle: ccodecs_format {
    switch self {
    case .jpeg: CCODECS_FORMAT_JPEG
    case .png: CCODECS_FORMAT_PNG
    case .webp: CCODECS_FORMAT_WEBP
    case .gif: CCODECS_FORMAT_GIF
    case .bmp: CCODECS_FORMAT_BMP
    case .tga: CCODECS_FORMAT_TGA
    case .psd: CCODECS_FORMAT_PSD
    case .pnm: CCODECS_FORMAT_PNM
    case .hdr: CCODECS_FORMAT_HDR
    case .tiff: CCODECS_FORMAT_TIFF
    case .avif: CCODECS_FORMAT_AVIF
    case .heic: CCODECS_FORMAT_HEIC
    case .jxl: CCODECS_FORMAT_JXL
    case .jpeg2000: CCODECS_FORMAT_JPEG2000
    case .ico: CCODECS_FORMAT_ICO
    case .qoi: CCODECS_FORMAT_QOI
    }
  }
}

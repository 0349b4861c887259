internal import ImagePipeline

/// The HDR gain map of an image, from which viewers brighten it on HDR displays.
public struct GainMapInfo: Sendable, Hashable, CustomStringConvertible {
  private let info: ImagePipeline.GainMapInfo

  init(_ info: ImagePipeline.GainMapInfo) { self.info = info }

  /// The way in which the map is described: `iso` (ISO 21496-1), `ultra_hdr` (only in XMP of Adobe), or `apple`.
  public var kind: String { info.kind.rawValue }
  /// The width in pixels, after the orientation of its image.
  public var width: Int { info.size.width }
  /// The height in pixels, after the orientation of its image.
  public var height: Int { info.size.height }
  /// How much brighter than white the brightest parts can become, from 1 on; `nil` if it is not known.
  public var headroom: Double? { info.headroom }

  /// The kind and the size, such as `iso 400x300`.
  public var description: String { "\(kind) \(width)x\(height)" }
}

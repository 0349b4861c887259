internal import FoundationEssentials
internal import ImagePipeline

/// The properties of an image, and of the result that a configuration would give.
///
/// As JSON it has the names that the response of `InspectImage` has, and some of the plan.
struct Inspection: Sendable, Encodable {
  /// The gain map of an image.
  struct GainMap: Sendable, Encodable {
    /// `iso`, `ultra_hdr` or `apple`.
    var kind: String
    var width: Int
    var height: Int
    /// How much brighter than white the brightest parts can become, if it is known.
    var headroom: Double?

    init(_ map: GainMapInfo) {
      kind = map.kind.rawValue
      (width, height) = (map.size.width, map.size.height)
      headroom = map.headroom
    }

    var description: String {
      "\(kind) \(width)x\(height)" + (headroom.map { ", headroom \(ReadableText.number($0, digits: 2))" } ?? "")
    }
  }

  /// The properties of one image.
  struct Info: Sendable, Encodable {
    var format: String
    var width: Int
    var height: Int
    /// 1 to 8, as stored.
    var orientation: Int
    var hasAlpha: Bool
    var bitDepth: Int
    var colorSpace: String
    /// 0 if it is unknown before the whole file is read.
    var frameCount: Int
    /// Of an animation, if it is known; 0 for ever.
    var playCount: Int?
    /// `srgb`, `display_p3`, `hdr` or `other`.
    var gamut: String
    var gainMap: GainMap?
    /// The layout of a raw result.
    var tensor: TensorLine?

    init(_ info: ImageInfo) {
      format = info.format
      (width, height) = (info.size.width, info.size.height)
      orientation = info.orientation
      hasAlpha = info.hasAlpha
      bitDepth = info.bitDepth
      colorSpace = info.colorSpace
      frameCount = info.frameCount
      playCount = info.playCount
      gamut = info.gamut
      gainMap = info.gainMap.map { GainMap($0) }
      tensor = info.tensor.map { TensorLine($0) }
    }

    /// Adds a gain map, as stored.
    mutating func note(_ map: GainMapInfo) { gainMap = GainMap(map.displayed(orientation: orientation)) }
  }

  var file: String
  var info: Info
  var output: Info
  /// The image is decoded at this many eighths of its size.
  var decodeEighths: Int
  var filters: String?
  /// The messages of `warningDetails`.
  var warnings: [String]
  /// Those warnings of the result's report that follow from the header and the configuration.
  var warningDetails: [Warning]
  /// Maximum memory in bytes that processing the image would use.
  var workingSetBytes: UInt64
  /// The facts about the image, if they were requested.
  var facts: FactsLine?

  init(file: String, _ plan: Plan, workingSetByteCount: UInt64) {
    self.file = file
    info = Info(plan.input)
    output = Info(plan.outputInfo)
    decodeEighths = plan.decodeScale
    filters = plan.filters.isEmpty ? nil : plan.filters.description
    warningDetails = plan.knownWarnings.map(\.withOptions)
    warnings = warningDetails.map(\.message)
    workingSetBytes = workingSetByteCount
  }

  /// A row for each property: its name, and its value in an aligned column.
  var card: String {
    var rows = [
      ("file", file),
      ("format", info.format),
      ("size", "\(info.width)x\(info.height)"),
      ("orientation", "\(info.orientation)"),
      ("alpha", info.hasAlpha ? "yes" : "no"),
      ("depth", "\(info.bitDepth) bits per sample"),
      ("color space", info.colorSpace),
      ("gamut", info.gamut),
      ("frames", info.frameCount == 0 ? "unknown" : "\(info.frameCount)"),
      ("result", "\(output.format.isEmpty ? "auto" : output.format) \(output.width)x\(output.height)"),
      ("decoded at", "\(decodeEighths)/8"),
      ("filters", filters ?? "none"),
      ("working set", "up to \(ReadableText.byteCount(workingSetBytes))"),
    ]
    if let map = info.gainMap { rows.append(("gain map", map.description)) }
    let width = rows.map(\.0.count).max() ?? 0
    let looks = facts?.rows.map { ($0.name, $0.value) } ?? []
    return (rows + looks + warnings.map { ("warning", $0) }).map { name, value in
      "\(ReadableText.padded(name, width))  \(value)"
    }.joined(separator: "\n")
  }
}

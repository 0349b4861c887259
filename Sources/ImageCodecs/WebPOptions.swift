internal import CCodecs
package import Fields

/// Options for WebP output.
///
/// A field that is `nil` has its default value.
package struct WebPOptions: Sendable, Hashable {
  /// Whether to write a lossless file; false by default.
  package var isLossless: Bool?
  /// The near-lossless level, from 0 (smallest) to 100 (exact); below 100 the file uses lossless coding.
  package var nearLossless: Int?
  /// The compression effort, from 0 (fastest) to 6 (smallest).
  package var method: Int?
  /// Whether edges of strong colors stay sharp in a lossy file, which takes longer; false by default.
  package var hasSharpChroma: Bool?

  package init(
    isLossless: Bool? = nil, nearLossless: Int? = nil, method: Int? = nil, hasSharpChroma: Bool? = nil
  ) {
    self.isLossless = isLossless
    self.nearLossless = nearLossless
    self.method = method
    self.hasSharpChroma = hasSharpChroma
  }

  private static let defaultMethod = 4
  private static let exact = 100

  /// Whether the file uses lossless coding, exact or near-lossless.
  package var writesLossless: Bool { isLossless ?? false || nearLossless ?? Self.exact < Self.exact }

  /// Lowers the effort to a method, if it is higher.
  package mutating func limitMethod(to maxMethod: Int) {
    if method ?? Self.defaultMethod > maxMethod { method = maxMethod }
  }

  /// Returns the C options; `nil` if a value is out of range.
  /// - `savesMemory`: see `EncoderOptions.savesMemory`.
  func handle(savesMemory: Bool) -> ccodecs_webp_options? {
    guard let nearLossless = UInt8(exactly: nearLossless ?? Self.exact),
      let method = UInt8(exactly: method ?? Self.defaultMethod)
    else { return nil }
    return ccodecs_webp_options(
      is_lossless: writesLossless, near_lossless: nearLossless, method: method,
      sharp_chroma: hasSharpChroma ?? false, saves_memory: savesMemory)
  }

  /// Whether any coding option differs from its default.
  package var asksForCoding: Bool {
    nearLossless ?? Self.exact != Self.exact || method ?? Self.defaultMethod != Self.defaultMethod
      || hasSharpChroma ?? false
  }
}

extension WebPOptions: FieldRecord {
  package init() { self.init(isLossless: nil) }

  package static let fields: [Field<WebPOptions>] = [
    Field("lossless", \.isLossless, help: "WebP: Write a lossless file; the quality is then ignored. Default: false."),
    Field(
      "near_lossless", \.nearLossless, .range(0...100), takes: "level",
      help: "WebP: Write a lossless file, and change the image to make it smaller: from 0 (smallest) to 100 (exact). "
        + "Default: 100."),
    Field(
      "method", \.method, .range(0...6), option: "webp-method", takes: "method",
      help: "WebP: Set the effort, from 0 (fastest) to 6 (smallest). Default: 4."),
    Field(
      "sharp_chroma", \.hasSharpChroma,
      help: "WebP: Keep edges of strong colors sharp in a lossy file, which takes longer. Default: false."),
  ]
}

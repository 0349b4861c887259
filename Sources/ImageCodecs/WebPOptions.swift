internal import CCodecs
package import Fields

/// Options of WebP results.
///
/// A field that is `nil` has its default.
package struct WebPOptions: Sendable, Hashable {
  /// Whether the file is lossless; `nil` for the default, false.
  package var isLossless: Bool?
  /// From 0 (smallest) to 100 (exact); below 100 the file is lossless.
  package var nearLossless: Int?
  /// From 0 (fastest) to 6 (smallest).
  package var method: Int?

  package init(isLossless: Bool? = nil, nearLossless: Int? = nil, method: Int? = nil) {
    self.isLossless = isLossless
    self.nearLossless = nearLossless
    self.method = method
  }

  private static let defaultMethod = 4
  private static let exact = 100

  /// Whether the file is lossless, exactly or nearly.
  package var writesLossless: Bool { isLossless ?? false || nearLossless ?? Self.exact < Self.exact }

  /// The encoder's form; `nil` for values out of range.
  /// - `savesMemory`: as in `EncoderOptions`.
  func handle(savesMemory: Bool) -> ccodecs_webp_options? {
    guard let nearLossless = UInt8(exactly: nearLossless ?? Self.exact),
      let method = UInt8(exactly: method ?? Self.defaultMethod)
    else { return nil }
    return ccodecs_webp_options(
      is_lossless: writesLossless, near_lossless: nearLossless, method: method, saves_memory: savesMemory)
  }

  /// Whether the file is coded in another way than by default.
  package var asksForCoding: Bool {
    nearLossless ?? Self.exact != Self.exact || method ?? Self.defaultMethod != Self.defaultMethod
  }
}

extension WebPOptions: FieldRecord {
  package init() { self.init(isLossless: nil) }

  package static let fields: [Field<WebPOptions>] = [
    Field(
      "lossless", \.isLossless,
      option: OptionText("lossless", "WebP: Write a lossless file; the quality is then ignored. Default: false.")),
    Field(
      "near_lossless", \.nearLossless, .range(0...100),
      option: OptionText(
        "near-lossless", "level",
        "WebP: Write a lossless file, and change the image to make it smaller: from 0 (smallest) to 100 (exact). "
          + "Default: 100.")),
    Field(
      "method", \.method, .range(0...6),
      option: OptionText(
        "webp-method", "method", "WebP: Set the effort, from 0 (fastest) to 6 (smallest). Default: 4.")),
  ]
}

internal import CCodecs
package import Fields

/// Options for AVIF output.
///
/// A field that is `nil` has its default value.
package struct AVIFOptions: Sendable, Hashable {
  /// The compression effort, from 0 (fastest) to 9 (smallest).
  package var effort: Int?

  package init(effort: Int? = nil) { self.effort = effort }

  private static let defaultEffort = 1

  /// The C options; `nil` if a value is out of range.
  var handle: ccodecs_avif_options? {
    UInt8(exactly: effort ?? Self.defaultEffort).map { ccodecs_avif_options(effort: $0) }
  }
}

extension AVIFOptions: FieldRecord {
  package init() { self.init(effort: nil) }

  package static let fields: [Field<AVIFOptions>] = [
    Field(
      "effort", \.effort, .range(0...9),
      option: OptionText(
        "avif-effort", "effort", "AVIF: Set the effort, from 0 (fastest) to 9 (smallest). Default: 1."))
  ]
}

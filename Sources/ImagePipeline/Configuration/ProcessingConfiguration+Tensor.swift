internal import ImageCodecs

extension ProcessingConfiguration {
  /// The largest value of binary16.
  fileprivate static let maxHalf: Float = 65504

  /// The quality by which the image is decoded and resized, 0 to 1: a raw result has the best one.
  var rowQuality: Double { preferredFormat == .raw ? 1 : compressionQuality ?? 1 }

  /// Checks the fields that a raw result does not support, and its options against each other.
  func validateTensor() throws(PipelineError) {
    if maxBytes != nil {
      throw Self.unsupported("max_bytes", "as all of its elements are sent; leave it unset")
    }
    if targetSimilarity != nil {
      throw Self.unsupported("target_similarity", "as it is not compressed; leave it unset")
    }
    if let count = maxFrames, count != 1 {
      throw Self.unsupported("max_frames \(count)", "as it has one frame; leave it unset", field: "max_frames")
    }
    try (tensor ?? TensorOptions()).validateCombination()
  }

  private static func unsupported(_ text: String, _ reason: String, field: String? = nil) -> PipelineError {
    PipelineError(.invalidField, "\(text) cannot be combined with a RAW result, \(reason)", field: field ?? text)
  }
}

extension TensorOptions {
  fileprivate func validateCombination() throws(PipelineError) {
    if element == .u8 { try validateIntegers() }
    if order == .gray {
      if let name = normalization, name.isOfColors {
        throw Self.error("normalization", "is \(name.rawValue.uppercased()), which is not for channels GRAY")
      }
      for (field, values) in [("mean", mean), ("standard_deviation", standardDeviation)] {
        if let values, values.values.count > 1 {
          throw Self.error(field, "has \(values.values.count) numbers; it must have one for channels GRAY")
        }
      }
    }
    if element == .f16 { try validateRange() }
  }

  private func validateIntegers() throws(PipelineError) {
    if let name = normalization, name != .none {
      throw Self.error(
        "normalization", "is \(name.rawValue.uppercased()); it must be NONE or unset for element_type U8")
    }
    let set = [("scale", scale != nil), ("mean", mean != nil), ("standard_deviation", standardDeviation != nil)]
    if let (field, _) = set.first(where: \.1) {
      throw Self.error(field, "is set; it must be unset for element_type U8, or element_type F16, BF16 or F32")
    }
  }

  private func validateRange() throws(PipelineError) {
    let largest = scaling.flatMap { [abs($0.offset), abs(255 * $0.scale + $0.offset)] }.max() ?? 0
    if largest > ProcessingConfiguration.maxHalf {
      throw Self.error(
        "element_type", "is F16, which ends at 65504, but values reach \(largest); use BF16 or F32, or lower scale")
    }
  }

  private static func error(_ field: String, _ text: String) -> PipelineError {
    PipelineError(.invalidField, "tensor.\(field) \(text)", field: "tensor.\(field)")
  }
}

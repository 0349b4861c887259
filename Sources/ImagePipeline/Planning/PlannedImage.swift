/// The properties of a planned image that are reported and admitted.
package struct PlannedImage: Sendable {
  /// The properties of each rendition, in the order of the request; the error if a rendition cannot be produced.
  package var renditions: [Result<PlannedResult, PipelineError>]
  /// An upper bound of the bytes that the image charges to its budget.
  package var workingSetByteCount: UInt64
  /// The bytes to reserve for the image: its working set, and the compressed bytes that wait to be read.
  package var reservedByteCount: UInt64

  package init(
    renditions: [Result<PlannedResult, PipelineError>], workingSetByteCount: UInt64, reservedByteCount: UInt64
  ) {
    self.renditions = renditions
    self.workingSetByteCount = workingSetByteCount
    self.reservedByteCount = reservedByteCount
  }

  /// Creates the properties of a plan.
  package init(_ plan: ImagePlan) {
    self.init(
      renditions: plan.renditions.map { rendition in rendition.map { PlannedResult($0) } },
      workingSetByteCount: plan.workingSetByteCount, reservedByteCount: plan.reservedByteCount)
  }

  /// Whether at least one rendition can be produced.
  package var hasResults: Bool { renditions.contains { if case .success = $0 { true } else { false } } }
}

/// The properties of one planned rendition.
package struct PlannedResult: Sendable, Hashable {
  /// The properties of the image.
  package var input: ImageInfo
  /// The properties of the result.
  package var output: ImageInfo
  /// The size of the whole decoded image in bytes.
  package var decodedByteCount: UInt64
  /// The warnings of the report that are known in advance.
  package var warnings: [ReportedWarning]

  package init(input: ImageInfo, output: ImageInfo, decodedByteCount: UInt64, warnings: [ReportedWarning]) {
    self.input = input
    self.output = output
    self.decodedByteCount = decodedByteCount
    self.warnings = warnings
  }

  /// Creates the properties of a rendition's plan.
  package init(_ plan: Plan) {
    self.init(
      input: plan.input, output: plan.outputInfo, decodedByteCount: plan.decodedByteCount,
      warnings: plan.knownWarnings)
  }
}

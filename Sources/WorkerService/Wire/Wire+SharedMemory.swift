internal import FoundationEssentials
internal import ImagePipeline
internal import WorkerProtocol

extension WorkerEnvironment {
  /// Returns the memory that a result is written into; it is opened when the result begins.
  /// - Throws: `invalidField`, `unservedField`.
  func sharedMemory(_ wire: Imageworker_V1_SharedMemory) throws(PipelineError) -> SharedMemory {
    guard takesSharedMemory else {
      throw PipelineError(
        .unservedField, "shared_memory is off; leave it unset, or start the worker with --shared-memory",
        field: "shared_memory", of: .request)
    }
    let (end, isOverflow) = wire.offset.addingReportingOverflow(wire.maxBytes)
    func check(_ isValid: Bool, _ name: String, _ fault: @autoclosure () -> String) throws(PipelineError) {
      guard !isValid else { return }
      let field = "shared_memory.\(name)"
      throw PipelineError(.invalidField, "\(field) \(fault())", field: field, of: .request)
    }
    let name = String(decoding: wire.name.utf8.prefix(64), as: UTF8.self)
    let (names, tokens) = (SharedMemory.nameCounts, SharedMemory.tokenByteCounts)
    try check(
      SharedMemory.isValid(name: wire.name), "name",
      "is \"\(name)\"; it must be \"\(SharedMemory.prefix)\" followed by \(names.lowerBound) to \(names.upperBound) "
        + "letters, digits, \"-\", \"_\" and \".\"")
    try check(
      tokens.contains(wire.token.count), "token",
      "has \(wire.token.count) bytes; it must have between \(tokens.lowerBound) and \(tokens.upperBound), with which the "
        + "segment begins")
    try check(Set(wire.token).count > 1, "token", "has equal bytes; they must be random")
    try check(
      wire.offset >= UInt64(wire.token.count), "offset",
      "is \(wire.offset), inside the token; it must be at least \(wire.token.count)")
    try check(wire.maxBytes > 0, "max_bytes", "is 0; it must be the maximum size of the result in bytes")
    try check(
      !isOverflow && end <= UInt64(Int64.max), "max_bytes",
      "is \(wire.maxBytes), above what a segment can have behind \(wire.offset)")
    return SharedMemory(
      name: wire.name, range: Int64(wire.offset)..<Int64(end), token: [UInt8](wire.token))
  }
}

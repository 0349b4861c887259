extension Array where Element == UInt8 {
  /// Appends a copy of `bytes`.
  package mutating func append(_ bytes: RawSpan) {
    bytes.withUnsafeBytes { append(contentsOf: $0) }
  }

  /// Calls `body` with the array's bytes; the span is valid only during the call.
  package func withRawSpan<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(span.bytes)
  }
}

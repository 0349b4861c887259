/// Receives the parts of one image's results.
///
/// A sink belongs to one job. It may buffer parts and forwards them in order.
protocol ResultSink: AnyObject {
  /// Accepts a part.
  ///
  /// Waits while there is no room for it.
  func send(_ part: ResultPart) async throws
}

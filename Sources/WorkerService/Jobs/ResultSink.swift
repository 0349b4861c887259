/// Takes the parts of one image's results.
///
/// A sink belongs to one job. It may keep parts back, and passes them on in their order.
protocol ResultSink: AnyObject {
  /// Takes a part, and waits while there is no room for it.
  func send(_ part: ResultPart) async throws
}

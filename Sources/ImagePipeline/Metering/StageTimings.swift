/// How long each stage of one picture was busy: time spent working, not waiting for bytes or for its turn.
package struct StageTimings: Sendable, Hashable {
  /// Waiting for admission.
  package var queued: Duration = .zero
  package var decode: Duration = .zero
  package var resize: Duration = .zero
  /// Filters that the configuration asks for.
  package var filter: Duration = .zero
  /// Colour conversion, orientation and compression.
  package var encode: Duration = .zero
  /// From the first byte given to the last byte taken, waiting included.
  package var total: Duration = .zero

  package init() {}
}

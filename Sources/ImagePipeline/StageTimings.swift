/// How long each stage of one picture was busy: time spent working, not waiting for bytes or for its turn.
public struct StageTimings: Sendable, Hashable {
  /// Waiting for admission.
  public var queued: Duration = .zero
  public var decode: Duration = .zero
  public var resize: Duration = .zero
  /// Colour filters that the configuration asks for.
  public var filter: Duration = .zero
  /// Colour conversion, orientation and compression.
  public var encode: Duration = .zero
  /// From the first byte given to the last byte taken, waiting included.
  public var total: Duration = .zero

  public init() {}
}

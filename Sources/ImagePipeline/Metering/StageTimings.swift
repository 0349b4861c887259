/// The spans that stages' work counts in; traces have one of each for an image or rendition.
enum StageSpan: Int, CaseIterable {
  case decode, resize, filter, encode, rewrite

  /// As traces have it.
  var name: String {
    switch self {
    case .decode: "decode"
    case .resize: "resize"
    case .filter: "filter"
    case .encode: "encode"
    case .rewrite: "rewrite"
    }
  }
}

/// How long each stage of one image was busy: time spent working, not waiting for bytes or for its turn.
package struct StageTimings: Sendable, Hashable {
  /// Waiting for admission.
  package var queued: Duration = .zero
  /// Busy time of decoding.
  package var decode: Duration = .zero
  /// Busy time of resizing.
  package var resize: Duration = .zero
  /// Filters that the configuration asks for.
  package var filter: Duration = .zero
  /// Colour conversion, orientation and compression.
  package var encode: Duration = .zero
  /// From the first byte given to the last byte taken, waiting included.
  package var total: Duration = .zero

  package init() {}

  /// The time of a span; rewriting counts as encoding.
  subscript(span: StageSpan) -> Duration {
    get { self[keyPath: Self.field(span)] }
    set { self[keyPath: Self.field(span)] = newValue }
  }

  private static func field(_ span: StageSpan) -> WritableKeyPath<StageTimings, Duration> {
    switch span {
    case .decode: \.decode
    case .resize: \.resize
    case .filter: \.filter
    case .encode, .rewrite: \.encode
    }
  }
}

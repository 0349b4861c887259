internal import WorkerProtocol

/// An item of a batch that has not ended.
struct BatchEntry: Sendable {
  /// A copy of the item on its way.
  struct Flight: Sendable {
    let lane: Int
    let worker: ObjectIdentifier
    let began: ContinuousClock.Instant
  }

  let number: Int
  let upload: Upload
  let request: ImageRequest
  var attempts = 0
  /// Streams that broke while it was in flight.
  var breaks = 0
  /// Workers that had no room for it, or took no items any more.
  var refusals = 0
  var notBefore: ContinuousClock.Instant
  var deadline: ContinuousClock.Instant?
  /// Empty while it waits; two with a speculative copy.
  var flights: [Flight] = []

  /// An item that so many streams broke with is sent alone.
  static let suspectBreaks = 2

  var isSuspect: Bool { breaks >= Self.suspectBreaks }
}

/// The outcome of one item, by its number.
struct BatchEnd: Sendable {
  let number: Int
  let outcomes: Result<Outcomes, any Error>
  let preview: ImageResult?
  let attempts: Int
  let worker: String
}

/// An item that a lane sends.
struct BatchShipment: Sendable {
  /// The id on the stream.
  let id: String
  let number: Int
  let upload: Upload
  let start: Imageworker_V1_BatchItemStart
}

package import ServiceContextModule

extension ServiceContext {
  private enum DeadlineKey: ServiceContextKey {
    typealias Value = ContinuousClock.Instant
    static let nameOverride: String? = "call-deadline"
  }

  /// The time at which the client of the context's call stops waiting; `nil` if it set no timeout.
  package var callDeadline: ContinuousClock.Instant? {
    get { self[DeadlineKey.self] }
    set { self[DeadlineKey.self] = newValue }
  }
}

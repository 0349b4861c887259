/// When and how often requests are sent again.
///
/// Images are processed the same way each time, so everything that another attempt can change is retried: a worker that
/// is full or shutting down, and a connection that broke. The delay that a worker asks for counts if it is longer.
public struct RetryPolicy: Sendable, Hashable {
  /// The number of times that an image is sent at most.
  ///
  /// An image during which so many streams broke may be what breaks them.
  public var attempts = 6
  /// The number of times that an item of a batch is sent again because the worker had no room for it.
  public var overloadAttempts = 100
  /// The first delay, which doubles each time.
  public var initialDelay = Duration.milliseconds(100)
  /// The longest delay.
  public var maxDelay = Duration.seconds(5)
  /// A call, or a stream of a batch with items in flight, counts as broken if no result makes progress for so long.
  ///
  /// Longer than what a worker may spend on one image.
  public var stallAfter = Duration.seconds(150)
  /// A batch ends if no worker could be reached for so long.
  public var giveUpAfter = Duration.seconds(120)

  /// Creates the default policy.
  public init() {}

  /// The delay after a number of failures, varied so that clients do not return at the same moment.
  func delay(afterFailures failures: Int) -> Duration {
    let doubled = initialDelay * Double(1 << min(max(failures - 1, 0), 20))
    return min(maxDelay, doubled) * Double.random(in: 0.5...1)
  }
}

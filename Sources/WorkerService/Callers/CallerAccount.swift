package import CoreMetrics
internal import ImagePipeline
internal import Synchronization

/// The accounts of all callers that the worker knows.
package final class CallerAccounts: Sendable {
  private let accounts = Mutex<[String: CallerAccount]>([:])
  private let metrics: any MetricsFactory

  /// Creates the accounts of callers.
  ///
  /// - Parameters:
  ///   - policies: One for each caller; names are unique.
  ///   - metrics: The factory of the counters of each caller's use.
  package init(_ policies: [CallerPolicy], metrics: any MetricsFactory) {
    self.metrics = metrics
    replace(with: policies)
  }

  /// Applies other policies to calls under way and later ones; what callers have used still counts.
  ///
  /// A caller without a policy can start no more images.
  package func replace(with policies: [CallerPolicy]) {
    let policies = Dictionary(policies.map { ($0.name, $0) }) { $1 }
    accounts.withLock { accounts in
      for (name, account) in accounts { account.apply(policies[name]) }
      for (name, policy) in policies where accounts[name] == nil {
        accounts[name] = CallerAccount(policy, metrics: metrics)
      }
    }
  }

  /// Returns the account of a caller; `nil` for a name that never had a policy.
  func account(of name: String) -> CallerAccount? { accounts.withLock { $0[name] } }
}

/// The use of the worker by one caller.
final class CallerAccount: Sendable {
  private struct Bucket {
    var level: Double
    var updated: ContinuousClock.Instant
  }

  private struct State {
    var policy: CallerPolicy?
    var buckets: [CallerQuota: Bucket] = [:]
    var imageCount = 0
    /// The CPU time in seconds that images in progress have reserved and not used.
    var reservedSeconds = 0.0

    /// Adds what has become available since the last time.
    mutating func refill(_ quota: CallerQuota, now: ContinuousClock.Instant) -> Double {
      var bucket = buckets[quota] ?? Bucket(level: quota.amount, updated: now)
      let elapsed = bucket.updated.duration(to: now).seconds
      bucket.level = min(quota.amount, bucket.level + elapsed * quota.amount / quota.period.seconds)
      bucket.updated = now
      buckets[quota] = bucket
      return bucket.level
    }
  }

  let name: String
  private let state: Mutex<State>
  private let metrics: any MetricsFactory

  init(_ policy: CallerPolicy, metrics: any MetricsFactory) {
    name = policy.name
    state = Mutex(State(policy: policy))
    self.metrics = metrics
  }

  func apply(_ policy: CallerPolicy?) {
    state.withLock { state in
      state.policy = policy
      state.buckets = state.buckets.filter { policy?.quotas.contains($0.key) ?? false }
    }
  }

  func mayUse(preset name: String) -> Bool {
    state.withLock { state in
      guard let policy = state.policy else { return false }
      return policy.presets?.contains(name) ?? true
    }
  }

  /// Checks whether the caller may use a preset, and set fields.
  /// - Throws: `notAllowed`.
  func check(preset: String, setsFields: Bool) throws(CallerError) {
    guard mayUse(preset: preset) else {
      throw .notAllowed("the identity \(name) may not use the preset \"\(preset)\"", field: "preset")
    }
    if setsFields { try checkConfiguring(field: "configuration") }
  }

  /// Checks whether the caller may send more than an image and the name of a preset.
  /// - Throws: `notAllowed`.
  func checkConfiguring(field: String) throws(CallerError) {
    guard state.withLock({ $0.policy?.mayConfigure == false }) else { return }
    throw .notAllowed("the identity \(name) may only use presets; leave \(field) empty", field: field)
  }

  /// Begins an image of the caller.
  ///
  /// - `cpuTime`: an estimate of the CPU time of the image, which is reserved: images that begin together would
  ///   otherwise all find the same quota unused.
  /// - Throws: `quotaExceeded`, or `notAllowed` if the caller was removed.
  func beginImage(cpuTime: Duration = .zero, now: ContinuousClock.Instant = .now) throws(CallerError) -> CallerImage {
    let refusal: CallerError? = state.withLock { state in
      guard let policy = state.policy else {
        return .notAllowed("the identity \(name) was removed", field: nil)
      }
      if let error = exceeded(policy, &state, now) { return error }
      state.reservedSeconds += cpuTime.seconds
      for quota in policy.quotas where quota.resource == .images { state.buckets[quota]?.level -= 1 }
      state.imageCount += 1
      return nil
    }
    if let refusal { throw refused(refusal) }
    Counter(label: "imageworker.identity.images", dimensions: [("identity", name)], factory: metrics).increment()
    return CallerImage(self, reservedSeconds: cpuTime.seconds)
  }

  fileprivate func checkCPUTime(now: ContinuousClock.Instant) throws(CallerError) {
    let refusal: CallerError? = state.withLock { state in
      let quotas = (state.policy?.quotas ?? []).filter { $0.resource == .cpuSeconds }
      return exceeded(quotas, reservedSeconds: 0, &state, now)
    }
    if let refusal { throw refused(refusal) }
  }

  fileprivate func reserve(_ cpuTime: Duration, now: ContinuousClock.Instant) throws(CallerError) {
    let refusal: CallerError? = state.withLock { state in
      let quotas = (state.policy?.quotas ?? []).filter { $0.resource == .cpuSeconds }
      if let error = exceeded(quotas, reservedSeconds: state.reservedSeconds, &state, now) { return error }
      state.reservedSeconds += cpuTime.seconds
      return nil
    }
    if let refusal { throw refused(refusal) }
  }

  private func refused(_ error: CallerError) -> CallerError {
    Counter(label: "imageworker.identity.refusals", dimensions: [("identity", name)], factory: metrics).increment()
    return error
  }

  /// Returns the error of the limit that keeps the caller waiting for longest; `nil` if there is none.
  private func exceeded(_ policy: CallerPolicy, _ state: inout State, _ now: ContinuousClock.Instant) -> CallerError? {
    if let limit = policy.maxImages, state.imageCount >= limit {
      return .quotaExceeded(
        "\(state.imageCount) images of the identity \(name) are in progress, and max_images is \(limit)", caller: name,
        retryDelay: nil)
    }
    return exceeded(policy.quotas, reservedSeconds: state.reservedSeconds, &state, now)
  }

  private func exceeded(
    _ quotas: [CallerQuota], reservedSeconds: Double, _ state: inout State, _ now: ContinuousClock.Instant
  ) -> CallerError? {
    var longest: (quota: CallerQuota, wait: Double)?
    for quota in quotas {
      let level = state.refill(quota, now: now) - (quota.resource == .cpuSeconds ? reservedSeconds : 0)
      // Bytes and CPU time are known afterwards: an image may overdraw an account that is not empty.
      let missing = quota.resource == .images ? 1 - level : -level
      guard quota.resource == .images ? missing > 0 : missing >= 0 else { continue }
      let wait = missing * quota.period.seconds / quota.amount
      if wait >= longest?.wait ?? 0 { longest = (quota, wait) }
    }
    guard let (quota, wait) = longest else { return nil }
    // A little longer, so that a client that waits so long finds something.
    return .quotaExceeded(
      "the identity \(name) has used \(quota.name) of \(quota.amount.formattedShort)", caller: name,
      retryDelay: .milliseconds(Int((wait * 1000).rounded()) + 100))
  }

  fileprivate func use(_ amount: Double, of resource: CallerQuota.Resource) {
    guard amount > 0 else { return }
    state.withLock { state in
      for quota in state.policy?.quotas ?? [] where quota.resource == resource { state.buckets[quota]?.level -= amount }
    }
    let label = resource == .bytes ? "imageworker.identity.input" : "imageworker.identity.cpu.time"
    FloatingPointCounter(label: label, dimensions: [("identity", name)], factory: metrics).increment(by: amount)
  }

  /// Returns reserved CPU time.
  fileprivate func release(reservedSeconds: Double) { state.withLock { $0.reservedSeconds -= reservedSeconds } }

  fileprivate func endImage() { state.withLock { $0.imageCount -= 1 } }
}

/// One image of a caller, from its beginning to its deinitialization.
final class CallerImage: Sendable {
  private let account: CallerAccount
  /// Reserved CPU time that has not been used.
  private let reservedSeconds: Mutex<Double>

  fileprivate init(_ account: CallerAccount, reservedSeconds: Double) {
    self.account = account
    self.reservedSeconds = Mutex(reservedSeconds)
  }

  deinit {
    account.release(reservedSeconds: reservedSeconds.withLock { $0 })
    account.endImage()
  }

  /// Checks that the caller has CPU time left when the work on the image begins, because the images before it may have
  /// used more than they reserved.
  /// - Throws: `quotaExceeded`.
  func checkCPUTime(now: ContinuousClock.Instant = .now) throws(CallerError) { try account.checkCPUTime(now: now) }

  /// Reserves CPU time for more work on the image.
  /// - Throws: `quotaExceeded`.
  func reserve(cpuTime: Duration, now: ContinuousClock.Instant = .now) throws(CallerError) {
    try account.reserve(cpuTime, now: now)
    reservedSeconds.withLock { $0 += cpuTime.seconds }
  }

  /// Charges received bytes.
  func use(byteCount: Int) { account.use(Double(byteCount), of: .bytes) }

  /// Charges CPU time.
  func use(cpuTime: Duration) {
    account.use(cpuTime.seconds, of: .cpuSeconds)
    let reserved = reservedSeconds.withLock { left in
      defer { left = max(0, left - cpuTime.seconds) }
      return min(left, cpuTime.seconds)
    }
    if reserved > 0 { account.release(reservedSeconds: reserved) }
  }
}

extension Duration {
  fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension Double {
  /// A number without a needless fraction, as in `600` or `0.5`.
  fileprivate var formattedShort: String { self == rounded() && abs(self) < 1e15 ? "\(Int(self))" : "\(self)" }
}

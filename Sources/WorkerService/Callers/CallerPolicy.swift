/// The permissions and quotas of one caller.
package struct CallerPolicy: Sendable, Equatable {
  /// The name of the caller, as in the file of identities.
  package var name: String
  /// Names of the presets that the caller may use; `nil` for all.
  package var presets: Set<String>?
  /// Whether the caller may set fields of a configuration.
  package var mayConfigure = true
  /// The maximum number of images of the caller that are processed or wait at the same time; `nil` for no limit.
  package var maxImages: Int?
  /// The maximum use of resources over time.
  package var quotas: [CallerQuota] = []
}

extension CallerPolicy {
  /// Creates a policy that allows everything.
  package init(name: String) { self.init(name: name, quotas: []) }
}

/// The maximum use of one resource in a period.
///
/// A quota is a token bucket: unused amounts are saved for up to one period.
package struct CallerQuota: Sendable, Hashable {
  /// A resource that is counted.
  package enum Resource: String, Sendable, CaseIterable {
    case images
    case bytes
    case cpuSeconds = "cpu_seconds"
  }

  /// The time in which the amount may be used.
  package enum Period: String, Sendable, CaseIterable {
    case minute
    case hour

    var seconds: Double { self == .minute ? 60 : 3600 }
  }

  /// The resource that is limited.
  package var resource: Resource
  /// The period of the amount.
  package var period: Period
  /// The maximum amount; more than 0.
  package var amount: Double

  /// Creates a quota.
  package init(_ resource: Resource, per period: Period, amount: Double) {
    self.resource = resource
    self.period = period
    self.amount = amount
  }

  /// The name of the setting, as in `cpu_seconds_per_minute`.
  package var name: String { "\(resource.rawValue)_per_\(period.rawValue)" }
}

/// A refusal because of the caller.
enum CallerError: Error, Equatable {
  /// The caller may not do this, whenever it tries; `field` is the cause, if there is one.
  case notAllowed(String, field: String?)
  /// The caller used as much as it may; `retryDelay` is the time until there is more, if that is known.
  case quotaExceeded(String, caller: String, retryDelay: Duration?)

  var message: String {
    switch self {
    case .notAllowed(let message, _), .quotaExceeded(let message, _, _): message
    }
  }
}

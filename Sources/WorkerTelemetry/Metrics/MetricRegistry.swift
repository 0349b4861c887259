package import CoreMetrics
internal import Synchronization

/// All metric series of this process, for recording and for export.
///
/// The number of series is limited: above `maxSeries`, all further series of a metric are merged into one with the
/// dimension `otel.metric.overflow`, as the OpenTelemetry specification defines.
package final class MetricRegistry: MetricsFactory {
  /// One metric with its series.
  package struct Family: Sendable {
    package var description: MetricDescription
    /// Series, each with its dimensions sorted by name.
    package var series: [(dimensions: [Dimension], value: MetricValue)]
  }

  /// A name and a value that distinguish series of a metric.
  package struct Dimension: Sendable, Hashable {
    /// The name of the dimension.
    package var name: String
    /// The value of the dimension.
    package var value: String

    /// Creates a dimension.
    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  private struct Key: Hashable {
    var name: String
    var dimensions: [Dimension]
  }

  private struct State {
    var instruments: [Key: any Instrument] = [:]
    var observers: [Key: @Sendable () -> Double] = [:]
  }

  private let descriptions: [String: MetricDescription]
  private let maxSeries: Int
  private let state = Mutex(State())

  /// Creates an empty registry.
  ///
  /// - Parameters:
  ///   - catalog: The known metrics; others are exported without a help text.
  ///   - maxSeries: The maximum number of series of all metrics together.
  package init(catalog: [MetricDescription] = MetricCatalog.all, maxSeries: Int = 2000) {
    descriptions = Dictionary(uniqueKeysWithValues: catalog.map { ($0.name, $0) })
    self.maxSeries = maxSeries
  }

  /// Registers a closure that returns the value of a series whenever it is exported.
  ///
  /// `name` must be a counter or a gauge of the catalog.
  package func observe(_ name: String, _ dimensions: [Dimension] = [], _ observe: @escaping @Sendable () -> Double) {
    let key = Key(name: name, dimensions: dimensions.sorted { $0.name < $1.name })
    state.withLock { $0.observers[key] = observe }
  }

  /// Returns every metric that has a series, sorted by name.
  package func collect() -> [Family] {
    let (instruments, observers) = state.withLock { ($0.instruments, $0.observers) }
    var families: [String: Family] = [:]
    func add(_ key: Key, _ value: (MetricDescription) -> MetricValue) {
      let description = descriptions[key.name] ?? .gauge(key.name, "", key.name)
      var family = families[key.name] ?? Family(description: description, series: [])
      family.series.append((key.dimensions, value(family.description)))
      families[key.name] = family
    }
    // Called outside the lock, because an observer may itself record metrics.
    for (key, observe) in observers { add(key) { $0.kind == .counter ? .counter(observe()) : .gauge(observe()) } }
    for (key, instrument) in instruments { add(key) { _ in instrument.value } }
    return families.values.map(\.sorted).sorted { $0.description.name < $1.description.name }
  }

  /// Returns the instrument of a series, creating it if needed.
  ///
  /// `nil` if the catalog does not describe the metric with this kind; nothing is recorded then.
  private func instrument<Kind: Instrument>(
    _ name: String, _ dimensions: [(String, String)], _: Kind.Type
  ) -> Kind? {
    let key = Key(
      name: name, dimensions: dimensions.map { Dimension($0.0, $0.1) }.sorted { $0.name < $1.name })
    return state.withLock { state in
      if let known = state.instruments[key] { return known as? Kind }
      let isFull = state.instruments.count >= maxSeries
      let key = isFull ? Key(name: name, dimensions: [Dimension("otel.metric.overflow", "true")]) : key
      if let known = state.instruments[key] { return known as? Kind }
      guard let made = descriptions[name]?.kind.makeInstrument() as? Kind else { return nil }
      state.instruments[key] = made
      return made
    }
  }

  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    instrument(label, dimensions, CounterInstrument.self) ?? NOOPMetricsHandler.instance
  }

  package func makeFloatingPointCounter(
    label: String, dimensions: [(String, String)]
  ) -> any FloatingPointCounterHandler {
    instrument(label, dimensions, CounterInstrument.self) ?? NOOPMetricsHandler.instance
  }

  /// Records nothing: gauges are read when they are exported; see `observe`.
  package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
    NOOPMetricsHandler.instance
  }

  package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
    instrument(label, dimensions, HistogramInstrument.self) ?? NOOPMetricsHandler.instance
  }

  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    instrument(label, dimensions, HistogramInstrument.self) ?? NOOPMetricsHandler.instance
  }

  // A series lives as long as the process; its totals must not disappear.
  package func destroyCounter(_ handler: any CounterHandler) {}
  package func destroyRecorder(_ handler: any RecorderHandler) {}
  package func destroyTimer(_ handler: any TimerHandler) {}
}

extension MetricDescription.Kind {
  /// Returns an instrument for a new series; `nil` for gauges, which are observed.
  fileprivate func makeInstrument() -> (any Instrument)? {
    switch self {
    case .counter: CounterInstrument()
    case .gauge: nil
    case .histogram(let bounds): HistogramInstrument(bounds: bounds)
    }
  }
}

extension MetricRegistry.Family {
  fileprivate var sorted: Self {
    var family = self
    family.series.sort { left, right in
      left.dimensions.lexicographicallyPrecedes(right.dimensions) { ($0.name, $0.value) < ($1.name, $1.value) }
    }
    return family
  }
}

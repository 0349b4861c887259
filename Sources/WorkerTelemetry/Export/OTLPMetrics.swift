internal import SwiftProtobuf
internal import WorkerProtocol

typealias OTLPMetric = Opentelemetry_Proto_Metrics_V1_Metric
typealias OTLPNumber = Opentelemetry_Proto_Metrics_V1_NumberDataPoint
typealias OTLPHistogram = Opentelemetry_Proto_Metrics_V1_HistogramDataPoint
typealias OTLPMetricsRequest = Opentelemetry_Proto_Collector_Metrics_V1_ExportMetricsServiceRequest

/// The time range covered by exported metrics, in nanoseconds since 1970.
struct MetricPeriod {
  /// Start of counting.
  var start: UInt64
  var end: UInt64
}

extension OTLPMetricsRequest {
  init(_ families: [MetricRegistry.Family], _ period: MetricPeriod, resource: OTLPResource) {
    self.init()
    resourceMetrics = [
      .with { all in
        all.resource = resource
        all.schemaURL = SemanticConventions.schemaURL
        all.scopeMetrics = [
          .with { scope in
            scope.scope = .worker
            scope.schemaURL = SemanticConventions.schemaURL
            scope.metrics = families.map { OTLPMetric($0, period) }
          }
        ]
      }
    ]
  }
}

extension OTLPMetric {
  fileprivate init(_ family: MetricRegistry.Family, _ period: MetricPeriod) {
    self.init()
    name = family.description.name
    description_p = family.description.help
    unit = family.description.unit
    switch family.description.kind {
    case .counter:
      sum.isMonotonic = true
      sum.aggregationTemporality = .cumulative
      sum.dataPoints = family.series.map { OTLPNumber($0, period) }
    case .gauge: gauge.dataPoints = family.series.map { OTLPNumber($0, period) }
    case .histogram:
      histogram.aggregationTemporality = .cumulative
      histogram.dataPoints = family.series.compactMap { OTLPHistogram($0, period) }
    }
  }
}

extension OTLPNumber {
  fileprivate init(_ series: (dimensions: [MetricRegistry.Dimension], value: MetricValue), _ period: MetricPeriod) {
    self.init()
    attributes = series.dimensions.map { OTLPKeyValue($0.name, OTLPValue($0.value)) }
    startTimeUnixNano = period.start
    timeUnixNano = period.end
    switch series.value {
    case .counter(let value), .gauge(let value): asDouble = value
    case .histogram: break
    }
  }
}

extension OTLPHistogram {
  fileprivate init?(_ series: (dimensions: [MetricRegistry.Dimension], value: MetricValue), _ period: MetricPeriod) {
    guard case .histogram(let value) = series.value else { return nil }
    self.init()
    attributes = series.dimensions.map { OTLPKeyValue($0.name, OTLPValue($0.value)) }
    startTimeUnixNano = period.start
    timeUnixNano = period.end
    explicitBounds = value.bounds
    bucketCounts = value.counts
    count = value.count
    sum = value.sum
  }
}

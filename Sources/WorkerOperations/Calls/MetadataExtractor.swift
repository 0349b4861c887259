internal import GRPCCore
internal import Tracing

/// Reads trace context headers from a call's metadata.
struct MetadataExtractor: Extractor {
  /// Returns all values of a key, joined by commas as in HTTP; trace state and baggage may be split over several
  /// headers.
  func extract(key: String, from metadata: Metadata) -> String? {
    let values = Array(metadata[stringValues: key])
    return values.isEmpty ? nil : values.joined(separator: ",")
  }
}

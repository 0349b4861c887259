internal import GRPCCore
internal import Tracing

/// Reads trace headers from a call's metadata.
struct MetadataExtractor: Extractor {
  /// Values of one key are one list, as HTTP has it; trace state and baggage may come in several.
  func extract(key: String, from metadata: Metadata) -> String? {
    let values = Array(metadata[stringValues: key])
    return values.isEmpty ? nil : values.joined(separator: ",")
  }
}

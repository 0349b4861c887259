package import ImagePipeline
internal import SwiftProtobuf
package import WorkerProtocol

/// Reports as helpers send them and the cache keeps them: as they go over the wire, so that every field is written in one
/// place.
///
/// A helper may be hostile, so values that would overflow where they are used are refused.
extension ProcessingReport {
  var wireBytes: [UInt8]? { try? Imageworker_V1_ProcessingReport(self, traceID: nil).serializedBytes() }

  /// Returns `nil` if the bytes are no plausible report.
  init?(wireBytes: [UInt8]) {
    guard let wire = try? Imageworker_V1_ProcessingReport(serializedBytes: wireBytes), wire.isPlausible else {
      return nil
    }
    self.init(wire)
    timings.queued = Duration(plausible: wire.timings.queued)
    timings.decode = Duration(plausible: wire.timings.decode)
    timings.resize = Duration(plausible: wire.timings.resize)
    timings.filter = Duration(plausible: wire.timings.filter)
    timings.encode = Duration(plausible: wire.timings.encode)
    timings.total = Duration(plausible: wire.timings.total)
  }
}

extension ImageInfo {
  var wireBytes: [UInt8] { (try? Imageworker_V1_ImageInfo(self).serializedBytes()) ?? [] }

  /// Returns `nil` if the bytes are no plausible properties of an image.
  init?(wireBytes: [UInt8]) {
    guard let wire = try? Imageworker_V1_ImageInfo(serializedBytes: wireBytes) else { return nil }
    self.init(plausible: wire)
  }

  /// Returns `nil` for properties that are not plausible.
  package init?(plausible wire: Imageworker_V1_ImageInfo) {
    guard wire.isPlausible else { return nil }
    self.init(wire)
  }
}

extension Warning {
  var wireBytes: [UInt8] { (try? Imageworker_V1_WarningDetail(self).serializedBytes()) ?? [] }

  /// Returns `nil` if the bytes are no warning.
  init?(wireBytes: [UInt8]) {
    guard let wire = try? Imageworker_V1_WarningDetail(serializedBytes: wireBytes) else { return nil }
    self.init(wire)
  }
}

extension Duration {
  /// A duration between zero and a year.
  fileprivate init(plausible wire: Google_Protobuf_Duration) {
    self = .seconds(min(max(0, wire.seconds), 31_536_000)) + .nanoseconds(Int64(max(0, wire.nanos)))
  }
}

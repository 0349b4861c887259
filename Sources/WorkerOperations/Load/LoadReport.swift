internal import ProtobufWire

/// A load report for balancers, the message `xds.data.orca.v3.OrcaLoadReport`.
///
/// Source: gRFC A51, "Custom Backend Metrics Support", and the ORCA messages of the xDS API.
package struct LoadReport: Equatable, Sendable {
  /// The share of the time that image threads work, 0 to 1.
  package var utilization: Double
  /// The used share of the memory for images, 0 to 1.
  package var memoryUtilization: Double
  /// Ended calls per second.
  package var callsPerSecond: Double
  /// Failed calls per second.
  package var failedCallsPerSecond: Double
  /// The work of the call that the report is sent with, in seconds of an image thread; `nil` without a call.
  package var callCost: Double?

  /// The name of the call's cost among the named metrics.
  static let costName = "image_seconds"

  /// The serialized message; 62 bytes at most.
  var bytes: [UInt8] {
    var writer = WireWriter()
    writer.fixed64(1, utilization.bitPattern)
    writer.fixed64(2, memoryUtilization.bitPattern)
    writer.fixed64(6, callsPerSecond.bitPattern)
    writer.fixed64(7, failedCallsPerSecond.bitPattern)
    if let callCost {
      writer.message(8) { entry in
        entry.string(1, Self.costName)
        entry.fixed64(2, callCost.bitPattern)
      }
    }
    return writer.bytes
  }
}

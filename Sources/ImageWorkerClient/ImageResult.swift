public import FoundationEssentials
internal import SwiftProtobuf
public import WorkerProtocol

/// The fields of a configuration, with the names of the contract.
public typealias Fields = Imageworker_V1_ProcessingConfiguration
/// The properties of an image.
public typealias ImageInfo = Imageworker_V1_ImageInfo
/// The outcome of processing one image: sizes, the time of each stage, peak memory and warnings.
public typealias ProcessingReport = Imageworker_V1_ProcessingReport
/// A condition that did not prevent a result, with its code, message and parameters.
public typealias WarningDetail = Imageworker_V1_WarningDetail
/// The kind of a warning.
public typealias WarningCode = Imageworker_V1_WarningCode
/// The properties of an image and of its result.
public typealias Inspection = Imageworker_V1_InspectImageResponse
/// A named configuration of the worker.
public typealias Preset = Imageworker_V1_Preset

/// The result of processing one image.
public struct ImageResult: Sendable, Equatable {
  /// The file.
  public var data: Data
  /// Its properties as the worker planned them; those of ``report`` are final.
  public var header: ImageInfo
  /// The outcome: sizes, times, peak memory and warnings, with their codes in `warningDetails`.
  public var report: ProcessingReport

  /// The file format, such as `jpeg`.
  public var format: String { report.output.format }
  /// Width in pixels.
  public var width: Int { Int(report.output.width) }
  /// Height in pixels.
  public var height: Int { Int(report.output.height) }

  /// The time that each stage was busy.
  public var stageTimes: StageTimes {
    let timings = report.timings
    return StageTimes(
      queued: Self.time(timings.queued), decode: Self.time(timings.decode), resize: Self.time(timings.resize),
      filter: Self.time(timings.filter), encode: Self.time(timings.encode), total: Self.time(timings.total))
  }

  /// A time of a report, at most a year, whatever the worker claims.
  private static func time(_ duration: Google_Protobuf_Duration) -> Duration {
    min(max(.zero, .seconds(duration.seconds) + .nanoseconds(duration.nanos)), .seconds(31_536_000))
  }

  /// Writes the file.
  ///
  /// Readers see all of it, or what was there before.
  /// - Throws: an error of the file system.
  public func save(to path: String) async throws {
    let data = data
    try await BlockingWork.run { try data.write(to: URL(filePath: path), options: .atomic) }
  }
}

/// The time that each stage of an image was busy; the total includes waits.
public struct StageTimes: Sendable, Equatable {
  /// Waiting for admission.
  public var queued: Duration
  /// Decoding.
  public var decode: Duration
  /// Resizing.
  public var resize: Duration
  /// Requested filters.
  public var filter: Duration
  /// Color conversion, orientation and compression.
  public var encode: Duration
  /// From the first byte of the image to the last byte of the result.
  public var total: Duration
}

/// A part of a result, as it arrives.
public enum ResultPart: Sendable {
  /// The properties of the result. Comes first.
  case header(ImageInfo)
  /// The next bytes of the result.
  case chunk(Data)
  /// The outcome. Comes last.
  case report(ProcessingReport)
}

/// One of several results of an image.
public struct Rendition: Sendable {
  /// The name of the rendition in results.
  public var id: String
  /// The preset; empty for `default`.
  public var preset: String
  /// Replace those of the preset.
  public var fields: Fields

  /// Creates a rendition.
  public init(_ id: String, preset: String = "", fields: Fields = Fields()) {
    self.id = id
    self.preset = preset
    self.fields = fields
  }

  var message: Imageworker_V1_Rendition {
    var message = Imageworker_V1_Rendition()
    message.renditionID = id
    message.preset = preset
    message.configuration = fields
    return message
  }
}

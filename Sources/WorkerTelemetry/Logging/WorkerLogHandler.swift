internal import FoundationEssentials
internal import LibC
package import Logging
internal import ServiceContextModule
internal import Tracing

/// A log handler that writes one line per record to standard error, with the identifiers of the current span.
package struct WorkerLogHandler: LogHandler {
  /// The metadata of every record; the provider's and the record's own values take precedence.
  package var metadata: Logger.Metadata = [:]
  /// A source of metadata for each record; `nil` if there is none.
  package var metadataProvider: Logger.MetadataProvider?
  /// The minimum level of the records that the logger emits.
  package var logLevel: Logger.Level = .info

  private let label: String
  private let format: LogFormat
  private let write: @Sendable (String) -> Void
  private let export: LogExport?

  /// Creates a handler.
  ///
  /// - Parameters:
  ///   - label: The label of the logger.
  ///   - format: The format of the lines.
  ///   - export: The export that also receives each record; `nil` if logs are not exported.
  ///   - write: The destination of each line, including its line feed; defaults to `LogWriter.standardError`.
  package init(
    label: String, format: LogFormat, export: LogExport? = nil, write: (@Sendable (String) -> Void)? = nil
  ) {
    self.label = label
    self.format = format
    self.export = export
    self.write = write ?? { LogWriter.standardError.write($0, format: format) }
  }

  /// The format for standard error: text at a terminal, otherwise JSON.
  package static var fittingFormat: LogFormat { isatty(STDERR_FILENO) == 1 ? .text : .json }

  /// The value in `metadata` for a key; `nil` removes it.
  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  package func log(event: LogEvent) {
    var all = metadata
    if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
    if let given = event.metadata { all.merge(given) { $1 } }
    let line = LogLine(
      time: Date(), level: event.level, label: label, message: event.message.description,
      metadata: all.sorted { $0.key < $1.key }, span: ServiceContext.current?.spanContext)
    write(format.format(line))
    export?.take(line)
  }
}

/// Exports log records to a collector; created by `Telemetry`.
package struct LogExport: Sendable {
  let take: @Sendable (LogLine) -> Void
}

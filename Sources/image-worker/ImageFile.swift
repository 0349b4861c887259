internal import ImagePipeline
internal import SystemPackage
internal import WorkerService

/// An image read from a file through a window, never whole.
struct ImageFile {
  private static let windowByteCount = 256 * 1024

  let path: FilePath

  /// Reads as much as the header needs and plans the result.
  func plan(_ configuration: ProcessingConfiguration, limits: PictureLimits = PictureLimits()) throws -> Plan {
    try withWindows { window in
      var work = ImageWork(limits: limits, memory: nil, cancellation: Cancellation(), tracing: TraceTarget())
      return try Self.plan(configuration, &work, &window)
    }
  }

  /// Processes this file into another.
  func process(
    _ configuration: ProcessingConfiguration, limits: PictureLimits = PictureLimits(),
    cancellation: Cancellation = Cancellation(), tracing: TraceTarget = TraceTarget(), into output: FileDescriptor
  ) throws -> ProcessingReport {
    try withWindows { window in
      let clock = JobClock()
      var work = ImageWork(limits: limits, memory: nil, cancellation: cancellation, tracing: tracing)
      _ = try Self.plan(configuration, &work, &window)
      try work.start(nil)
      var failure: (any Error)?
      while true {
        try work.push(
          window.bytes.span.bytes.extracting(droppingFirst: window.offset), isLast: window.isLast
        ) { _, compressed in
          do { try compressed.withUnsafeBytes { _ = try output.writeAll($0) } } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
        if let outcome = work.takeEnd(of: 0) { return clock.timed(try outcome.get()) }
        try window.advance()
      }
    }
  }

  private static func plan(
    _ configuration: ProcessingConfiguration, _ work: inout ImageWork, _ window: inout Window
  ) throws -> Plan {
    while true {
      let headerByteCount = try work.readHeader(
        window.bytes.span.bytes.extracting(droppingFirst: window.offset), isLast: window.isLast)
      if let headerByteCount {
        window.offset += headerByteCount
        return try work.plan(configuration)
      }
      try window.advance()
    }
  }

  private func withWindows<Result>(_ body: (inout Window) throws -> Result) throws -> Result {
    let file = try FileDescriptor.open(path, .readOnly)
    return try file.closeAfter {
      var window = Window(file: file)
      try window.advance()
      return try body(&window)
    }
  }

  /// The bytes of the file that are held now.
  private struct Window {
    let file: FileDescriptor
    var bytes: [UInt8] = []
    /// Bytes of the window that were consumed.
    var offset = 0
    var isLast = false
    private var next: [UInt8]?

    init(file: FileDescriptor) {
      self.file = file
    }

    /// Reads one window ahead, so that the last is known to be the last.
    mutating func advance() throws {
      bytes = try next ?? read()
      offset = 0
      next = bytes.isEmpty ? [] : try read()
      isLast = next?.isEmpty ?? true
    }

    private func read() throws -> [UInt8] {
      try [UInt8](unsafeUninitializedCapacity: ImageFile.windowByteCount) { buffer, count in
        count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
      }
    }
  }
}

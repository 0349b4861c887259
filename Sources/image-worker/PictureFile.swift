internal import ImagePipeline
internal import SystemPackage

/// A picture read from a file through a window, never whole.
struct PictureFile {
  private static let windowByteCount = 256 * 1024

  let path: FilePath

  /// Reads as much as the header needs and plans the picture.
  func plan(_ configuration: ProcessingConfiguration, limits: PictureLimits = PictureLimits()) throws -> Plan {
    try withWindows { window in
      var reader = PictureReader(limits: limits)
      try Self.readHeader(&reader, &window)
      return try reader.plan(configuration)
    }
  }

  /// Runs the pipeline from this file into another.
  func process(
    _ configuration: ProcessingConfiguration, limits: PictureLimits = PictureLimits(),
    cancellation: Cancellation = Cancellation(), tracing: TraceTarget = TraceTarget(), into output: FileDescriptor
  ) throws -> ProcessingReport {
    try withWindows { window in
      let began = ContinuousClock.now
      var reader = PictureReader(limits: limits)
      try Self.readHeader(&reader, &window)
      let plan = try reader.plan(configuration)
      var pipeline = try PicturePath(reader, plan: plan, cancellation: cancellation, tracing: tracing)
      var failure: (any Error)?
      while true {
        let isDone = try pipeline.push(
          window.bytes.span.bytes.extracting(droppingFirst: window.offset), isLast: window.isLast
        ) { compressed in
          do { try compressed.withUnsafeBytes { _ = try output.writeAll($0) } } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
        if isDone { return pipeline.report(queued: .zero, total: began.duration(to: .now)) }
        try window.advance()
      }
    }
  }

  private static func readHeader(_ reader: inout PictureReader, _ window: inout Window) throws {
    while true {
      let (isComplete, consumed) = try reader.push(
        window.bytes.span.bytes.extracting(droppingFirst: window.offset), isLast: window.isLast)
      window.offset += consumed
      if isComplete { return }
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
      try [UInt8](unsafeUninitializedCapacity: PictureFile.windowByteCount) { buffer, count in
        count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
      }
    }
  }
}

internal import ImagePipeline
internal import LibC
internal import Synchronization
internal import SystemPackage
internal import WorkerTelemetry

/// The file of `--trace-out`.
extension ChromeTrace {
  /// Runs `body` with a trace that goes to a file, and ends the file however `body` ends.
  ///
  /// - Throws: what `body` throws, else `FileError` with the first error of writing.
  static func write(to path: FilePath, _ body: (ChromeTrace) async throws -> Void) async throws {
    func problem(_ error: any Error) -> FileError {
      FileError("--trace-out", path.text, "cannot be written", "\(error)")
    }
    let file: FileDescriptor
    do {
      file = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite, .groupRead, .otherRead])
    } catch { throw problem(error) }
    let failure = Mutex<(any Error)?>(nil)
    let trace = ChromeTrace { text in
      do { _ = try file.writeAll(text.utf8) } catch { failure.withLock { $0 = $0 ?? error } }
    }
    let outcome: Result<Void, any Error>
    do { outcome = .success(try await body(trace)) } catch { outcome = .failure(error) }
    trace.finish()
    do { try file.close() } catch { failure.withLock { $0 = $0 ?? error } }
    try outcome.get()
    if let failure = failure.withLock({ $0 }) { throw problem(failure) }
  }

  /// An observer of the work of a pipeline's stages.
  func observer(image: String) -> WorkObserver {
    { [self] stage, began, ended in note(stage, of: image, from: began, to: ended) }
  }

  func note(
    _ stage: String, of image: String, from began: ContinuousClock.Instant, to ended: ContinuousClock.Instant
  ) {
    record(stage, thread: Self.thread, from: began, to: ended, image: image)
  }

  /// A number of this thread, which no other thread has.
  private static var thread: UInt {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      UInt(pthread_self())
    #endif
  }
}

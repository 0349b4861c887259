import ImageWorkerKit

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The command `thumbnail-command <image> <result> [<field>=<value> ...]`.
///
/// The image is read, processed and written in chunks: no more than a few strips of it are in memory.
@main
struct Thumbnail {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count >= 3 else {
      print("usage: thumbnail-command <image> <result> [max_width=300 preferred_format=webp ...]")
      exit(2)
    }
    do {
      let configuration = try configuration(Array(arguments.dropFirst(3)))
      let report = try process(arguments[1], to: arguments[2], configuration)
      print("\(report) in \(report.totalTime)")
      for warning in report.warnings { print("warning: \(warning)") }
    } catch {
      print("error: \(error)")
      exit(1)
    }
  }

  /// The preset `preview`, with the fields of the arguments in place of its own.
  static func configuration(_ arguments: [String]) throws(ImageProcessingError) -> ProcessingConfiguration {
    var configuration = try ProcessingConfiguration(preset: "preview")
    for argument in arguments {
      let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
      try configuration.set(parts.first ?? "", to: parts.count == 2 ? parts[1] : "true")
    }
    return configuration
  }

  static func process(
    _ image: String, to result: String, _ configuration: ProcessingConfiguration
  ) throws -> ProcessingReport {
    let input = try File(image, mode: "rb")
    let run = try ImageProcessor().begin(configuration)
    // The result is opened only once there are bytes for it, so that a failure leaves none.
    var output: File?
    func write(_ bytes: [UInt8]) throws {
      if bytes.isEmpty { return }
      if output == nil { output = try File(result, mode: "wb") }
      try output?.write(bytes)
    }
    while let chunk = try input.read() { try write(run.push(chunk)) }
    let end = try run.finish()
    try write(end.bytes)
    try output?.close()
    return end.report
  }
}

/// A file that is open.
final class File {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let path: String
  private var file: UnsafeMutablePointer<FILE>?

  init(_ path: String, mode: String) throws(Failure) {
    self.path = path
    file = fopen(path, mode)
    if file == nil { throw failure }
  }

  deinit { if let file { fclose(file) } }

  private var failure: Failure { Failure(description: "\(path): \(String(cString: strerror(errno)))") }

  /// Returns the next bytes; `nil` at the end.
  func read() throws(Failure) -> [UInt8]? {
    guard let file else { return nil }
    let chunk = [UInt8](unsafeUninitializedCapacity: 256 * 1024) { $1 = fread($0.baseAddress, 1, $0.count, file) }
    if ferror(file) != 0 { throw failure }
    return chunk.isEmpty ? nil : chunk
  }

  func write(_ bytes: [UInt8]) throws(Failure) {
    guard let file, fwrite(bytes, 1, bytes.count, file) == bytes.count else { throw failure }
  }

  /// Writes what is buffered.
  func close() throws(Failure) {
    guard let file else { return }
    self.file = nil
    if fclose(file) != 0 { throw failure }
  }
}

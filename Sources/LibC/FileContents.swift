/// Reads a whole file.
/// - Parameters:
///   - path: The path of a regular file.
///   - maxByteCount: The maximum size of the file.
/// - Returns: Its bytes.
/// - Throws: `FileReadError` for a file that is missing, irregular, too large or unreadable.
package func readFile(_ path: String, maxByteCount: Int) throws(FileReadError) -> [UInt8] {
  // Without waiting for the writer of a pipe.
  let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
  guard descriptor >= 0 else {
    throw FileReadError(reason: errno == ENOENT ? "there is no such file" : "it cannot be opened")
  }
  defer { close(descriptor) }
  var status = stat()
  guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
    throw FileReadError(reason: "it is not a regular file")
  }
  guard (1...maxByteCount).contains(Int(status.st_size)) else {
    throw FileReadError(reason: "its size is not 1 to \(maxByteCount) bytes")
  }
  var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
  var byteCount = 0
  while byteCount < bytes.count {
    let count = read(descriptor, &bytes[byteCount], bytes.count - byteCount)
    guard count > 0 || count < 0 && errno == EINTR else { throw FileReadError(reason: "it cannot be read") }
    byteCount += max(0, count)
  }
  return bytes
}

/// The reason why a file cannot be read.
package struct FileReadError: Error {
  /// A clause about the file, such as "there is no such file".
  package let reason: String
}

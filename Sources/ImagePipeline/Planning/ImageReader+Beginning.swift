internal import ImageCodecs

/// Files of which only the beginning is known.
extension ImageReader {
  /// Returns whether the bytes are the beginning of a JPEG file, whose total length they do not contain.
  package static func isBeginning(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
    bytes.starts(with: [0xFF, 0xD8]) && !bytes.suffix(2).elementsEqual([0xFF, 0xD9])
  }

  /// Returns the error of an incomplete header, with the number of missing bytes.
  /// - Parameters:
  ///   - error: The error of the reader.
  ///   - bytes: The beginning of the file.
  /// - Returns: The error, which names the missing bytes if the format indicates them.
  package static func incomplete(_ error: PipelineError, _ bytes: RawSpan) -> PipelineError {
    guard let missing = HeaderExtent.missingByteCount(bytes), missing > 0 else { return error }
    var error = error
    error.neededByteCount = missing
    error.message += "; send at least \(missing) more bytes"
    return error
  }
}

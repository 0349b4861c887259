/// The number of frames of an animation whose header does not contain it.
package enum FrameCount {
  /// Returns the number of frames of a file in memory; see `find(_:)`.
  package static func find(in file: RawSpan) -> Int? {
    file.withUnsafeBytes { bytes in find { [UInt8](bytes.dropFirst($0).prefix($1)) } }
  }

  /// Returns the number of frames of a GIF or an animated WebP.
  /// - Parameter read: Returns bytes of the file at an offset; fewer at its end.
  /// - Returns: `nil` if the file is none of them, or incomplete.
  package static func find(_ read: (_ offset: Int, _ byteCount: Int) -> [UInt8]) -> Int? {
    GIFFrames.count(read) ?? WebPFrames.count(read)
  }
}

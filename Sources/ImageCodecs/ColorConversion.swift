internal import CCodecs

/// A conversion of rows from the colours of a picture's profile to sRGB, relative colorimetric.
///
/// A class because a stage may have none, and belongs to one picture as its budget does.
package final class ColorConversion {
  private let handle: OpaquePointer
  // Outlives what is charged to it.
  private let budget: PictureBudget

  init(_ handle: OpaquePointer, budget: PictureBudget) {
    self.handle = handle
    self.budget = budget
  }

  deinit { ccodecs_conversion_destroy(handle) }

  /// Converts pixels of the format that the conversion was made for; `cmyk8` becomes `rgb8`, samples of 16 bits become
  /// those of 8, others stay what they are.
  package func convert(_ source: UnsafePointer<UInt8>, to destination: UnsafeMutablePointer<UInt8>, pixelCount: Int) {
    ccodecs_conversion_convert(handle, source, destination, pixelCount)
  }
}

internal import CPixels
package import ImageCodecs

/// How the color of an overlay and that of the row below it make a color, where both are opaque.
package enum OverlayBlend: String, Sendable, Hashable, CaseIterable {
  /// The color of the overlay.
  case over
  /// The product of both colors, which is darker.
  case multiply
  /// The inverse of the product of the inverse colors, which is lighter.
  case screen

  fileprivate var handle: cpixels_blend {
    switch self {
    case .over: CPIXELS_BLEND_OVER
    case .multiply: CPIXELS_BLEND_MULTIPLY
    case .screen: CPIXELS_BLEND_SCREEN
    }
  }
}

/// The pixels of an overlay, an image or a text, at the size at which it is drawn: RGBA with straight alpha, 8 bits.
///
/// Its memory is not charged to a budget by itself: see `byteCount`.
package struct OverlayPixels: Sendable {
  /// The width in pixels.
  package let width: Int
  /// The height in pixels.
  package let height: Int
  private var bytes: [UInt8]
  private var filledRowCount = 0

  private static let pixelByteCount = 4

  /// Creates transparent pixels.
  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
    bytes = [UInt8](repeating: 0, count: Self.byteCount(width: width, height: height))
  }

  /// Creates pixels that a function draws.
  /// - `draw`: receives the pixels, all of which are transparent.
  init(width: Int, height: Int, draw: (UnsafeMutablePointer<UInt8>) -> Void) {
    self.init(width: width, height: height)
    bytes.withUnsafeMutableBufferPointer { $0.baseAddress.map(draw) }
    filledRowCount = height
  }

  /// Returns the size in bytes of an overlay.
  package static func byteCount(width: Int, height: Int) -> Int { width * height * pixelByteCount }

  /// The size in bytes.
  package var byteCount: Int { bytes.count }

  /// Appends rows, as far as there is room for them.
  /// - Parameters:
  ///   - rows: Rows in `format`.
  ///   - format: `gray8`, `rgb8` or `rgba8`.
  ///   - opacity: The factor of alpha, 0 to 1.
  package mutating func append(_ rows: Strip.Rows, format: PixelFormat, opacity: Double) {
    precondition(format == .gray8 || format == .rgb8 || format == .rgba8, "no format of overlays")
    precondition(rows.isEmpty || rows.rowByteCount >= width * format.pixelByteCount, "rows are shorter")
    let factor = UInt32((min(max(opacity, 0), 1) * 65025).rounded())
    let (width, rowByteCount) = (width, width * Self.pixelByteCount)
    let count = min(rows.rowCount, height - filledRowCount)
    let first = filledRowCount
    bytes.withUnsafeMutableBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return }
      for row in 0..<count {
        cpixels_overlay_pack(
          rows.bytes(row), UInt32(format.channelCount), factor, base + (first + row) * rowByteCount, width)
      }
    }
    filledRowCount += count
  }

  /// Converts the colors from sRGB to those of an RGB profile.
  package mutating func convertColors(to profile: [UInt8], budget: ImageBudget) {
    ColorProfile.convert(&bytes, to: profile, budget: budget)
  }

  /// Draws the overlay, blended over, onto a row of a plane of YCbCr.
  /// - Parameters:
  ///   - left: The left edge in pixels of the image; may lie outside.
  ///   - top: The top edge in pixels of the image; may lie outside.
  ///   - imageSize: The size of the image in pixels.
  ///   - channel: 0 for Y, 1 for Cb, 2 for Cr.
  ///   - pixelsPerSample: The number of pixels across and down that a sample stands for, 1 or 2.
  ///   - planeRow: The row of the plane.
  ///   - buffer: Rows of the plane.
  ///   - bufferRow: The row of the buffer.
  package func draw(
    left: Int, top: Int, imageSize: (width: Int, height: Int), channel: Int,
    pixelsPerSample: (across: Int, down: Int), planeRow: Int, onto buffer: RowBuffer, row bufferRow: Int
  ) {
    let (across, down) = pixelsPerSample
    precondition((1...2).contains(across) && (1...2).contains(down) && (0...2).contains(channel))
    precondition(buffer.rowByteCount >= (imageSize.width + across - 1) / across, "the buffer's rows are shorter")
    var handle = cpixels_overlay_place(
      width: UInt32(width), height: UInt32(height), left: Int64(left), top: Int64(top),
      image_width: UInt32(imageSize.width), image_height: UInt32(imageSize.height),
      channel: UInt8(channel), across: UInt8(across), down: UInt8(down))
    bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return }
      cpixels_overlay_plane(base, &handle, UInt32(planeRow), buffer.bytes(bufferRow))
    }
  }

  /// Draws pixels of a row onto a row of a buffer; traps unless both are in range.
  /// - Parameters:
  ///   - blend: How colors are mixed.
  ///   - row: The row of the overlay.
  ///   - columns: The columns of the overlay.
  ///   - buffer: Rows in `format`.
  ///   - bufferRow: The row of the buffer.
  ///   - column: The column of the buffer at which the first pixel is drawn.
  ///   - format: `rgb8` or `rgba8`.
  package func draw(
    _ blend: OverlayBlend, row: Int, columns: Range<Int>, onto buffer: RowBuffer, row bufferRow: Int, at column: Int,
    format: PixelFormat
  ) {
    precondition((0..<height).contains(row) && columns.lowerBound >= 0 && columns.upperBound <= width, "no such pixels")
    precondition(format == .rgb8 || format == .rgba8, "overlays are not drawn on this format")
    let pixelByteCount = format.pixelByteCount
    precondition(
      column >= 0 && (column + columns.count) * pixelByteCount <= buffer.rowByteCount, "the buffer's rows are shorter")
    bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress, !columns.isEmpty else { return }
      cpixels_overlay(
        blend.handle, base + (row * width + columns.lowerBound) * Self.pixelByteCount,
        buffer.bytes(bufferRow) + column * pixelByteCount, UInt32(format.channelCount), columns.count, CPIXELS_ISA_BEST)
    }
  }
}

/// A frame of a GIF that a test writes.
package struct GIFFrame: Sendable {
  package var left = 0
  package var top = 0
  package var width: Int
  package var height: Int
  /// Indices into the palette, row by row.
  package var indices: [UInt8]
  /// The frame's own colors, a power of two of them; `nil` for the global ones.
  package var palette: [[UInt8]]?
  package var transparent: UInt8?
  /// 0 to 3, as stored.
  package var disposal = 1
  /// In hundredths of a second.
  package var delay = 4
  package var isInterlaced = false

  package init(width: Int, height: Int, indices: [UInt8]) {
    self.width = width
    self.height = height
    self.indices = indices
  }
}

/// A GIF that a test writes, and what its frames look like.
package struct GIFAnimation: Sendable {
  package var width: Int
  package var height: Int
  package var frames: [GIFFrame]
  /// How often the animation is repeated after it was played once, 0 for ever; `nil` to store nothing.
  package var repeatCount: Int?
  /// The global colors.
  package var palette: [[UInt8]] = (0..<8).map { (level: UInt8) in [level * 36, 255 - level * 30, level * level * 5] }

  package init(width: Int, height: Int, frames: [GIFFrame], repeatCount: Int? = nil) {
    self.width = width
    self.height = height
    self.frames = frames
    self.repeatCount = repeatCount
  }

  /// Returns a random animation, whose first frame lies on the canvas.
  ///
  /// It has all disposals, partial frames, some of them partly outside of the canvas, palettes of frames, transparent
  /// colors, interlacing and zero durations.
  package static func random(_ generator: inout SeededGenerator, frameCount: Int) -> GIFAnimation {
    let (width, height) = (Int.random(in: 1...40, using: &generator), Int.random(in: 1...40, using: &generator))
    let frames = (0..<frameCount).map { index in
      let size = (
        Int.random(in: 1...(index == 0 ? width : 50), using: &generator),
        Int.random(in: 1...(index == 0 ? height : 50), using: &generator)
      )
      var frame = GIFFrame(
        width: size.0, height: size.1,
        indices: (0..<size.0 * size.1).map { _ in UInt8.random(in: 0...7, using: &generator) })
      frame.left = Int.random(in: 0...(index == 0 ? width - size.0 : width + 5), using: &generator)
      frame.top = Int.random(in: 0...(index == 0 ? height - size.1 : height + 5), using: &generator)
      frame.transparent = Bool.random(using: &generator) ? UInt8.random(in: 0...7, using: &generator) : nil
      frame.disposal = Int.random(in: 0...3, using: &generator)
      frame.delay = [0, 1, 7, 65_535].randomElement(using: &generator)!
      frame.isInterlaced = Bool.random(using: &generator)
      if Bool.random(using: &generator) {
        frame.palette = (0..<8).map { _ in (0..<3).map { _ in UInt8.random(in: 0...255, using: &generator) } }
      }
      return frame
    }
    return GIFAnimation(width: width, height: height, frames: frames, repeatCount: 3)
  }

  /// The file.
  package var bytes: [UInt8] {
    var bytes = [UInt8]("GIF89a".utf8) + Self.number(width) + Self.number(height) + [0x82, 0, 0]
    bytes += palette.flatMap(\.self)
    if let repeatCount {
      bytes += [0x21, 0xFF, 11] + [UInt8]("NETSCAPE2.0".utf8) + [3, 1] + Self.number(repeatCount) + [0]
    }
    for frame in frames {
      bytes += [0x21, 0xF9, 4, UInt8(frame.disposal << 2) | (frame.transparent == nil ? 0 : 1)]
      bytes += Self.number(frame.delay) + [frame.transparent ?? 0, 0]
      bytes += [0x2C] + [frame.left, frame.top, frame.width, frame.height].flatMap(Self.number)
      bytes.append((frame.palette == nil ? 0 : 0x82) | (frame.isInterlaced ? 0x40 : 0))
      bytes += (frame.palette ?? []).flatMap(\.self)
      bytes += [3] + Self.blocks(Self.codes(Self.stored(frame)))
    }
    return bytes + [0x3B]
  }

  private static func number(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }

  /// Returns the indices in file order.
  private static func stored(_ frame: GIFFrame) -> [UInt8] {
    guard frame.isInterlaced else { return frame.indices }
    let rows = [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0, to: frame.height, by: $1)) }
    return rows.flatMap { frame.indices[$0 * frame.width..<($0 + 1) * frame.width] }
  }

  /// Returns codes of four bits, with a clear code before the dictionary needs longer ones.
  private static func codes(_ indices: [UInt8]) -> [UInt8] {
    var codes: [UInt8] = []
    for (offset, index) in indices.enumerated() {
      if offset % 4 == 0 { codes.append(8) }
      codes.append(index)
    }
    codes.append(9)
    return stride(from: 0, to: codes.count, by: 2).map { codes[$0] | ($0 + 1 < codes.count ? codes[$0 + 1] << 4 : 0) }
  }

  private static func blocks(_ bytes: [UInt8]) -> [UInt8] {
    stride(from: 0, to: bytes.count, by: 200).flatMap { start in
      let block = bytes[start..<min(start + 200, bytes.count)]
      return [UInt8(block.count)] + block
    } + [0]
  }

  /// The frames as viewers show them, RGBA; transparent pixels are zero.
  package var composed: [[UInt8]] {
    var canvas = [[UInt8]](repeating: [0, 0, 0, 0], count: width * height)
    return frames.map { frame in
      let before = canvas
      let colors = frame.palette ?? palette
      var rectangle: [Int] = []
      for y in 0..<frame.height where frame.top + y < height {
        for x in 0..<frame.width where frame.left + x < width {
          let place = (frame.top + y) * width + frame.left + x
          let index = frame.indices[y * frame.width + x]
          rectangle.append(place)
          if index != frame.transparent { canvas[place] = colors[Int(index)] + [255] }
        }
      }
      let shown = canvas
      if frame.disposal == 2 { for place in rectangle { canvas[place] = [0, 0, 0, 0] } }
      if frame.disposal == 3 { canvas = before }
      return shown.flatMap(\.self)
    }
  }
}

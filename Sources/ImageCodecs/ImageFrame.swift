internal import CCodecs

/// One frame of an animation, or the only frame of a still image.
package struct ImageFrame: Sendable, Hashable {
  /// The left edge of the part of the canvas that the file stores for this frame, in pixels.
  package var left: Int
  /// The top edge of that part, in pixels.
  package var top: Int
  /// The width of that part in pixels.
  package var width: Int
  /// The height of that part in pixels.
  package var height: Int
  /// How long the frame is shown, in units of 1/`durationDivisor` seconds, as stored.
  package var duration: Int
  /// The number of units of `duration` in a second; 0 for a still image.
  package var durationDivisor: Int
  /// How often the animation is played, as far as the file has specified it before this frame; 0 for ever.
  package var playCount: Int
  /// The number of rows at the top of the canvas that equal those of the frame before, as far as the file shows it.
  package var keptAbove: Int
  /// The number of such rows at the bottom.
  package var keptBelow: Int
  /// The number of rows at the top of the result that its stages leave out, as they are those of the frame before.
  package var leftOutAbove = 0
  /// The number of such rows at the bottom.
  package var leftOutBelow = 0

  /// The duration in nanoseconds, rounded down.
  package var nanoseconds: UInt64 {
    durationDivisor == 0 ? 0 : UInt64(duration) * 1_000_000_000 / UInt64(durationDivisor)
  }

  init(_ handle: ccodecs_frame) {
    (left, top) = (Int(handle.left), Int(handle.top))
    (width, height) = (Int(handle.width), Int(handle.height))
    (duration, durationDivisor) = (Int(handle.duration), Int(handle.duration_divisor))
    playCount = Int(handle.play_count)
    (keptAbove, keptBelow) = (Int(handle.kept_above), Int(handle.kept_below))
  }

  var handle: ccodecs_frame {
    ccodecs_frame(
      left: UInt32(left), top: UInt32(top), width: UInt32(width), height: UInt32(height), duration: UInt32(duration),
      duration_divisor: UInt32(durationDivisor), play_count: UInt32(playCount),
      kept_above: UInt32(keptAbove), kept_below: UInt32(keptBelow))
  }
}

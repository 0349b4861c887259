internal import CCodecs

/// A color space with a profile of a few hundred bytes, to which an image's colors can be converted.
package enum ColorTarget: Sendable, Hashable {
  case srgb
  /// The primaries of DCI-P3 with the white and the curve of sRGB.
  case displayP3

  /// An ICC profile that contains only what the format requires.
  package var compactProfile: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(CCODECS_COMPACT_PROFILE_BYTES)) { buffer, count in
      count = buffer.baseAddress.map { ccodecs_compact_profile(handle, $0) } ?? 0
    }
  }

  var handle: ccodecs_color_target {
    switch self {
    case .srgb: CCODECS_TARGET_SRGB
    case .displayP3: CCODECS_TARGET_DISPLAY_P3
    }
  }
}

/// Operations on ICC profiles.
package enum ColorProfile {
  /// Returns the level as which the profiles of PQ and HLG show light that is `level` of the reference white, 203 cd/m².
  package static func hdrLevel(_ level: UInt8) -> UInt8 { ccodecs_profile_hdr_level(level) }

  /// Converts pixels from sRGB to the colors of a profile; they stay as they are if it does not define this direction.
  /// - Parameters:
  ///   - pixels: Red, green, blue and alpha, which is kept. Those of a gray profile become equal, and those of a profile
  ///     for CMYK a pixel of `cmyk8`.
  ///   - profile: The profile, which may be malformed.
  ///   - budget: The budget of the image, which is charged during the call.
  package static func convert(_ pixels: inout [UInt8], to profile: [UInt8], budget: ImageBudget) {
    profile.withUnsafeBufferPointer { profile in
      pixels.withUnsafeMutableBufferPointer { pixels in
        guard let bytes = profile.baseAddress, let first = pixels.baseAddress else { return }
        _ = ccodecs_profile_convert(bytes, profile.count, first, pixels.count / 4, budget.account)
      }
    }
  }
}

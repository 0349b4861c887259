internal import CCodecs

/// The metadata that an encoder or a rewriter writes to a file.
package struct EmbeddedMetadata: Sendable, Hashable {
  /// An EXIF block (TIFF); empty for none.
  package var exif: [UInt8]
  /// The ICC profile of the pixels; empty for none.
  ///
  /// Formats that cannot contain a profile ignore it.
  package var profile: [UInt8]
  /// An XMP packet; empty for none.
  package var xmp: [UInt8]
  /// The datasets of IPTC-IIM; empty for none.
  ///
  /// Only JPEG contains them.
  package var iptc: [UInt8]
  /// PQ or HLG, instead of a profile; `nil` for none.
  ///
  /// Only PNG, AVIF and JPEG XL contain them.
  package var colorCodes: ColorCodes?

  package init(exif: [UInt8] = [], profile: [UInt8] = [], xmp: [UInt8] = [], iptc: [UInt8] = []) {
    self.exif = exif
    self.profile = profile
    self.xmp = xmp
    self.iptc = iptc
  }

  /// The size of all metadata in bytes, without what a format adds.
  package var byteCount: Int { exif.count + profile.count + xmp.count + iptc.count }

  /// An upper bound of the bytes that all metadata adds to a file: a profile may grow by its compression in PNG, and is
  /// divided into segments in JPEG.
  package var maxStoredByteCount: Int {
    byteCount + (profile.isEmpty ? 0 : profile.count / 8 + 512) + (xmp.isEmpty && iptc.isEmpty ? 0 : 128)
  }

  /// Calls `body` with the C metadata, which is valid only during the call.
  func withHandle<Result>(_ body: (ccodecs_metadata) -> Result) -> Result {
    exif.withUnsafeBufferPointer { exif in
      profile.withUnsafeBufferPointer { profile in
        xmp.withUnsafeBufferPointer { xmp in
          iptc.withUnsafeBufferPointer { iptc in
            body(
              ccodecs_metadata(
                exif: exif.baseAddress, exif_count: exif.count, icc: profile.baseAddress, icc_count: profile.count,
                xmp: xmp.baseAddress, xmp_count: xmp.count, iptc: iptc.baseAddress, iptc_count: iptc.count,
                color_codes: colorCodes?.handle ?? ccodecs_color_codes()))
          }
        }
      }
    }
  }
}

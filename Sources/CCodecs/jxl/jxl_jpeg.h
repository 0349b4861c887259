// What a JPEG XL stores of the JPEG that it was recompressed from, except for its coefficients. Private to the JPEG XL
// codec.
//
// libjxl allocates what the fields of this box (jbrd) claim, before it has seen the bytes. So they are read here first.

#pragma once

#include "ccodecs.h"

typedef struct jxl_jpeg {
  uint32_t scan_count;
  uint64_t other_bytes;   ///< Bytes of the JPEG outside of its scans: segments, comments, and what follows the image.
  uint64_t library_bytes; ///< What libjxl allocates for this box.
  uint32_t exif_bytes;    ///< Contents of the file's Exif box, which the JPEG contains; 0 for none.
  uint32_t xmp_bytes;     ///< Likewise of its XMP box.
} jxl_jpeg;

/// Reads the fields of the box, of which `bytes` are the contents. Returns false if they end early, or ask for what
/// libjxl refuses.
bool ccodecs_jxl_jpeg_read(const uint8_t *bytes, size_t count, jxl_jpeg *jpeg);

/// Returns the bytes that Brotli's decoder allocates at most for data that begin with this byte.
uint64_t ccodecs_jxl_brotli_bytes(uint8_t first);

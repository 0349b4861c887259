// Estimates the quality that a JPEG was compressed with from its quantization tables.

#include "jpeg_quality.h"
#include "jpeg_encode.h"

/// Returns the sum of a table of T.81 annex K.1, scaled for a quality as in libjpeg. The order of the entries does not
/// matter to a sum.
static uint32_t table_sum(const uint8_t table[64], uint32_t quality) {
  const uint32_t scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  uint32_t sum = 0;
  for (int i = 0; i < 64; i++) {
    const uint32_t entry = (table[i] * scale + 50) / 100;
    sum += entry < 1 ? 1 : entry > 255 ? 255 : entry;
  }
  return sum;
}

uint8_t ccodecs_jpeg_quality(uint32_t luma_sum, uint32_t chroma_sum) {
  static const uint8_t luma[64] = {
      16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
      69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
      81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99,
  };
  static const uint8_t chroma[64] = {
      17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
      99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
      99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
  };
  // The native encoder has steps of its own.
  const uint8_t own = ccodecs_jpeg_encode_quality(luma_sum, chroma_sum);
  if (own > 0) {
    return own;
  }
  uint8_t quality = 1;
  while (quality < 100 && (table_sum(luma, quality) > luma_sum || table_sum(chroma, quality) > chroma_sum)) {
    quality++;
  }
  return quality;
}

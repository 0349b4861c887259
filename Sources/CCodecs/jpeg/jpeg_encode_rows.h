// Color conversion and downsampling of rows for the native JPEG encoder, which every kernel compiles for itself: the
// compiler turns these loops into its vectors. Private to the encoder.

#ifndef CCODECS_JPEG_ENCODE_ROWS_H
#define CCODECS_JPEG_ENCODE_ROWS_H

#include "jpeg_encode.h"

#define JPEG_ROWS_INLINE static inline __attribute__((always_inline))

/// Converts to the YCbCr of JFIF, with factors of 16 bits.
JPEG_ROWS_INLINE void ccodecs_jpeg_convert_rgb(
    const uint8_t *restrict rgb, uint8_t *restrict luma, uint8_t *restrict blue, uint8_t *restrict red, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const int32_t r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
    luma[i] = (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
    blue[i] = (uint8_t)((-11059 * r - 21709 * g + 32768 * b + (128 << 16) + 32767) >> 16);
    red[i] = (uint8_t)((32768 * r - 27439 * g - 5329 * b + (128 << 16) + 32767) >> 16);
  }
}

/// Averages pairs or fours of samples. Halves are rounded up and down in turn.
JPEG_ROWS_INLINE void ccodecs_jpeg_halve_rows(
    const uint8_t *restrict upper, const uint8_t *restrict lower, uint8_t *restrict output, size_t count) {
  if (lower == NULL) {
    for (size_t i = 0; i < count; i++) {
      output[i] = (uint8_t)((upper[2 * i] + upper[2 * i + 1] + (i & 1)) >> 1);
    }
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const uint32_t sum = (uint32_t)upper[2 * i] + upper[2 * i + 1] + lower[2 * i] + lower[2 * i + 1];
    output[i] = (uint8_t)((sum + 1 + (i & 1)) >> 2);
  }
}

#endif

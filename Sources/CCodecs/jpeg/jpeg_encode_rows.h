// Color conversion and downsampling of rows, and quantization of stored coefficients, for the native JPEG encoder.
// Every kernel compiles them for itself: the compiler turns these loops into its vectors. The including file defines
// TARGET, a function attribute. Private to the encoder.

#pragma once

#include "jpeg_encode.h"

/// Converts to the YCbCr of JFIF, with factors of 16 bits.
TARGET static void convert(
    const uint8_t *restrict rgb, uint8_t *restrict luma, uint8_t *restrict blue, uint8_t *restrict red, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const int32_t r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
    luma[i] = (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
    blue[i] = (uint8_t)((-11059 * r - 21709 * g + 32768 * b + (128 << 16) + 32767) >> 16);
    red[i] = (uint8_t)((32768 * r - 27439 * g - 5329 * b + (128 << 16) + 32767) >> 16);
  }
}

/// Averages pairs or fours of samples. Halves are rounded up and down in turn.
TARGET static void halve(
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

/// See jpeg_requantize.
TARGET static void requantize(
    const jpeg_chooser *chooser, const int16_t *restrict coefficients, float lambda, float *restrict values,
    jpeg_block *restrict block) {
#pragma STDC FP_CONTRACT OFF
  uint8_t bits[JPEG_BLOCK];
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    const float value = (float)coefficients[i] * chooser->inverse[i];
    const float magnitude = value < 0 ? -value : value;
    const float minimum = lambda * chooser->dead_zone[i] + 0.5F;
    // Adding 1.5 * 2^23 leaves no bits below the point.
    const int32_t nearest = (int32_t)((value + 12582912.0F) - 12582912.0F);
    const int32_t level = magnitude >= minimum ? nearest : 0;
    values[i] = value;
    block->levels[i] = (int16_t)level;
    bits[i] = level != 0 ? 1 : 0;
  }
  block->dc = (int16_t)((values[0] + 12582912.0F) - 12582912.0F);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < JPEG_BLOCK; i += 8) {
    // The product collects the lowest bits of eight bytes in its highest byte.
    uint64_t eight;
    memcpy(&eight, bits + i, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    mask |= (eight * 0x0102040810204080 >> 56) << i;
  }
  block->mask = ccodecs_jpeg_zigzag_mask(mask & ~(uint64_t)1);
}

/// The kernels of the including file, whose quantize and activity are its own.
#define JPEG_ENCODE_KERNELS                                                                                            \
  { .quantize = quantize, .requantize = requantize, .activity = activity, .convert = convert, .halve = halve }

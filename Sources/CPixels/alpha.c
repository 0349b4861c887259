// Alpha: premultiplying, unpremultiplying and flattening. All arithmetic is exact, so every instruction set produces
// the same samples.
//
// Divisions are done in single precision and are still exact. Every dividend is an integer below 2^24, quotients are
// below 256 and divisors at most 65025. A quotient that is not an integer is therefore at least 1/65025 below the next
// integer, which is more than rounding to 24 bits can add. Truncation then yields the integer quotient.

#include "kernels.h"

#include <string.h>

/// The value of 1 in premultiplied samples: 255 * 255.
enum { UNIT = 65025 };

/// The samples of four pixels.
typedef uint8_t bytes __attribute__((vector_size(16)));
typedef uint16_t words __attribute__((vector_size(32)));

CPIXELS_INLINE uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

CPIXELS_INLINE uint32_t divide(uint32_t dividend, uint32_t divisor) {
  return (uint32_t)((float)(int32_t)dividend / (float)(int32_t)divisor);
}

CPIXELS_INLINE void premultiply(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    bytes packed;
    memcpy(&packed, rgba + 4 * i, sizeof packed);
    const words pixels = __builtin_convertvector(packed, words);
    const words factors =
        __builtin_shufflevector(pixels, (words){255}, 0, 1, 2, 16, 4, 5, 6, 16, 8, 9, 10, 16, 12, 13, 14, 16);
    const words products =
        factors * __builtin_shufflevector(pixels, pixels, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15);
    memcpy(premultiplied + 4 * i, &products, sizeof products);
  }
  for (; i < pixel_count; i++) {
    for (uint32_t c = 0; c < 4; c++) {
      premultiplied[4 * i + c] = (uint16_t)((c < 3 ? rgba[4 * i + c] : 255) * rgba[4 * i + 3]);
    }
  }
}

CPIXELS_INLINE void unpremultiply(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint32_t alpha = smaller(premultiplied[3], UNIT);
    const uint32_t shown = (alpha + 128 + ((alpha + 128) >> 8)) >> 8; // alpha / 255, rounded to nearest
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t color = smaller(premultiplied[c], alpha);
      const uint32_t quotient = divide(color * 255 + alpha / 2, alpha + (alpha == 0));
      rgba[c] = shown == 0 ? 0 : (uint8_t)quotient;
    }
    rgba[3] = (uint8_t)shown;
  }
}

CPIXELS_INLINE void flatten(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count) {
  const uint32_t under[3] = {background[0], background[1], background[2]};
  for (size_t i = 0; i < pixel_count; i++, rgb += 3, premultiplied += 4) {
    const uint32_t alpha = smaller(premultiplied[3], UNIT);
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t color = smaller(premultiplied[c], alpha);
      rgb[c] = (uint8_t)divide(color * 255 + under[c] * (UNIT - alpha) + UNIT / 2, UNIT);
    }
  }
}

CPIXELS_AVX2 static void premultiply_avx2(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  premultiply(rgba, premultiplied, pixel_count);
}

CPIXELS_AVX2 static void unpremultiply_avx2(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  unpremultiply(premultiplied, rgba, pixel_count);
}

CPIXELS_AVX2 static void flatten_avx2(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count) {
  flatten(premultiplied, background, rgb, pixel_count);
}

void cpixels_premultiply(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_VECTORIZED(premultiply, isa)(rgba, premultiplied, pixel_count);
}

void cpixels_unpremultiply(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_VECTORIZED(unpremultiply, isa)(premultiplied, rgba, pixel_count);
}

void cpixels_flatten(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_VECTORIZED(flatten, isa)(premultiplied, background, rgb, pixel_count);
}

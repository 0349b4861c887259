// Color conversions in integer arithmetic, with the same results for every instruction set.

#include "kernels.h"

/// The coefficients of YCbCr to RGB, in Q15: 1.402 - 1, -0.344136, 1 - 0.714136, 1.772 - 2.
enum {
  RED_OF_CR = 13173,
  GREEN_OF_CB = -11277,
  GREEN_OF_CR = 9367,
  BLUE_OF_CB = -7471,
};

CPIXELS_INLINE uint8_t clamp_to_byte(int32_t value) {
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// Source: JFIF 1.02, "Conversion to and from RGB": 1.402, 0.344136, 0.714136, 1.772. The fractions are in Q15 and
/// relative to the nearest integer, so that they and their products fit in 16-bit arithmetic.
CPIXELS_INLINE void ycc_to_rgb(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count) {
  const int32_t half = 1 << 14;
  for (size_t i = 0; i < pixel_count; i++, rgb += 3) {
    const int32_t blue = cb[i] - 128;
    const int32_t red = cr[i] - 128;
    rgb[0] = clamp_to_byte(y[i] + red + ((RED_OF_CR * red + half) >> 15));
    rgb[1] = clamp_to_byte(y[i] - red + ((GREEN_OF_CB * blue + GREEN_OF_CR * red + half) >> 15));
    rgb[2] = clamp_to_byte(y[i] + 2 * blue + ((BLUE_OF_CB * blue + half) >> 15));
  }
}

CPIXELS_AVX2 static void ycc_to_rgb_avx2(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count) {
  ycc_to_rgb(y, cb, cr, rgb, pixel_count);
}

void cpixels_ycc_to_rgb(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_VECTORIZED(ycc_to_rgb, isa)(y, cb, cr, rgb, pixel_count);
}

void cpixels_gray_to_rgb(const uint8_t *gray, uint8_t *rgb, size_t pixel_count) {
  cpixels_join_scalar(gray, 0, pixel_count, 3, rgb); // the three planes are the same memory
}

void cpixels_cmyk_to_rgb(const uint8_t *cmyk, uint8_t *rgb, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, cmyk += 4, rgb += 3) {
    const uint32_t black = cmyk[3];
    for (int c = 0; c < 3; c++) {
      rgb[c] = (uint8_t)((cmyk[c] * black + 127) / 255);
    }
  }
}

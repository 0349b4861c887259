// The arithmetic of overlays in vectors, written once for all instruction sets. The including file defines TARGET, a
// function attribute, and the loops over rows.
//
// Divisions are done in floating point and are still exact: see alpha_avx2.c. Dividends above 2^24, which only blending
// with transparent rows has, are divided in double precision.

#include "kernels.h"

#define INLINE TARGET static inline __attribute__((always_inline))

/// The value of 1 as a product of two samples.
enum { UNIT = 65025 };

/// Samples, or products of two.
typedef uint16_t words __attribute__((vector_size(32)));
/// Samples, or products of several.
typedef uint32_t whole_lanes __attribute__((vector_size(32)));
typedef int32_t signed_lanes __attribute__((vector_size(32)));
typedef float lanes __attribute__((vector_size(32)));

typedef uint32_t half_lanes __attribute__((vector_size(16)));
typedef int32_t signed_half_lanes __attribute__((vector_size(16)));
typedef double double_lanes __attribute__((vector_size(32)));

/// Draws over a row of RGB.
INLINE void over_rgb(const uint8_t *rgba, uint8_t *row, size_t pixel_count);
/// Blends with a row of RGB, and with one of RGBA. `blend` is known when it is compiled.
INLINE void blend_rgb(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count);
INLINE void blend_rgba(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count);

/// Returns (x + 127) / 255 of lanes up to 65025: no quotient lies halfway between two levels.
INLINE words divide_by_255(words x) {
  const words shifted = x + 128;
  return (shifted + (shifted >> 8)) >> 8;
}

/// Draws samples over opaque ones.
INLINE words drawn_over(words over, words under, words alpha) {
  return divide_by_255(over * alpha + under * (255 - alpha));
}

/// Returns 255 * B(under, over).
INLINE whole_lanes mixed(cpixels_blend blend, whole_lanes over, whole_lanes under) {
  switch (blend) {
  case CPIXELS_BLEND_MULTIPLY:
    return over * under;
  case CPIXELS_BLEND_SCREEN:
    return 255 * (over + under) - over * under;
  case CPIXELS_BLEND_OVER:
    break;
  }
  return 255 * over;
}

/// Divides numbers below 2^24. Quotients are below 256.
INLINE whole_lanes divide(whole_lanes dividend, float divisor) {
  const lanes quotient = __builtin_convertvector((signed_lanes)dividend, lanes) / divisor;
  return (whole_lanes) __builtin_convertvector(quotient, signed_lanes);
}

/// Blends samples with opaque ones. The dividend is at most 255^3 + 32512.
INLINE whole_lanes blended_with_opaque(cpixels_blend blend, whole_lanes over, whole_lanes under, whole_lanes alpha) {
  const whole_lanes sum = alpha * mixed(blend, over, under) + 255 * ((255 - alpha) * under);
  return divide(sum + UNIT / 2, UNIT);
}

INLINE half_lanes divide_half(half_lanes dividend, half_lanes divisor) {
  const double_lanes quotient = __builtin_convertvector(dividend, double_lanes) /
                                __builtin_convertvector((signed_half_lanes)divisor, double_lanes);
  return (half_lanes) __builtin_convertvector(quotient, signed_half_lanes);
}

/// Divides any numbers by ones below 2^31. Quotients are below 256.
INLINE whole_lanes divide_large(whole_lanes dividend, whole_lanes divisor) {
  const half_lanes low = divide_half(
      __builtin_shufflevector(dividend, dividend, 0, 1, 2, 3), __builtin_shufflevector(divisor, divisor, 0, 1, 2, 3));
  const half_lanes high = divide_half(
      __builtin_shufflevector(dividend, dividend, 4, 5, 6, 7), __builtin_shufflevector(divisor, divisor, 4, 5, 6, 7));
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

/// Returns 255 times the alpha of two samples, of which one is blended with the other.
INLINE whole_lanes joint_alpha(whole_lanes over, whole_lanes under) {
  return 255 * over + under * (255 - over);
}

INLINE whole_lanes blended_alpha(whole_lanes over, whole_lanes under) {
  return divide(joint_alpha(over, under) + 127, 255);
}

/// Blends samples with ones that may be transparent. The result is 0 where both are.
INLINE whole_lanes
blended(cpixels_blend blend, whole_lanes over, whole_lanes under, whole_lanes over_alpha, whole_lanes under_alpha) {
  const whole_lanes alpha = joint_alpha(over_alpha, under_alpha);
  const whole_lanes divisor = 255 * alpha;
  const whole_lanes sum = over_alpha * (255 - under_alpha) * (255 * over) +
                          over_alpha * under_alpha * mixed(blend, over, under) +
                          (255 - over_alpha) * under_alpha * (255 * under);
  // Where both are transparent the dividend is 0, and the divisor 1 in place of 0.
  return divide_large(sum + (divisor >> 1), divisor - (whole_lanes)(alpha == 0));
}

INLINE void overlay(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
  switch (blend) {
  case CPIXELS_BLEND_OVER:
    channels == 3 ? over_rgb(rgba, row, pixel_count) : blend_rgba(CPIXELS_BLEND_OVER, rgba, row, pixel_count);
    break;
  case CPIXELS_BLEND_MULTIPLY:
    channels == 3 ? blend_rgb(CPIXELS_BLEND_MULTIPLY, rgba, row, pixel_count)
                  : blend_rgba(CPIXELS_BLEND_MULTIPLY, rgba, row, pixel_count);
    break;
  case CPIXELS_BLEND_SCREEN:
    channels == 3 ? blend_rgb(CPIXELS_BLEND_SCREEN, rgba, row, pixel_count)
                  : blend_rgba(CPIXELS_BLEND_SCREEN, rgba, row, pixel_count);
    break;
  }
}

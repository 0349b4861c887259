// The kernels of area filters over vectors, written once for all instruction sets. The including file defines TARGET (a
// function attribute) and INLINE. The scalar versions in filter_scalar.c are the oracle.

#include "filter_kernels.h"
#include "lanes.h"

#include <string.h>

/// Sixteen samples, or four pixels.
typedef uint8_t bytes __attribute__((vector_size(16), aligned(1)));
typedef int16_t shorts __attribute__((vector_size(32), aligned(2)));
typedef uint16_t words __attribute__((vector_size(32)));
typedef int32_t wholes __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));

#define ALPHAS(x) __builtin_shufflevector(x, x, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15)
#define CLAMPED(x, low, high)                                                                                          \
  __builtin_elementwise_min(__builtin_elementwise_max(x, (__typeof__(x)){0} + (low)), (__typeof__(x)){0} + (high))

TARGET static void widen(const uint8_t *samples, size_t sample_count, int16_t *wide) {
  for (size_t i = 0; i < sample_count; i++) {
    wide[i] = (int16_t)(samples[i] << CPIXELS_AREA_BITS);
  }
}

TARGET static void accumulate(const int16_t *wide, size_t sample_count, uint32_t *sums) {
  for (size_t i = 0; i < sample_count; i++) {
    sums[i] += (uint32_t)wide[i];
  }
}

/// Premultiplies four pixels.
INLINE void premultiply_4(const uint8_t *rgba, shorts *wide) {
  const shorts pixels = __builtin_convertvector(*(const bytes *)rgba, shorts);
  const shorts factors =
      __builtin_shufflevector(pixels, (shorts){255}, 0, 1, 2, 16, 4, 5, 6, 16, 8, 9, 10, 16, 12, 13, 14, 16);
  *wide = (shorts)(((words)factors * (words)ALPHAS(pixels) + 2) >> 2);
}

TARGET static void premultiply(const uint8_t *rgba, size_t pixel_count, int16_t *wide) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    premultiply_4(rgba + 4 * i, (shorts *)(wide + 4 * i));
  }
  cpixels_filter_scalar.premultiply(rgba + 4 * i, pixel_count - i, wide + 4 * i);
}

/// Blends sixteen samples: `source` is 8-bit, `filtered` is Q6.
INLINE void blend_16(
    const wholes *source, const wholes *filtered, int32_t gain, int32_t threshold, bytes *destination) {
  const int bits = CPIXELS_AREA_BITS + CPIXELS_GAIN_BITS;
  const wholes all = (*source << CPIXELS_AREA_BITS) - *filtered;
  const wholes change = gain * (all & (__builtin_elementwise_abs(all) > threshold));
  const wholes sum = ((*source << bits) + (1 << (bits - 1)) + change) >> bits;
  *destination = __builtin_convertvector(CLAMPED(sum, 0, 255), bytes);
}

TARGET static void blend(
    const uint8_t *source, const int16_t *wide, size_t sample_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  size_t i = 0;
  for (; i + 16 <= sample_count; i += 16) {
    const wholes levels = __builtin_convertvector(*(const bytes *)(source + i), wholes);
    const wholes filtered = __builtin_convertvector(*(const shorts *)(wide + i), wholes);
    blend_16(&levels, &filtered, gain, threshold, (bytes *)(destination + i));
  }
  cpixels_filter_scalar.blend(source + i, wide + i, sample_count - i, gain, threshold, destination + i);
}

TARGET static void blend_over_alpha(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const bytes pixels = *(const bytes *)(rgba + 4 * i);
    const wholes source = __builtin_convertvector(pixels, wholes);
    const wholes samples = __builtin_convertvector(*(const shorts *)(wide + 4 * i), wholes);
    const wholes alphas = ALPHAS(samples);
    const floats divisors = __builtin_convertvector(__builtin_elementwise_max(alphas, (wholes){0} + 1), floats);
    const floats quotients = __builtin_convertvector(samples, floats) * (float)CPIXELS_AREA_WHITE / divisors;
    const wholes colors = __builtin_convertvector(quotients + 0.5f, wholes);
    const wholes limited = __builtin_elementwise_min(colors, (wholes){0} + CPIXELS_AREA_WHITE);
    // Where all surrounding pixels are transparent, there is no color to compare with.
    const wholes is_clear = alphas < 1;
    const wholes filtered = (is_clear & (source << CPIXELS_AREA_BITS)) | (~is_clear & limited);
    bytes blended;
    blend_16(&source, &filtered, gain, threshold, &blended);
    *(bytes *)(destination + 4 * i) =
        __builtin_shufflevector(blended, pixels, 0, 1, 2, 19, 4, 5, 6, 23, 8, 9, 10, 27, 12, 13, 14, 31);
  }
  cpixels_filter_scalar.blend_over_alpha(
      rgba + 4 * i, wide + 4 * i, pixel_count - i, gain, threshold, destination + 4 * i);
}

TARGET static void blend_premultiplied(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, uint16_t *premultiplied) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    shorts pixels;
    premultiply_4(rgba + 4 * i, &pixels);
    const wholes source = __builtin_convertvector(pixels, wholes);
    const wholes difference = source - __builtin_convertvector(*(const shorts *)(wide + 4 * i), wholes);
    const wholes sum = source + ((gain * difference + (1 << (CPIXELS_GAIN_BITS - 1))) >> CPIXELS_GAIN_BITS);
    const shorts narrow = __builtin_convertvector(CLAMPED(sum, INT16_MIN, INT16_MAX), shorts);
    *(shorts *)(premultiplied + 4 * i) = CLAMPED(narrow, 0, 16256) << 2;
  }
  cpixels_filter_scalar.blend_premultiplied(rgba + 4 * i, wide + 4 * i, pixel_count - i, gain, premultiplied + 4 * i);
}

// The resampling kernels for floats over vectors, written once for all instruction sets. The including file defines
// LANES (the number of floats in a vector) and TARGET (a function attribute).

#include "kernels.h"
#include "lanes.h"

enum { VECTORS = CPIXELS_COLUMN_MULTIPLE / LANES };

typedef float four_lanes __attribute__((vector_size(16)));
typedef float sixteen_lanes __attribute__((vector_size(64)));
typedef uint16_t short_lanes __attribute__((vector_size(2 * LANES)));

TARGET static void widen_u16(const uint16_t *samples, size_t sample_count, float *floats) {
  for (size_t i = 0; i < sample_count; i++) {
    floats[i] = samples[i];
  }
}

/// Adds up the four partial sums of a pixel's lanes.
INLINE void add_up_quarters(const sixteen_lanes *sum, float *pixel) {
  four_lanes quarters[4];
  memcpy(quarters, sum, sizeof quarters);
  const four_lanes total = (quarters[0] + quarters[2]) + (quarters[1] + quarters[3]);
  memcpy(pixel, &total, sizeof total);
}

/// Computes one destination pixel of four lanes at a time, four taps at a time, in four partial sums.
TARGET static void horizontal_four(
    const cpixels_axis *axis, const float *a, const float *b, float *out_a, float *out_b) {
  for (uint32_t d = 0; d < axis->destination_count; d++, out_a += 4, out_b += 4) {
    const float *weights = axis->float_weights + (size_t)d * axis->window;
    sixteen_lanes sum_a = {0};
    sixteen_lanes sum_b = {0};
    for (uint32_t t = 0; t < axis->tap_count; t += 4) {
      const size_t at = ((size_t)axis->first[d] + t) * 4;
      four_lanes four;
      sixteen_lanes pixels_a, pixels_b;
      memcpy(&four, weights + t, sizeof four);
      memcpy(&pixels_a, a + at, sizeof pixels_a);
      memcpy(&pixels_b, b + at, sizeof pixels_b);
      const sixteen_lanes weight = __builtin_shufflevector(four, four, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
      sum_a = __builtin_elementwise_fma(pixels_a, weight, sum_a);
      sum_b = __builtin_elementwise_fma(pixels_b, weight, sum_b);
    }
    add_up_quarters(&sum_a, out_a);
    add_up_quarters(&sum_b, out_b);
  }
}

/// Computes the 32 sums that start at `x`.
INLINE void vertical_32_float(
    const float *const *rows, const float *weights, uint32_t row_count, size_t x, lanes sums[VECTORS]) {
#pragma unroll
  for (size_t i = 0; i < VECTORS; i++) {
    sums[i] = (lanes){0};
  }
  for (uint32_t t = 0; t < row_count; t++) {
    const lanes weight = weights[t] - (lanes){0};
#pragma unroll
    for (size_t i = 0; i < VECTORS; i++) {
      sums[i] = __builtin_elementwise_fma(load_lanes(rows[t] + x + i * LANES), weight, sums[i]);
    }
  }
}

TARGET static void vertical_float(
    const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, float *destination) {
  for (size_t x = 0; x < sample_count; x += CPIXELS_COLUMN_MULTIPLE) {
    lanes sums[VECTORS];
    vertical_32_float(rows, weights, row_count, x, sums);
    memcpy(destination + x, sums, sizeof sums);
  }
}

/// Rounds the samples to nearest like the scalar kernel, by adding a half and truncating.
INLINE void vertical_32_u16(
    const float *const *rows, const float *weights, uint32_t row_count, size_t x, uint16_t *destination) {
  lanes sums[VECTORS];
  vertical_32_float(rows, weights, row_count, x, sums);
#pragma unroll
  for (size_t i = 0; i < VECTORS; i++) {
    const whole_lanes whole = __builtin_convertvector(sums[i] + 0.5f, whole_lanes);
    const whole_lanes positive = __builtin_elementwise_max(whole, (whole_lanes){0});
    const short_lanes samples =
        __builtin_convertvector(__builtin_elementwise_min(positive, (whole_lanes){0} + 65535), short_lanes);
    memcpy(destination + i * LANES, &samples, sizeof samples);
  }
}

TARGET static void vertical_u16(
    const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, uint16_t *destination) {
  size_t x = 0;
  for (; x + CPIXELS_COLUMN_MULTIPLE <= sample_count; x += CPIXELS_COLUMN_MULTIPLE) {
    vertical_32_u16(rows, weights, row_count, x, destination + x);
  }
  if (x < sample_count) {
    uint16_t last[CPIXELS_COLUMN_MULTIPLE];
    vertical_32_u16(rows, weights, row_count, x, last);
    memcpy(destination + x, last, (sample_count - x) * sizeof *last);
  }
}

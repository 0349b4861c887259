// The scalar kernels, which are the oracle for the vector kernels: results must be identical.

#include "kernels.h"

#include <math.h>
#include <string.h>

enum { HORIZONTAL_SHIFT = CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS };
enum { VERTICAL_SHIFT = CPIXELS_WEIGHT_BITS + CPIXELS_INTERMEDIATE_BITS };

static int16_t weighted_sum(const uint8_t *samples, const int16_t *weights, uint32_t count) {
  int32_t sum = 1 << (HORIZONTAL_SHIFT - 1);
  for (uint32_t t = 0; t < count; t++) {
    sum += samples[t] * weights[t];
  }
  return (int16_t)(sum >> HORIZONTAL_SHIFT);
}

static void horizontal_u8(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  for (uint32_t d = 0; d < axis->destination_count; d++, pairs += 2) {
    if (axis->layout == CPIXELS_LAYOUT_COPY) {
      pairs[0] = (int16_t)(a[d] << CPIXELS_INTERMEDIATE_BITS);
      pairs[1] = (int16_t)(b[d] << CPIXELS_INTERMEDIATE_BITS);
      continue;
    }
    const uint32_t first = axis->first[d];
    const int16_t *weights = axis->fixed_weights + (size_t)d * axis->window;
    pairs[0] = weighted_sum(a + first, weights, axis->window);
    pairs[1] = weighted_sum(b + first, weights, axis->window);
  }
}

static void vertical_u8(
    const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t sample_count,
    uint8_t *destination) {
  for (size_t x = 0; x < sample_count; x++) {
    int32_t sum = 1 << (VERTICAL_SHIFT - 1);
    for (uint32_t p = 0; p < pair_count; p++) {
      sum += pairs[p][2 * x] * weights[2 * p] + pairs[p][2 * x + 1] * weights[2 * p + 1];
    }
    sum >>= VERTICAL_SHIFT;
    destination[x] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  }
}

static void widen_u16(const uint16_t *samples, size_t sample_count, float *floats) {
  for (size_t i = 0; i < sample_count; i++) {
    floats[i] = samples[i];
  }
}

/// Returns a * b + c, rounded once, as the instructions of the other kernels compute it.
static inline float fused(float a, float b, float c) {
#ifdef FP_FAST_FMAF
  return fmaf(a, b, c);
#else
  const double product = (double)a * (double)b; // exact
  double sum = product + (double)c;
  // A sum that was rounded to the middle between two floats would be rounded a second time from there.
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if ((bits & ((1U << 29) - 1)) == 1U << 28) {
    const double part = sum - product;
    const double error = (product - (sum - part)) + ((double)c - part);
    bits += error == 0 ? 0 : (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
    memcpy(&sum, &bits, sizeof bits);
  }
  return (float)sum;
#endif
}

/// Adds up partial sums of the taps in the order of the other kernels: each half is added to the one before it.
static inline float add_up(float *sums, uint32_t count) {
  for (; count > 1; count /= 2) {
    for (uint32_t i = 0; i < count / 2; i++) {
      sums[i] += sums[i + count / 2];
    }
  }
  return sums[0];
}

static void horizontal_row_float(const cpixels_axis *axis, uint32_t lane_count, const float *source, float *out) {
  if (axis->layout == CPIXELS_LAYOUT_COPY) {
    memcpy(out, source, (size_t)axis->destination_count * lane_count * sizeof *out);
    return;
  }
  const uint32_t part_count = lane_count == 4 ? 4 : 8;
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const float *samples = source + (size_t)axis->first[d] * lane_count;
    const float *weights = axis->float_weights + (size_t)d * axis->window;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
      float sums[8] = {0};
      for (uint32_t t = 0; t < axis->tap_count; t++) {
        float *sum = &sums[t % part_count];
        *sum = fused(samples[(size_t)t * lane_count + lane], weights[t], *sum);
      }
      *out++ = add_up(sums, part_count);
    }
  }
}

static void horizontal_float(
    const cpixels_axis *axis, uint32_t lane_count, const float *a, const float *b, float *out_a, float *out_b) {
  horizontal_row_float(axis, lane_count, a, out_a);
  horizontal_row_float(axis, lane_count, b, out_b);
}

static inline float sum_of_rows(const float *const *rows, const float *weights, uint32_t row_count, size_t x) {
  float sum = 0;
  for (uint32_t t = 0; t < row_count; t++) {
    sum = fused(rows[t][x], weights[t], sum);
  }
  return sum;
}

static void vertical_float(
    const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, float *destination) {
  for (size_t x = 0; x < sample_count; x++) {
    destination[x] = sum_of_rows(rows, weights, row_count, x);
  }
}

static void linearize_rgb8(const float levels[256], const uint8_t *rgb, size_t pixel_count, float *lanes) {
  for (size_t i = 0; i < pixel_count; i++, rgb += 3, lanes += 4) {
    lanes[0] = levels[rgb[0]];
    lanes[1] = levels[rgb[1]];
    lanes[2] = levels[rgb[2]];
  }
}

static void vertical_u16(
    const float *const *rows, const float *weights, uint32_t row_count, size_t sample_count, uint16_t *destination) {
  for (size_t x = 0; x < sample_count; x++) {
    const float sum = sum_of_rows(rows, weights, row_count, x) + 0.5f;
    destination[x] = sum <= 0 ? 0 : sum >= 65535 ? 65535 : (uint16_t)sum;
  }
}

const cpixels_resize_kernels cpixels_resize_scalar = {
    CPIXELS_RESIZE_FUNCTIONS,
    .split = cpixels_split_scalar,
    .join = cpixels_join_scalar,
};

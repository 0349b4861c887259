// The resampling kernels for NEON. Integer kernels sum the same products as the scalar kernels, with identical results.

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#define TARGET
#define LANES 4

#include "resize_lanes.h"

enum { HORIZONTAL_SHIFT = CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS };
enum { VERTICAL_SHIFT = CPIXELS_WEIGHT_BITS + CPIXELS_INTERMEDIATE_BITS };

static inline int32x4_t multiply_add(int32x4_t sum, int16x8_t samples, int16x8_t weights) {
  sum = vmlal_s16(sum, vget_low_s16(samples), vget_low_s16(weights));
  return vmlal_high_s16(sum, samples, weights);
}

static inline int16x8_t load_8(const uint8_t *samples) {
  return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(samples)));
}

/// Computes one destination at a time, eight taps of two rows at a time.
static void horizontal_u8(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  if (axis->layout != CPIXELS_LAYOUT_DOTS) {
    cpixels_resize_scalar.horizontal_u8(axis, a, b, pairs);
    return;
  }
  const int16_t *weights = axis->fixed_weights;
  const int32_t rounding = 1 << (HORIZONTAL_SHIFT - 1);
  for (uint32_t d = 0; d < axis->destination_count; d++, pairs += 2) {
    const uint8_t *taps_a = a + axis->first[d];
    const uint8_t *taps_b = b + axis->first[d];
    int32x4_t sum_a = vdupq_n_s32(0);
    int32x4_t sum_b = vdupq_n_s32(0);
    for (uint32_t t = 0; t < axis->window; t += 8, weights += 8) {
      const int16x8_t weight = vld1q_s16(weights);
      sum_a = multiply_add(sum_a, load_8(taps_a + t), weight);
      sum_b = multiply_add(sum_b, load_8(taps_b + t), weight);
    }
    pairs[0] = (int16_t)((vaddvq_s32(sum_a) + rounding) >> HORIZONTAL_SHIFT);
    pairs[1] = (int16_t)((vaddvq_s32(sum_b) + rounding) >> HORIZONTAL_SHIFT);
  }
}

/// Computes the eight samples that start at `x`.
static inline uint8x8_t vertical_8(const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t x) {
  int32x4_t low = vdupq_n_s32(1 << (VERTICAL_SHIFT - 1));
  int32x4_t high = low;
  for (uint32_t p = 0; p < pair_count; p++) {
    const int16x8x2_t rows = vld2q_s16(pairs[p] + 2 * x);
    low = vmlal_n_s16(low, vget_low_s16(rows.val[0]), weights[2 * p]);
    high = vmlal_high_n_s16(high, rows.val[0], weights[2 * p]);
    low = vmlal_n_s16(low, vget_low_s16(rows.val[1]), weights[2 * p + 1]);
    high = vmlal_high_n_s16(high, rows.val[1], weights[2 * p + 1]);
  }
  const int16x4_t narrow_low = vqmovn_s32(vshrq_n_s32(low, VERTICAL_SHIFT));
  const int16x4_t narrow_high = vqmovn_s32(vshrq_n_s32(high, VERTICAL_SHIFT));
  return vqmovun_s16(vcombine_s16(narrow_low, narrow_high));
}

static void vertical_u8(
    const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t sample_count,
    uint8_t *destination) {
  size_t x = 0;
  for (; x + 8 <= sample_count; x += 8) {
    vst1_u8(destination + x, vertical_8(pairs, weights, pair_count, x));
  }
  if (x < sample_count) {
    uint8_t last[8];
    vst1_u8(last, vertical_8(pairs, weights, pair_count, x));
    memcpy(destination + x, last, sample_count - x);
  }
}

static void linearize_rgb8(const float levels[256], const uint8_t *rgb, size_t pixel_count, float *lanes) {
  cpixels_resize_scalar.linearize_rgb8(levels, rgb, pixel_count, lanes); // lookups, not arithmetic
}

static void horizontal_float(
    const cpixels_axis *axis, uint32_t lane_count, const float *a, const float *b, float *out_a, float *out_b) {
  if (axis->layout == CPIXELS_LAYOUT_COPY || lane_count != 4) {
    cpixels_resize_scalar.horizontal_float(axis, lane_count, a, b, out_a, out_b);
  } else {
    horizontal_four(axis, a, b, out_a, out_b);
  }
}

const cpixels_resize_kernels cpixels_resize_neon = {
    .dot_multiples = {8},
    CPIXELS_RESIZE_FUNCTIONS,
    .split = cpixels_split_scalar,
    .join = cpixels_join_scalar,
};

#endif

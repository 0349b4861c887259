// The resampling kernels for AVX2 and FMA.
//
// Integer kernels sum the same products as the scalar kernels, in 32 bits. The order of additions does not matter, so
// the results are identical.

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define TARGET AVX2
#define LANES 8

#include "resize_lanes.h"

enum { HORIZONTAL_SHIFT = CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS };
enum { VERTICAL_SHIFT = CPIXELS_WEIGHT_BITS + CPIXELS_INTERMEDIATE_BITS };

// MARK: Horizontal, 8 bits

/// Stores the sums of eight destinations in two rows as eight pairs.
AVX2 static inline void store_pairs(int16_t *pairs, __m256i a, __m256i b) {
  const __m256i low = _mm256_srli_epi32(a, HORIZONTAL_SHIFT);
  const __m256i high = _mm256_slli_epi32(b, 16 - HORIZONTAL_SHIFT);
  _mm256_storeu_si256((__m256i *)pairs, _mm256_blend_epi16(low, high, 0xAA));
}

AVX2 static inline __m256i load_halves(const uint8_t *low, const uint8_t *high) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)), _mm_loadu_si128((const __m128i *)high), 1);
}

/// Returns the shuffle that moves each destination's next two taps out of a load, as adjacent 16-bit numbers for madd.
AVX2 static inline __m256i order_of(const uint8_t *order) {
  const __m256i indices = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)order));
  return _mm256_or_si256(indices, _mm256_set1_epi16((int16_t)0x8000));
}

/// The sums of eight destinations in two rows.
typedef struct sums {
  __m256i a;
  __m256i b;
} sums;

/// Adds `count` steps of two taps, from one load for each four destinations of a row.
AVX2 static inline __attribute__((always_inline)) sums add_steps(
    sums sum, __m256i taps_a, __m256i taps_b, __m256i order, const __m256i *weights, uint32_t count) {
  for (uint32_t s = 0; s < count; s++) {
    const __m256i weight = _mm256_load_si256(weights + s);
    sum.a = _mm256_add_epi32(sum.a, _mm256_madd_epi16(_mm256_shuffle_epi8(taps_a, order), weight));
    sum.b = _mm256_add_epi32(sum.b, _mm256_madd_epi16(_mm256_shuffle_epi8(taps_b, order), weight));
    order = _mm256_add_epi8(order, _mm256_set1_epi8(2));
  }
  return sum;
}

AVX2 static inline __attribute__((always_inline)) void horizontal_lanes(
    const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs, const uint32_t depth) {
  const __m256i rounding = _mm256_set1_epi32(1 << (HORIZONTAL_SHIFT - 1));
  const __m256i *weights = (const __m256i *)(const void *)axis->fixed_weights;
  const uint32_t steps = axis->window / 2;
  const uint32_t first_steps = (steps - 1) % depth + 1;
  for (uint32_t d = 0; d < axis->destination_count; d += 8, pairs += 16, weights += steps) {
    size_t low = cpixels_lane_base(axis, d);
    size_t high = cpixels_lane_base(axis, d + 4);
    const __m256i order = order_of(axis->order + (size_t)2 * d);
    sums sum = {rounding, rounding};
    sum = add_steps(sum, load_halves(a + low, a + high), load_halves(b + low, b + high), order, weights, first_steps);
    low += 2 * first_steps;
    high += 2 * first_steps;
    for (uint32_t s = first_steps; s < steps; s += depth, low += 2 * depth, high += 2 * depth) {
      sum = add_steps(sum, load_halves(a + low, a + high), load_halves(b + low, b + high), order, weights + s, depth);
    }
    store_pairs(pairs, sum.a, sum.b);
  }
}

/// Selects a kernel for each depth, so that its loop over steps is unrolled.
AVX2 static void horizontal_by_depth(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  switch (axis->depth) {
  case 4:
    horizontal_lanes(axis, a, b, pairs, 4);
    break;
  case 3:
    horizontal_lanes(axis, a, b, pairs, 3);
    break;
  case 2:
    horizontal_lanes(axis, a, b, pairs, 2);
    break;
  default:
    horizontal_lanes(axis, a, b, pairs, 1);
    break;
  }
}

/// Computes the sum over the taps of one destination, as eight partial sums.
AVX2 static inline __m256i dot(const uint8_t *samples, const int16_t *weights, uint32_t window) {
  __m256i sum = _mm256_setzero_si256();
  for (uint32_t t = 0; t < window; t += 16) {
    const __m256i taps = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(samples + t)));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(taps, _mm256_loadu_si256((const __m256i *)(weights + t))));
  }
  return sum;
}

/// Adds up eight sets of eight partial sums with a tree of horizontal additions.
AVX2 static inline __m256i add_up(const __m256i sums[8]) {
  const __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  const __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[4], sums[5]), _mm256_hadd_epi32(sums[6], sums[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}

/// Computes one destination at a time, sixteen taps at a time; for destinations that are far apart.
AVX2 static void horizontal_dots(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  const __m256i rounding = _mm256_set1_epi32(1 << (HORIZONTAL_SHIFT - 1));
  const uint32_t last = axis->destination_count - 1;
  for (uint32_t d = 0; d <= last; d += 8, pairs += 16) {
    __m256i sums_a[8];
    __m256i sums_b[8];
    for (uint32_t i = 0; i < 8; i++) {
      const uint32_t at = d + i < last ? d + i : last;
      const int16_t *weights = axis->fixed_weights + (size_t)at * axis->window;
      sums_a[i] = dot(a + axis->first[at], weights, axis->window);
      sums_b[i] = dot(b + axis->first[at], weights, axis->window);
    }
    store_pairs(pairs, _mm256_add_epi32(add_up(sums_a), rounding), _mm256_add_epi32(add_up(sums_b), rounding));
  }
}

AVX2 static void horizontal_copy(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  uint32_t d = 0;
  for (; d + 16 <= axis->destination_count; d += 16, pairs += 32) {
    const __m128i row_a = _mm_loadu_si128((const __m128i *)(a + d));
    const __m128i row_b = _mm_loadu_si128((const __m128i *)(b + d));
    const __m256i low = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(row_a, row_b));
    const __m256i high = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(row_a, row_b));
    _mm256_storeu_si256((__m256i *)pairs, _mm256_slli_epi16(low, CPIXELS_INTERMEDIATE_BITS));
    _mm256_storeu_si256((__m256i *)(pairs + 16), _mm256_slli_epi16(high, CPIXELS_INTERMEDIATE_BITS));
  }
  for (; d < axis->destination_count; d++, pairs += 2) {
    pairs[0] = (int16_t)(a[d] << CPIXELS_INTERMEDIATE_BITS);
    pairs[1] = (int16_t)(b[d] << CPIXELS_INTERMEDIATE_BITS);
  }
}

AVX2 static void horizontal_u8(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  switch (axis->layout) {
  case CPIXELS_LAYOUT_LANES:
    horizontal_by_depth(axis, a, b, pairs);
    break;
  case CPIXELS_LAYOUT_DOTS:
    horizontal_dots(axis, a, b, pairs);
    break;
  case CPIXELS_LAYOUT_COPY:
    horizontal_copy(axis, a, b, pairs);
    break;
  default: // the source is smaller than a load
    cpixels_resize_scalar.horizontal_u8(axis, a, b, pairs);
    break;
  }
}

// MARK: Vertical, 8 bits

AVX2 static inline __m256i multiply_pairs(const int16_t *pairs, __m256i weight) {
  return _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(const void *)pairs), weight);
}

/// Computes the 32 samples that start at `x`.
AVX2 static inline __m256i vertical_32(
    const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t x) {
  const __m256i rounding = _mm256_set1_epi32(1 << (VERTICAL_SHIFT - 1));
  __m256i sum_0 = rounding;
  __m256i sum_1 = rounding;
  __m256i sum_2 = rounding;
  __m256i sum_3 = rounding;
  for (uint32_t p = 0; p < pair_count; p++) {
    int32_t both;
    memcpy(&both, weights + 2 * p, sizeof both);
    const __m256i weight = _mm256_set1_epi32(both);
    const int16_t *at = pairs[p] + 2 * x;
    sum_0 = _mm256_add_epi32(sum_0, multiply_pairs(at, weight));
    sum_1 = _mm256_add_epi32(sum_1, multiply_pairs(at + 16, weight));
    sum_2 = _mm256_add_epi32(sum_2, multiply_pairs(at + 32, weight));
    sum_3 = _mm256_add_epi32(sum_3, multiply_pairs(at + 48, weight));
  }
  const __m256i low =
      _mm256_packs_epi32(_mm256_srai_epi32(sum_0, VERTICAL_SHIFT), _mm256_srai_epi32(sum_1, VERTICAL_SHIFT));
  const __m256i high =
      _mm256_packs_epi32(_mm256_srai_epi32(sum_2, VERTICAL_SHIFT), _mm256_srai_epi32(sum_3, VERTICAL_SHIFT));
  const __m256i packed = _mm256_packus_epi16(low, high);
  return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2 static void vertical_u8(
    const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t sample_count,
    uint8_t *destination) {
  size_t x = 0;
  for (; x + 32 <= sample_count; x += 32) {
    _mm256_storeu_si256((__m256i *)(destination + x), vertical_32(pairs, weights, pair_count, x));
  }
  if (x < sample_count) {
    uint8_t last[32];
    _mm256_storeu_si256((__m256i *)last, vertical_32(pairs, weights, pair_count, x));
    memcpy(destination + x, last, sample_count - x);
  }
}

// MARK: 16 bits

AVX2 static void linearize_rgb8(const float levels[256], const uint8_t *rgb, size_t pixel_count, float *lanes) {
  cpixels_resize_scalar.linearize_rgb8(levels, rgb, pixel_count, lanes);
}

AVX2 static inline float add_up_floats(__m256 sum) {
  __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
  quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
}

/// Computes one destination sample at a time, eight taps at a time.
AVX2 static void horizontal_one(const cpixels_axis *axis, const float *a, const float *b, float *out_a, float *out_b) {
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const float *weights = axis->float_weights + (size_t)d * axis->window;
    __m256 sum_a = _mm256_setzero_ps();
    __m256 sum_b = _mm256_setzero_ps();
    for (uint32_t t = 0; t < axis->window; t += 8) {
      const __m256 weight = _mm256_loadu_ps(weights + t);
      sum_a = _mm256_fmadd_ps(_mm256_loadu_ps(a + axis->first[d] + t), weight, sum_a);
      sum_b = _mm256_fmadd_ps(_mm256_loadu_ps(b + axis->first[d] + t), weight, sum_b);
    }
    out_a[d] = add_up_floats(sum_a);
    out_b[d] = add_up_floats(sum_b);
  }
}

AVX2 static void horizontal_float(
    const cpixels_axis *axis, uint32_t lane_count, const float *a, const float *b, float *out_a, float *out_b) {
  if (axis->layout == CPIXELS_LAYOUT_COPY) {
    cpixels_resize_scalar.horizontal_float(axis, lane_count, a, b, out_a, out_b);
  } else if (lane_count == 4) {
    horizontal_four(axis, a, b, out_a, out_b);
  } else {
    horizontal_one(axis, a, b, out_a, out_b);
  }
}

const cpixels_resize_kernels cpixels_resize_avx2 = {
    .lanes = {{.group = 8, .load_lanes = 4, .load_size = 16, .step = 2, .max_depth = 4}},
    .dot_multiples = {16},
    CPIXELS_RESIZE_FUNCTIONS,
    .split = cpixels_split_avx2,
    .join = cpixels_join_avx2,
};

#endif

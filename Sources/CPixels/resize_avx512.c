// The resampling kernels for AVX-512 with VBMI and VNNI. They compute the same sums as the AVX2 kernels, twice as wide
// and with half the instructions per tap.

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define TARGET AVX512
#define LANES 16

#include "resize_lanes.h"

enum { HORIZONTAL_SHIFT = CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS };
enum { VERTICAL_SHIFT = CPIXELS_WEIGHT_BITS + CPIXELS_INTERMEDIATE_BITS };

/// The sums of sixteen destinations in one row: the products with the high and with the low bytes of the weights.
typedef struct sums {
  __m512i high;
  __m512i low;
} sums;

/// The samples of a load.
typedef struct samples {
  __m512i first;
  __m512i second; ///< Only if a load has 128 samples.
} samples;

AVX512 static inline __attribute__((always_inline)) samples load_samples(const uint8_t *row, const uint32_t load_size) {
  const __m512i first = _mm512_loadu_si512(row);
  return (samples){first, load_size == 128 ? _mm512_loadu_si512(row + 64) : first};
}

AVX512 static inline __attribute__((always_inline)) sums add_step(
    sums sum, samples loaded, __m512i order, __m512i low, __m512i high, const uint32_t load_size) {
  const __m512i taps = load_size == 128 ? _mm512_permutex2var_epi8(loaded.first, order, loaded.second)
                                        : _mm512_permutexvar_epi8(order, loaded.first);
  return (sums){_mm512_dpbusd_epi32(sum.high, taps, high), _mm512_dpbusd_epi32(sum.low, taps, low)};
}

/// Computes (high * 256 + low) >> 8.
AVX512 static inline __m512i finish(sums sum) {
  return _mm512_add_epi32(sum.high, _mm512_srai_epi32(sum.low, HORIZONTAL_SHIFT));
}

/// Computes sixteen destinations side by side, four taps at a time. `order` moves each destination's next four taps out
/// of a load. The two bytes of a weight are multiplied separately, which avoids widening the samples.
AVX512 static inline __attribute__((always_inline)) void horizontal_lanes(
    const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs, const uint32_t load_size) {
  const sums zero = {_mm512_setzero_si512(), _mm512_set1_epi32(1 << (HORIZONTAL_SHIFT - 1))};
  const uint32_t steps = axis->window / 4;
  const uint32_t destination_count = axis->destination_count;
  const __m512i *weights = (const __m512i *)(const void *)axis->fixed_weights;
  const __m512i *orders = (const __m512i *)(const void *)axis->order;
  uint32_t served = (steps - 1) % axis->depth + 1;
  for (uint32_t d = 0; d < destination_count; d += 16, pairs += 32) {
    size_t base = cpixels_lane_base(axis, d);
    sums sum_a = zero;
    sums sum_b = zero;
    for (uint32_t s = 0, end = served; s < steps; base += (size_t)4 * (end - s), s = end, end += axis->depth) {
      const samples samples_a = load_samples(a + base, load_size);
      const samples samples_b = load_samples(b + base, load_size);
      __m512i order = _mm512_load_si512(orders);
      for (uint32_t i = s; i < end; i++, weights += 2) {
        const __m512i low = _mm512_load_si512(weights);
        const __m512i high = _mm512_load_si512(weights + 1);
        sum_a = add_step(sum_a, samples_a, order, low, high, load_size);
        sum_b = add_step(sum_b, samples_b, order, low, high, load_size);
        order = _mm512_add_epi8(order, _mm512_set1_epi8(4));
      }
    }
    orders++;
    const __m512i upper = _mm512_slli_epi32(finish(sum_b), 16);
    _mm512_storeu_si512(pairs, _mm512_mask_blend_epi16(0xAAAAAAAA, finish(sum_a), upper));
  }
}

/// Returns the sum of both bytes' products, as eight partial sums.
AVX512 static inline __attribute__((always_inline)) __m256i join_sums(sums sum) {
  const __m512i whole = _mm512_add_epi32(_mm512_slli_epi32(sum.high, 8), sum.low);
  return _mm256_add_epi32(_mm512_castsi512_si256(whole), _mm512_extracti64x4_epi64(whole, 1));
}

/// Computes the sums over the taps of one destination in two rows.
AVX512 static inline __attribute__((always_inline)) void dot(
    const uint8_t *a, const uint8_t *b, const int16_t *weights, uint32_t window, __m256i *sum_a, __m256i *sum_b) {
  sums of_a = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  sums of_b = of_a;
  for (uint32_t t = 0; t < window; t += CPIXELS_SPLIT_DOT_MULTIPLE) {
    const __m512i low = _mm512_load_si512(weights + t);
    const __m512i high = _mm512_load_si512(weights + t + CPIXELS_SPLIT_DOT_MULTIPLE / 2);
    const __m512i taps_a = _mm512_loadu_si512(a + t);
    const __m512i taps_b = _mm512_loadu_si512(b + t);
    of_a = (sums){_mm512_dpbusd_epi32(of_a.high, taps_a, high), _mm512_dpbusd_epi32(of_a.low, taps_a, low)};
    of_b = (sums){_mm512_dpbusd_epi32(of_b.high, taps_b, high), _mm512_dpbusd_epi32(of_b.low, taps_b, low)};
  }
  *sum_a = join_sums(of_a);
  *sum_b = join_sums(of_b);
}

/// Adds up eight sets of eight partial sums with a tree of horizontal additions, and rounds them.
AVX512 static inline __attribute__((always_inline)) __m256i add_up(const __m256i sums[8]) {
  const __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
  const __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[4], sums[5]), _mm256_hadd_epi32(sums[6], sums[7]));
  const __m256i sum =
      _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << (HORIZONTAL_SHIFT - 1))), HORIZONTAL_SHIFT);
}

/// Computes one destination at a time, 64 taps at a time; for destinations that are far apart.
AVX512 static void horizontal_dots(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  const uint32_t last = axis->destination_count - 1;
  for (uint32_t d = 0; d <= last; d += 8, pairs += 16) {
    __m256i sums_a[8];
    __m256i sums_b[8];
    for (uint32_t i = 0; i < 8; i++) {
      const uint32_t at = d + i < last ? d + i : last;
      const int16_t *weights = axis->fixed_weights + (size_t)at * axis->window;
      dot(a + axis->first[at], b + axis->first[at], weights, axis->window, sums_a + i, sums_b + i);
    }
    const __m256i upper = _mm256_slli_epi32(add_up(sums_b), 16);
    _mm256_storeu_si256((__m256i *)(void *)pairs, _mm256_blend_epi16(add_up(sums_a), upper, 0xAA));
  }
}

AVX512 static void horizontal_u8(const cpixels_axis *axis, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  if (axis->layout == CPIXELS_LAYOUT_LANES && axis->lanes.load_size == 64) {
    horizontal_lanes(axis, a, b, pairs, 64);
  } else if (axis->layout == CPIXELS_LAYOUT_LANES) {
    horizontal_lanes(axis, a, b, pairs, 128);
  } else if (axis->layout == CPIXELS_LAYOUT_DOTS && axis->is_split) {
    horizontal_dots(axis, a, b, pairs);
  } else {
    cpixels_resize_avx2.horizontal_u8(axis, a, b, pairs);
  }
}

AVX512 static inline __m512i add_pairs(__m512i sum, const int16_t *pairs, __m512i weight) {
  return _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(pairs), weight);
}

AVX512 static inline __m128i to_bytes(__m512i sum) {
  const __m512i shifted = _mm512_srai_epi32(sum, VERTICAL_SHIFT);
  return _mm512_cvtusepi32_epi8(_mm512_max_epi32(shifted, _mm512_setzero_si512()));
}

/// Computes the 32 samples that start at `x`.
AVX512 static inline __m256i vertical_32(
    const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t x) {
  __m512i low = _mm512_set1_epi32(1 << (VERTICAL_SHIFT - 1));
  __m512i high = low;
  for (uint32_t p = 0; p < pair_count; p++) {
    int32_t both;
    memcpy(&both, weights + 2 * p, sizeof both);
    const __m512i weight = _mm512_set1_epi32(both);
    low = add_pairs(low, pairs[p] + 2 * x, weight);
    high = add_pairs(high, pairs[p] + 2 * x + 32, weight);
  }
  return _mm256_setr_m128i(to_bytes(low), to_bytes(high));
}

AVX512 static void vertical_u8(
    const int16_t *const *pairs, const int16_t *weights, uint32_t pair_count, size_t sample_count,
    uint8_t *destination) {
  size_t x = 0;
  for (; x + 32 <= sample_count; x += 32) {
    _mm256_storeu_si256((__m256i *)(destination + x), vertical_32(pairs, weights, pair_count, x));
  }
  if (x < sample_count) {
    const __mmask32 rest = ((__mmask32)1 << (sample_count - x)) - 1;
    _mm256_mask_storeu_epi8(destination + x, rest, vertical_32(pairs, weights, pair_count, x));
  }
}

// MARK: 16 bits

/// A table of 256 bytes in registers.
typedef struct byte_table {
  __m512i quarters[4];
} byte_table;

/// Returns the bytes of a table of 16-bit numbers that start at bit `shift`.
AVX512 static inline byte_table byte_table_of(const float levels[256], int shift) {
  byte_table table;
  for (int q = 0; q < 4; q++) {
    __m128i bytes[4];
    for (int i = 0; i < 4; i++) {
      const __m512i whole = _mm512_cvttps_epi32(_mm512_loadu_ps(levels + 64 * q + 16 * i));
      bytes[i] = _mm512_cvtepi32_epi8(_mm512_srli_epi32(whole, (unsigned)shift));
    }
    memcpy(&table.quarters[q], bytes, sizeof bytes);
  }
  return table;
}

AVX512 static inline __m512i look_up(byte_table table, __m512i indices) {
  const __m512i low = _mm512_permutex2var_epi8(table.quarters[0], indices, table.quarters[1]);
  const __m512i high = _mm512_permutex2var_epi8(table.quarters[2], indices, table.quarters[3]);
  return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(indices), high);
}

/// Converts sixteen pixels at a time. Levels are whole numbers of 16 bits, so that their bytes can be looked up.
AVX512 static void linearize_rgb8(const float levels[256], const uint8_t *rgb, size_t pixel_count, float *lanes) {
  const byte_table low = byte_table_of(levels, 0);
  const byte_table high = byte_table_of(levels, 8);
  // The bytes of four pixels in the order of memory: red, green, blue, and any other.
  const __m512i four = _mm512_setr_epi32(
      0x00020100, 0x00050403, 0x00080706, 0x000B0A09, 0x000E0D0C, 0x0011100F, 0x00141312, 0x00171615, 0x001A1918,
      0x001D1C1B, 0x00201F1E, 0x00232221, 0x00262524, 0x00292827, 0x002C2B2A, 0x002F2E2D);
  // The low and the high byte of each of sixteen samples as 32-bit numbers; 64 is added to the indices of high bytes.
  const __m512i pair = _mm512_add_epi32(
      _mm512_set1_epi32(0x4000),
      _mm512_mullo_epi32(
          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32(0x0101)));
  const __mmask64 colors = 0x0333033303330333;
  const __mmask64 sixteen = ((__mmask64)1 << 48) - 1;
  for (size_t i = 0; i < pixel_count; i += 16) {
    const size_t rest = pixel_count - i;
    const __mmask64 mask = rest >= 16 ? sixteen : ((__mmask64)1 << 3 * rest) - 1;
    const __m512i samples = _mm512_permutexvar_epi8(four, _mm512_maskz_loadu_epi8(mask, rgb + 3 * i));
    const __m512i lows = look_up(low, samples);
    const __m512i highs = look_up(high, samples);
#pragma unroll
    for (size_t q = 0; q < 4; q++) {
      if (4 * q >= rest) {
        break;
      }
      const __m512i places = _mm512_add_epi8(pair, _mm512_set1_epi32((int)(0x1010 * q)));
      const __m512 light = _mm512_cvtepi32_ps(_mm512_maskz_permutex2var_epi8(colors, lows, places, highs));
      const __mmask16 pixels = rest >= 4 * q + 4 ? 0xFFFF : (__mmask16)((1 << 4 * (rest - 4 * q)) - 1);
      _mm512_mask_storeu_ps(lanes + 4 * (i + 4 * q), pixels, light);
    }
  }
}

AVX512 static void horizontal_float(
    const cpixels_axis *axis, uint32_t lane_count, const float *a, const float *b, float *out_a, float *out_b) {
  if (axis->layout != CPIXELS_LAYOUT_COPY && lane_count == 4) {
    horizontal_four(axis, a, b, out_a, out_b);
  } else {
    cpixels_resize_avx2.horizontal_float(axis, lane_count, a, b, out_a, out_b); // too few taps to fill wider registers
  }
}

const cpixels_resize_kernels cpixels_resize_avx512 = {
    .lanes =
        {
            {.group = 16, .load_lanes = 16, .load_size = 64, .step = 4, .max_depth = 16, .is_split = true},
            {.group = 16, .load_lanes = 16, .load_size = 128, .step = 4, .max_depth = 32, .is_split = true},
        },
    .dot_multiples = {CPIXELS_SPLIT_DOT_MULTIPLE, 16},
    CPIXELS_RESIZE_FUNCTIONS,
    .split = cpixels_split_avx2,
    .join = cpixels_join_avx2,
};

#endif

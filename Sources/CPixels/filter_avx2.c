// The filter kernels for AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8

#include "filter_area_lanes.h"
#include "filter_lanes.h"

INLINE lanes clamp_lanes(lanes x) {
  return _mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), _mm256_set1_ps(1));
}

INLINE __m256i load(const void *address) {
  return _mm256_loadu_si256((const __m256i *)address);
}

INLINE void store(void *address, __m256i value) {
  _mm256_storeu_si256((__m256i *)address, value);
}

// MARK: Color

/// Looks up 32 levels in a table of 256 entries, stored in 16 registers of 16 entries each. For each register, the
/// levels are reduced by the register's first level such that shuffling returns 0 for levels of other registers.
INLINE __m256i look_up(const __m256i parts[16], __m256i levels) {
  __m256i entries = _mm256_setzero_si256();
  for (int h = 0; h < 16; h++) {
    const __m256i index = _mm256_adds_epu8(levels, _mm256_set1_epi8(0x70));
    entries = _mm256_or_si256(entries, _mm256_shuffle_epi8(parts[h], index));
    levels = _mm256_sub_epi8(levels, _mm256_set1_epi8(16));
  }
  return entries;
}

TARGET static void map_levels(
    const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count) {
  __m256i parts[16];
  for (int h = 0; h < 16; h++) {
    parts[h] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16 * h)));
  }
  const __m256i is_kept = _mm256_set1_epi32(channels == 4 ? (int)0xFF000000 : 0);
  const size_t count = pixel_count * channels;
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i levels = load(source + i);
    store(destination + i, _mm256_blendv_epi8(look_up(parts, levels), levels, is_kept));
  }
  // 32 is not a multiple of 3, but only with four channels does one channel need different treatment.
  const size_t rest = count - i;
  if (channels == 4) {
    cpixels_filter_scalar.map_levels(table, 4, source + i, destination + i, rest / 4);
  } else {
    for (; i < count; i++) {
      destination[i] = table[source[i]];
    }
  }
}

TARGET static void load_block(
    const float *table, uint32_t channels, const uint8_t *source, size_t pixel_count, cpixels_color_block *block) {
  cpixels_split_avx2(source, pixel_count, channels, block->levels[0], CPIXELS_COLOR_BLOCK);
  clear_rest(pixel_count, block);
  for (uint32_t c = 0; c < 3; c++) {
    for (size_t i = 0; i < pixel_count; i += 8) {
      const __m256i levels = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(block->levels[c] + i)));
      const __m256 x = table != NULL ? _mm256_i32gather_ps(table, levels, 4)
                                     : _mm256_mul_ps(_mm256_cvtepi32_ps(levels), _mm256_set1_ps(1 / 255.0f));
      _mm256_storeu_ps(block->planes[c] + i, x);
    }
  }
}

INLINE __m256i levels_of(const float *plane) {
  return _mm256_cvttps_epi32(load_lanes(plane) * 255 + 0.5f);
}

TARGET static void store_block(
    cpixels_color_block *block, uint32_t channels, size_t pixel_count, uint8_t *destination) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (uint32_t c = 0; c < 3; c++) {
    const float *plane = block->planes[c];
    size_t i = 0;
    for (; i + 32 <= pixel_count; i += 32, plane += 32) {
      const __m256i low = _mm256_packs_epi32(levels_of(plane), levels_of(plane + 8));
      const __m256i high = _mm256_packs_epi32(levels_of(plane + 16), levels_of(plane + 24));
      store(block->levels[c] + i, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
    }
    for (; i < pixel_count; i++) {
      block->levels[c][i] = (uint8_t)(int32_t)(block->planes[c][i] * 255 + 0.5f);
    }
  }
  cpixels_join_avx2(block->levels[0], CPIXELS_COLOR_BLOCK, pixel_count, channels, destination);
}

// MARK: Area

/// The sums of 16 samples, as 32-bit numbers in unpacked order.
typedef struct unpacked_sums {
  __m256i low;
  __m256i high;
} unpacked_sums;

/// Adds the contributions of taps `t` and `t + 1` to the 16 samples that start at `x`. Both sides of a tap are added
/// first, because they have the same weight and their sum fits in 16 bits.
INLINE unpacked_sums add_taps(unpacked_sums sums, const cpixels_taps *taps, uint32_t t, __m256i weights, size_t x) {
  const __m256i first = _mm256_add_epi16(load(taps->before[t] + x), load(taps->after[t] + x));
  const __m256i second = _mm256_add_epi16(load(taps->before[t + 1] + x), load(taps->after[t + 1] + x));
  sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), weights));
  sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), weights));
  return sums;
}

INLINE __m256i rounded(unpacked_sums sums, __m128i bits) {
  return _mm256_packs_epi32(_mm256_sra_epi32(sums.low, bits), _mm256_sra_epi32(sums.high, bits));
}

TARGET static void convolve(const cpixels_taps *taps, size_t sample_count, int16_t *wide) {
  const __m128i bits = _mm_cvtsi32_si128((int)taps->bits);
  const __m256i half = _mm256_set1_epi32(1 << (taps->bits - 1));
  for (size_t x = 0; x < sample_count; x += 32) {
    unpacked_sums left = {half, half};
    unpacked_sums right = {half, half};
    for (uint32_t t = 0; t < taps->count; t += 2) {
      int32_t pair;
      memcpy(&pair, taps->weights + t, sizeof pair);
      const __m256i weights = _mm256_set1_epi32(pair);
      left = add_taps(left, taps, t, weights, x);
      right = add_taps(right, taps, t, weights, x + 16);
    }
    store(wide + x, rounded(left, bits));
    store(wide + x + 16, rounded(right, bits));
  }
}

const cpixels_filter_kernels cpixels_filter_avx2 = CPIXELS_FILTER_KERNELS;

#endif

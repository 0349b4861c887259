// The filter kernels for AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8

#include "filter_lanes.h"

INLINE lanes clamp_lanes(lanes x) {
  return _mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), _mm256_set1_ps(1));
}

INLINE lanes root_lanes(lanes x) {
  return _mm256_sqrt_ps(x);
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

TARGET static void widen(const uint8_t *samples, size_t sample_count, int16_t *wide) {
  size_t i = 0;
  for (; i + 16 <= sample_count; i += 16) {
    const __m256i levels = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(samples + i)));
    store(wide + i, _mm256_slli_epi16(levels, CPIXELS_AREA_BITS));
  }
  cpixels_filter_scalar.widen(samples + i, sample_count - i, wide + i);
}

/// Premultiplies four pixels.
INLINE __m256i premultiplied(const uint8_t *rgba) {
  const __m256i alpha_order = _mm256_setr_epi8(
      6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15, 6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15);
  const __m256i pixels = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)rgba));
  const __m256i factors = _mm256_blend_epi16(pixels, _mm256_set1_epi16(255), 0x88);
  const __m256i products = _mm256_mullo_epi16(factors, _mm256_shuffle_epi8(pixels, alpha_order));
  return _mm256_srli_epi16(_mm256_add_epi16(products, _mm256_set1_epi16(2)), 2);
}

TARGET static void premultiply(const uint8_t *rgba, size_t pixel_count, int16_t *wide) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    store(wide + 4 * i, premultiplied(rgba + 4 * i));
  }
  cpixels_filter_scalar.premultiply(rgba + 4 * i, pixel_count - i, wide + 4 * i);
}

TARGET static void accumulate(const int16_t *wide, size_t sample_count, uint32_t *sums) {
  size_t i = 0;
  for (; i + 8 <= sample_count; i += 8) {
    const __m256i samples = _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(wide + i)));
    store(sums + i, _mm256_add_epi32(load(sums + i), samples));
  }
  cpixels_filter_scalar.accumulate(wide + i, sample_count - i, sums + i);
}

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

/// Blends eight samples in 32 bits: `source` is 8-bit, `filtered` is Q6; the result is not clamped.
INLINE __m256i blended(__m256i source, __m256i filtered, __m256i gain, __m256i threshold) {
  const int bits = CPIXELS_AREA_BITS + CPIXELS_GAIN_BITS;
  const __m256i all = _mm256_sub_epi32(_mm256_slli_epi32(source, CPIXELS_AREA_BITS), filtered);
  const __m256i is_large = _mm256_cmpgt_epi32(_mm256_abs_epi32(all), threshold);
  const __m256i change = _mm256_mullo_epi32(_mm256_and_si256(all, is_large), gain);
  const __m256i base = _mm256_add_epi32(_mm256_slli_epi32(source, bits), _mm256_set1_epi32(1 << (bits - 1)));
  return _mm256_srai_epi32(_mm256_add_epi32(base, change), bits);
}

/// Packs two registers of eight 32-bit numbers into 16 bytes, with clamping.
INLINE __m128i bytes_of(__m256i low, __m256i high) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

INLINE __m256i eight_levels(const uint8_t *levels) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)levels));
}

INLINE __m256i eight_samples(const int16_t *wide) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)wide));
}

TARGET static void blend(
    const uint8_t *source, const int16_t *wide, size_t sample_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  const __m256i gains = _mm256_set1_epi32(gain);
  const __m256i thresholds = _mm256_set1_epi32(threshold);
  size_t i = 0;
  for (; i + 16 <= sample_count; i += 16) {
    const __m256i low = blended(eight_levels(source + i), eight_samples(wide + i), gains, thresholds);
    const __m256i high = blended(eight_levels(source + i + 8), eight_samples(wide + i + 8), gains, thresholds);
    _mm_storeu_si128((__m128i *)(destination + i), bytes_of(low, high));
  }
  cpixels_filter_scalar.blend(source + i, wide + i, sample_count - i, gain, threshold, destination + i);
}

/// Divides two filtered pixels by their alpha, in Q6; returns the source where alpha is 0.
INLINE __m256i straightened(__m256i source, __m256i filtered) {
  const __m256i alphas = _mm256_shuffle_epi32(filtered, 0xFF);
  const __m256i divisors = _mm256_max_epi32(alphas, _mm256_set1_epi32(1));
  const __m256 white = _mm256_set1_ps((float)CPIXELS_AREA_WHITE);
  const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(filtered), white);
  const __m256 quotient = _mm256_div_ps(product, _mm256_cvtepi32_ps(divisors));
  const __m256i colors = _mm256_cvttps_epi32(_mm256_add_ps(quotient, _mm256_set1_ps(0.5f)));
  const __m256i limited = _mm256_min_epi32(colors, _mm256_set1_epi32(CPIXELS_AREA_WHITE));
  const __m256i is_clear = _mm256_cmpgt_epi32(_mm256_set1_epi32(1), alphas);
  return _mm256_blendv_epi8(limited, _mm256_slli_epi32(source, CPIXELS_AREA_BITS), is_clear);
}

TARGET static void blend_over_alpha(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  const __m256i gains = _mm256_set1_epi32(gain);
  const __m256i thresholds = _mm256_set1_epi32(threshold);
  const __m128i is_alpha = _mm_set1_epi32((int)0xFF000000);
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const __m256i source_low = eight_levels(rgba + 4 * i);
    const __m256i source_high = eight_levels(rgba + 4 * i + 8);
    const __m256i filtered_low = straightened(source_low, eight_samples(wide + 4 * i));
    const __m256i filtered_high = straightened(source_high, eight_samples(wide + 4 * i + 8));
    const __m128i bytes = bytes_of(
        blended(source_low, filtered_low, gains, thresholds), blended(source_high, filtered_high, gains, thresholds));
    const __m128i source = _mm_loadu_si128((const __m128i *)(rgba + 4 * i));
    _mm_storeu_si128((__m128i *)(destination + 4 * i), _mm_blendv_epi8(bytes, source, is_alpha));
  }
  cpixels_filter_scalar.blend_over_alpha(
      rgba + 4 * i, wide + 4 * i, pixel_count - i, gain, threshold, destination + 4 * i);
}

/// Returns source + the rounded product of gain and (source - filtered), for eight samples in 32 bits.
INLINE __m256i mixed(__m256i source, __m256i filtered, __m256i gain) {
  const __m256i product = _mm256_mullo_epi32(_mm256_sub_epi32(source, filtered), gain);
  const __m256i half = _mm256_set1_epi32(1 << (CPIXELS_GAIN_BITS - 1));
  return _mm256_add_epi32(source, _mm256_srai_epi32(_mm256_add_epi32(product, half), CPIXELS_GAIN_BITS));
}

TARGET static void blend_premultiplied(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, uint16_t *destination) {
  const __m256i gains = _mm256_set1_epi32(gain);
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const __m256i source = premultiplied(rgba + 4 * i);
    const __m256i source_low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(source));
    const __m256i source_high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(source, 1));
    const __m256i low = mixed(source_low, eight_samples(wide + 4 * i), gains);
    const __m256i high = mixed(source_high, eight_samples(wide + 4 * i + 8), gains);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
    const __m256i minimum = _mm256_max_epi16(words, _mm256_setzero_si256());
    const __m256i limited = _mm256_min_epi16(minimum, _mm256_set1_epi16(16256));
    store(destination + 4 * i, _mm256_slli_epi16(limited, 2));
  }
  cpixels_filter_scalar.blend_premultiplied(rgba + 4 * i, wide + 4 * i, pixel_count - i, gain, destination + 4 * i);
}

const cpixels_filter_kernels cpixels_filter_avx2 = CPIXELS_FILTER_KERNELS;

#endif

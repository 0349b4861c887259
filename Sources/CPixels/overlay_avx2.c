// Overlays for AVX2.
//
// Divisions are done in floating point and are still exact: see alpha_avx2.c. Dividends above 2^24, which only blending
// with transparent rows has, are divided in double precision.

#if defined(__x86_64__)

#include "kernels.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

enum { UNIT = 65025 };

/// The number of pixels behind the current one that a loop over packed RGB needs: 16 bytes are loaded for four pixels,
/// and the next ones before these are stored, as loads of bytes that were just stored are slow.
enum { RGB_MARGIN = 10 };

/// Expands four packed RGB pixels, the first 12 of 16 bytes, to 16-bit lanes with 0 in the fourth channel.
AVX2 static inline __m256i expanded(__m128i packed) {
  const __m128i order = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  return _mm256_cvtepu8_epi16(_mm_shuffle_epi8(packed, order));
}

/// Writes three of the four channels of four pixels in 16-bit lanes, and behind them the last four bytes of `packed`.
AVX2 static inline void store_rgb_4(uint8_t *row, __m256i words, __m128i packed) {
  const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128((__m128i *)row, _mm_blend_epi16(_mm_shuffle_epi8(bytes, order), packed, 0xC0));
}

AVX2 static inline __m128i load_16(const uint8_t *bytes) {
  return _mm_loadu_si128((const __m128i *)bytes);
}

/// Copies the alpha of each pixel to all of its 16-bit lanes.
AVX2 static inline __m256i alphas_of(__m256i pixels) {
  const __m256i order = _mm256_setr_epi8(
      6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15, 6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15);
  return _mm256_shuffle_epi8(pixels, order);
}

/// Returns (x + 127) / 255 of 16-bit lanes up to 65025: no quotient lies halfway between two levels.
AVX2 static inline __m256i divide_by_255(__m256i x) {
  const __m256i shifted = _mm256_add_epi16(x, _mm256_set1_epi16(128));
  return _mm256_srli_epi16(_mm256_add_epi16(shifted, _mm256_srli_epi16(shifted, 8)), 8);
}

AVX2 static void over_rgb(const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  const __m256i one = _mm256_set1_epi16(255);
  size_t i = 0;
  __m128i packed = pixel_count >= RGB_MARGIN ? load_16(row) : _mm_setzero_si128();
  for (; i + RGB_MARGIN <= pixel_count; i += 4) {
    const __m256i over = _mm256_cvtepu8_epi16(load_16(rgba + 4 * i));
    const __m256i under = expanded(packed);
    const __m128i next = load_16(row + 3 * i + 12);
    const __m256i alpha = alphas_of(over);
    const __m256i sum =
        _mm256_add_epi16(_mm256_mullo_epi16(over, alpha), _mm256_mullo_epi16(under, _mm256_sub_epi16(one, alpha)));
    store_rgb_4(row + 3 * i, divide_by_255(sum), packed);
    packed = next;
  }
  cpixels_overlay_scalar(CPIXELS_BLEND_OVER, rgba + 4 * i, row + 3 * i, 3, pixel_count - i);
}

AVX2 static inline __m256i times_255(__m256i x) {
  return _mm256_sub_epi32(_mm256_slli_epi32(x, 8), x);
}

/// Returns 255 * B(under, over) in 32-bit lanes.
AVX2 static inline __m256i mixed(cpixels_blend blend, __m256i over, __m256i under) {
  const __m256i product = _mm256_mullo_epi32(over, under);
  switch (blend) {
  case CPIXELS_BLEND_MULTIPLY:
    return product;
  case CPIXELS_BLEND_SCREEN:
    return _mm256_sub_epi32(times_255(_mm256_add_epi32(over, under)), product);
  case CPIXELS_BLEND_OVER:
    break;
  }
  return times_255(over);
}

/// Blends two pixels with opaque ones, in 32-bit lanes. The dividend is at most 255^3 + 32512, below 2^24.
AVX2 static inline __m256i blend_opaque_2(cpixels_blend blend, __m256i over, __m256i under) {
  const __m256i alpha = _mm256_shuffle_epi32(over, 0xFF);
  const __m256i clear = _mm256_sub_epi32(_mm256_set1_epi32(255), alpha);
  const __m256i sum = _mm256_add_epi32(
      _mm256_mullo_epi32(alpha, mixed(blend, over, under)), times_255(_mm256_mullo_epi32(clear, under)));
  const __m256 dividend = _mm256_cvtepi32_ps(_mm256_add_epi32(sum, _mm256_set1_epi32(UNIT / 2)));
  return _mm256_cvttps_epi32(_mm256_div_ps(dividend, _mm256_set1_ps((float)UNIT)));
}

AVX2 static inline __m256i low_pixels(__m256i words) {
  return _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words));
}

AVX2 static inline __m256i high_pixels(__m256i words) {
  return _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1));
}

AVX2 static inline __m256i joined(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
}

AVX2 static inline void blend_rgb(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  __m128i packed = pixel_count >= RGB_MARGIN ? load_16(row) : _mm_setzero_si128();
  for (; i + RGB_MARGIN <= pixel_count; i += 4) {
    const __m256i over = _mm256_cvtepu8_epi16(load_16(rgba + 4 * i));
    const __m256i under = expanded(packed);
    const __m128i next = load_16(row + 3 * i + 12);
    const __m256i low = blend_opaque_2(blend, low_pixels(over), low_pixels(under));
    const __m256i high = blend_opaque_2(blend, high_pixels(over), high_pixels(under));
    store_rgb_4(row + 3 * i, joined(low, high), packed);
    packed = next;
  }
  cpixels_overlay_scalar(blend, rgba + 4 * i, row + 3 * i, 3, pixel_count - i);
}

/// Divides 32-bit lanes without a sign, in double precision.
AVX2 static inline __m128i divide_4(__m128i dividend, __m128i divisor) {
  const __m128i bias = _mm_set1_epi32(INT32_MIN);
  const __m256d offset = _mm256_set1_pd(2147483648.0);
  const __m256d top = _mm256_add_pd(_mm256_cvtepi32_pd(_mm_xor_si128(dividend, bias)), offset);
  return _mm256_cvttpd_epi32(_mm256_div_pd(top, _mm256_cvtepi32_pd(divisor)));
}

AVX2 static inline __m256i divide_8(__m256i dividend, __m256i divisor) {
  const __m128i low = divide_4(_mm256_castsi256_si128(dividend), _mm256_castsi256_si128(divisor));
  const __m128i high = divide_4(_mm256_extracti128_si256(dividend, 1), _mm256_extracti128_si256(divisor, 1));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/// Blends two pixels with two that may be transparent, in 32-bit lanes.
AVX2 static inline __m256i blend_2(cpixels_blend blend, __m256i over, __m256i under) {
  const __m256i one = _mm256_set1_epi32(255);
  const __m256i over_alpha = _mm256_shuffle_epi32(over, 0xFF);
  const __m256i under_alpha = _mm256_shuffle_epi32(under, 0xFF);
  const __m256i clear = _mm256_sub_epi32(one, over_alpha);
  const __m256i alpha = _mm256_add_epi32(times_255(over_alpha), _mm256_mullo_epi32(under_alpha, clear));
  const __m256i divisor = times_255(alpha);
  const __m256i alone = _mm256_mullo_epi32(over_alpha, _mm256_sub_epi32(one, under_alpha));
  const __m256i both = _mm256_mullo_epi32(over_alpha, under_alpha);
  const __m256i rest = _mm256_mullo_epi32(clear, under_alpha);
  const __m256i sum = _mm256_add_epi32(
      _mm256_add_epi32(_mm256_mullo_epi32(alone, times_255(over)), _mm256_mullo_epi32(both, mixed(blend, over, under))),
      _mm256_mullo_epi32(rest, times_255(under)));
  const __m256i is_clear = _mm256_cmpeq_epi32(alpha, _mm256_setzero_si256());
  // 1 in place of 0, as the quotient is replaced.
  const __m256i safe = _mm256_sub_epi32(divisor, is_clear);
  const __m256i colors = divide_8(_mm256_add_epi32(sum, _mm256_srli_epi32(divisor, 1)), safe);
  const __m256 scaled =
      _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(alpha, _mm256_set1_epi32(127))), _mm256_set1_ps(255.0F));
  const __m256i pixels = _mm256_blend_epi32(colors, _mm256_cvttps_epi32(scaled), 0x88);
  return _mm256_andnot_si256(is_clear, pixels);
}

AVX2 static inline void blend_rgba(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const __m256i over = _mm256_cvtepu8_epi16(load_16(rgba + 4 * i));
    const __m256i under = _mm256_cvtepu8_epi16(load_16(row + 4 * i));
    const __m256i low = blend_2(blend, low_pixels(over), low_pixels(under));
    const __m256i high = blend_2(blend, high_pixels(over), high_pixels(under));
    const __m256i words = joined(low, high);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(row + 4 * i), bytes);
  }
  cpixels_overlay_scalar(blend, rgba + 4 * i, row + 4 * i, 4, pixel_count - i);
}

AVX2 void cpixels_overlay_avx2(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
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

#endif

// Alpha for AVX2.
//
// Divisions are done in single precision and are still exact. Every dividend is an integer below 2^24, quotients are
// below 256 and divisors at most 65025. A quotient that is not an integer is therefore at least 1/65025 below the next
// integer, which is more than rounding to 24 bits can add. Truncation then yields the integer quotient.

#if defined(__x86_64__)

#include "kernels.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

enum { UNIT = 65025 };

/// Copies the fourth of four 32-bit lanes to all four.
AVX2 static inline __m256i alphas_of(__m256i pixels) {
  return _mm256_shuffle_epi32(pixels, 0xFF);
}

/// Loads two premultiplied pixels into 32-bit lanes, with alpha clamped to 1 and colors clamped to alpha.
AVX2 static inline __m256i load_clamped(const uint16_t *premultiplied) {
  const __m256i pixels = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)premultiplied));
  const __m256i clamped = _mm256_min_epi32(pixels, _mm256_set1_epi32(UNIT));
  return _mm256_min_epi32(clamped, alphas_of(clamped));
}

AVX2 static inline __m256i times_255(__m256i x) {
  return _mm256_sub_epi32(_mm256_slli_epi32(x, 8), x);
}

AVX2 static inline __m256i divide(__m256i dividend, __m256i divisor) {
  return _mm256_cvttps_epi32(_mm256_div_ps(_mm256_cvtepi32_ps(dividend), _mm256_cvtepi32_ps(divisor)));
}

AVX2 void cpixels_premultiply_avx2(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  const __m256i alpha_order = _mm256_setr_epi8(
      6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15, 6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15);
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const __m256i pixels = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(rgba + 4 * i)));
    const __m256i alphas = _mm256_shuffle_epi8(pixels, alpha_order);
    const __m256i factors = _mm256_blend_epi16(pixels, _mm256_set1_epi16(255), 0x88);
    _mm256_storeu_si256((__m256i *)(premultiplied + 4 * i), _mm256_mullo_epi16(factors, alphas));
  }
  cpixels_premultiply_scalar(rgba + 4 * i, premultiplied + 4 * i, pixel_count - i);
}

/// Computes (color * 255 + alpha / 2) / alpha for colors, and (alpha * 255 + UNIT / 2) / UNIT for alpha; both round
/// to nearest.
AVX2 static inline __m256i unpremultiply_2(const uint16_t *premultiplied) {
  const __m256i pixels = load_clamped(premultiplied);
  const __m256i divisors = _mm256_blend_epi32(alphas_of(pixels), _mm256_set1_epi32(UNIT), 0x88);
  const __m256i halves = _mm256_srli_epi32(divisors, 1);
  const __m256i quotients = divide(_mm256_add_epi32(times_255(pixels), halves), divisors);
  const __m256i is_clear = _mm256_cmpeq_epi32(alphas_of(quotients), _mm256_setzero_si256());
  return _mm256_andnot_si256(is_clear, quotients);
}

AVX2 void cpixels_unpremultiply_avx2(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const __m256i low = unpremultiply_2(premultiplied + 4 * i);
    const __m256i high = unpremultiply_2(premultiplied + 4 * i + 8);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(rgba + 4 * i), bytes);
  }
  cpixels_unpremultiply_scalar(premultiplied + 4 * i, rgba + 4 * i, pixel_count - i);
}

AVX2 static inline __m256i flatten_2(const uint16_t *premultiplied, __m256i background) {
  const __m256i unit = _mm256_set1_epi32(UNIT);
  const __m256i pixels = load_clamped(premultiplied);
  const __m256i under = _mm256_mullo_epi32(background, _mm256_sub_epi32(unit, alphas_of(pixels)));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(times_255(pixels), under), _mm256_set1_epi32(UNIT / 2));
  return divide(sum, unit);
}

AVX2 void cpixels_flatten_avx2(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count) {
  const __m256i under =
      _mm256_setr_epi32(background[0], background[1], background[2], 0, background[0], background[1], background[2], 0);
  const __m128i drop_alpha = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  size_t i = 0;
  for (; i + 6 <= pixel_count; i += 4) { // a store writes 16 bytes, 4 of which the next pixels overwrite
    const __m256i low = flatten_2(premultiplied + 4 * i, under);
    const __m256i high = flatten_2(premultiplied + 4 * i + 8, under);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(rgb + 3 * i), _mm_shuffle_epi8(bytes, drop_alpha));
  }
  cpixels_flatten_scalar(premultiplied + 4 * i, background, rgb + 3 * i, pixel_count - i);
}

#endif

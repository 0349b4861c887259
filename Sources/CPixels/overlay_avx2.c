// Overlays for AVX2: four pixels at a time, with their channels side by side.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))

#include "overlay_lanes.h"

/// The number of pixels behind the current one that a loop over packed RGB needs: 16 bytes are loaded for four pixels,
/// and the next ones before these are stored, as loads of bytes that were just stored are slow.
enum { RGB_MARGIN = 10 };

/// Expands four packed RGB pixels, the first 12 of 16 bytes, to 16-bit lanes with 0 in the fourth channel.
INLINE __m256i expanded(__m128i packed) {
  const __m128i order = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  return _mm256_cvtepu8_epi16(_mm_shuffle_epi8(packed, order));
}

/// Writes three of the four channels of four pixels in 16-bit lanes, and behind them the last four bytes of `packed`.
INLINE void store_rgb_4(uint8_t *row, __m256i words, __m128i packed) {
  const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128((__m128i *)row, _mm_blend_epi16(_mm_shuffle_epi8(bytes, order), packed, 0xC0));
}

INLINE __m128i load_16(const uint8_t *bytes) {
  return _mm_loadu_si128((const __m128i *)bytes);
}

/// Copies the alpha of each pixel to all of its 16-bit lanes.
INLINE __m256i alphas_of(__m256i pixels) {
  const __m256i order = _mm256_setr_epi8(
      6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15, 6, 7, 6, 7, 6, 7, 6, 7, 14, 15, 14, 15, 14, 15, 14, 15);
  return _mm256_shuffle_epi8(pixels, order);
}

INLINE void over_rgb(const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  __m128i packed = pixel_count >= RGB_MARGIN ? load_16(row) : _mm_setzero_si128();
  for (; i + RGB_MARGIN <= pixel_count; i += 4) {
    const __m256i over = _mm256_cvtepu8_epi16(load_16(rgba + 4 * i));
    const __m256i under = expanded(packed);
    const __m128i next = load_16(row + 3 * i + 12);
    store_rgb_4(row + 3 * i, (__m256i)drawn_over((words)over, (words)under, (words)alphas_of(over)), packed);
    packed = next;
  }
  cpixels_overlay_scalar(CPIXELS_BLEND_OVER, rgba + 4 * i, row + 3 * i, 3, pixel_count - i);
}

INLINE whole_lanes low_pixels(__m256i words) {
  return (whole_lanes)_mm256_cvtepu16_epi32(_mm256_castsi256_si128(words));
}

INLINE whole_lanes high_pixels(__m256i words) {
  return (whole_lanes)_mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1));
}

INLINE __m256i joined(whole_lanes low, whole_lanes high) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)low, (__m256i)high), 0xD8);
}

/// Copies the alpha of each pixel to all of its lanes.
INLINE whole_lanes spread_alpha(whole_lanes pixels) {
  return (whole_lanes)_mm256_shuffle_epi32((__m256i)pixels, 0xFF);
}

/// Blends two pixels with opaque ones.
INLINE whole_lanes blend_opaque_2(cpixels_blend blend, whole_lanes over, whole_lanes under) {
  return blended_with_opaque(blend, over, under, spread_alpha(over));
}

/// Blends two pixels with two that may be transparent.
INLINE whole_lanes blend_2(cpixels_blend blend, whole_lanes over, whole_lanes under) {
  const whole_lanes over_alpha = spread_alpha(over);
  const whole_lanes under_alpha = spread_alpha(under);
  const whole_lanes colors = blended(blend, over, under, over_alpha, under_alpha);
  const whole_lanes alphas = blended_alpha(over_alpha, under_alpha);
  return (whole_lanes)_mm256_blend_epi32((__m256i)colors, (__m256i)alphas, 0x88);
}

INLINE void blend_rgb(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  __m128i packed = pixel_count >= RGB_MARGIN ? load_16(row) : _mm_setzero_si128();
  for (; i + RGB_MARGIN <= pixel_count; i += 4) {
    const __m256i over = _mm256_cvtepu8_epi16(load_16(rgba + 4 * i));
    const __m256i under = expanded(packed);
    const __m128i next = load_16(row + 3 * i + 12);
    const whole_lanes low = blend_opaque_2(blend, low_pixels(over), low_pixels(under));
    const whole_lanes high = blend_opaque_2(blend, high_pixels(over), high_pixels(under));
    store_rgb_4(row + 3 * i, joined(low, high), packed);
    packed = next;
  }
  cpixels_overlay_scalar(blend, rgba + 4 * i, row + 3 * i, 3, pixel_count - i);
}

INLINE void blend_rgba(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  for (; i + 4 <= pixel_count; i += 4) {
    const __m256i over = _mm256_cvtepu8_epi16(load_16(rgba + 4 * i));
    const __m256i under = _mm256_cvtepu8_epi16(load_16(row + 4 * i));
    const whole_lanes low = blend_2(blend, low_pixels(over), low_pixels(under));
    const whole_lanes high = blend_2(blend, high_pixels(over), high_pixels(under));
    const __m256i words = joined(low, high);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)(row + 4 * i), bytes);
  }
  cpixels_overlay_scalar(blend, rgba + 4 * i, row + 4 * i, 4, pixel_count - i);
}

TARGET void cpixels_overlay_avx2(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
  overlay(blend, rgba, row, channels, pixel_count);
}

#endif

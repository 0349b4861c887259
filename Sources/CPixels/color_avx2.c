// Color conversions for AVX2.

#if defined(__x86_64__)

#include "kernels.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

/// The number of pixels that are converted to planes before the planes are joined: enough that no plane is read while
/// it is written.
enum { BLOCK = 256 };

AVX2 static inline __m256i load_16(const uint8_t *samples, int center) {
  const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)samples));
  return _mm256_sub_epi16(wide, _mm256_set1_epi16((int16_t)center));
}

/// Multiplies 16-bit numbers by a Q15 fraction and rounds.
AVX2 static inline __m256i scale(__m256i x, int fraction) {
  return _mm256_mulhrs_epi16(x, _mm256_set1_epi16((int16_t)fraction));
}

/// Sums the products of two 16-bit numbers and Q15 fractions, and rounds once.
AVX2 static inline __m256i scale_both(__m256i x, int fraction_x, __m256i y, int fraction_y) {
  const __m256i fractions = _mm256_set1_epi32((int32_t)((uint32_t)fraction_y << 16 | (uint16_t)fraction_x));
  const __m256i half = _mm256_set1_epi32(1 << 14);
  const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), fractions);
  const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), fractions);
  return _mm256_packs_epi32(
      _mm256_srai_epi32(_mm256_add_epi32(low, half), 15), _mm256_srai_epi32(_mm256_add_epi32(high, half), 15));
}

/// Converts sixteen pixels to three planes that are BLOCK apart.
AVX2 static inline void convert_16(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *planes) {
  const __m256i luma = load_16(y, 0);
  const __m256i blue = load_16(cb, 128);
  const __m256i red = load_16(cr, 128);
  const __m256i r = _mm256_add_epi16(_mm256_add_epi16(luma, red), scale(red, CPIXELS_RED_OF_CR));
  const __m256i g =
      _mm256_add_epi16(_mm256_sub_epi16(luma, red), scale_both(blue, CPIXELS_GREEN_OF_CB, red, CPIXELS_GREEN_OF_CR));
  const __m256i b =
      _mm256_add_epi16(_mm256_add_epi16(luma, _mm256_slli_epi16(blue, 1)), scale(blue, CPIXELS_BLUE_OF_CB));
  const __m256i rg = _mm256_permute4x64_epi64(_mm256_packus_epi16(r, g), 0xD8);
  const __m256i bb = _mm256_permute4x64_epi64(_mm256_packus_epi16(b, b), 0xD8);
  _mm_storeu_si128((__m128i *)planes, _mm256_castsi256_si128(rg));
  _mm_storeu_si128((__m128i *)(planes + BLOCK), _mm256_extracti128_si256(rg, 1));
  _mm_storeu_si128((__m128i *)(planes + 2 * BLOCK), _mm256_castsi256_si128(bb));
}

AVX2 void cpixels_ycc_to_rgb_avx2(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count) {
  size_t i = 0;
  while (i + 16 <= pixel_count) {
    uint8_t planes[3 * BLOCK];
    const size_t rest = (pixel_count - i) / 16 * 16;
    const size_t count = rest < BLOCK ? rest : BLOCK;
    for (size_t p = 0; p < count; p += 16) {
      convert_16(y + i + p, cb + i + p, cr + i + p, planes + p);
    }
    cpixels_join_avx2(planes, BLOCK, count, 3, rgb + 3 * i);
    i += count;
  }
  cpixels_ycc_to_rgb_scalar(y + i, cb + i, cr + i, rgb + 3 * i, pixel_count - i);
}

#endif

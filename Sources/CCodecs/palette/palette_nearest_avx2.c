// Distances to eight colors at once, and lists of them, with AVX2. The scalar version in palette_nearest.c is the
// oracle.

#include "palette_private.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

TARGET uint32_t ccodecs_palette_nearest_of_avx2(const palette_group *groups, uint32_t count, palette_point point) {
  int32_t halves[2];
  memcpy(halves, point.axes, sizeof halves);
  const __m256i first = _mm256_set1_epi32(halves[0]), last = _mm256_set1_epi32(halves[1]);
  __m256i least = _mm256_set1_epi32(-1);
  for (uint32_t g = 0; g < count; g++) {
    const __m256i *group = (const __m256i *)(const void *)(groups + g);
    const __m256i a = _mm256_sub_epi16(first, _mm256_loadu_si256(group));
    const __m256i b = _mm256_sub_epi16(last, _mm256_loadu_si256(group + 1));
    const __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(a, a), _mm256_madd_epi16(b, b));
    const __m256i key = _mm256_or_si256(_mm256_slli_epi32(sum, 8), _mm256_loadu_si256(group + 2));
    least = _mm256_min_epu32(least, key);
  }
  __m128i four = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
  return (uint32_t)_mm_cvtsi128_si32(four);
}

TARGET uint32_t ccodecs_palette_nearest_list_avx2(
    const palette_nearest *nearest, const palette_bounds *bounds, uint8_t kept[CCODECS_PALETTE_MAX_COLORS]) {
  return palette_list_nearest(nearest, bounds, kept);
}

#endif

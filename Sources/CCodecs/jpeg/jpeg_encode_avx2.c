// Forward transforms and activities of the native JPEG encoder with AVX2: a block at a time, one row in each register.
// The results are identical to those of jpeg_encode_kernels.c.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

#include "jpeg_encode_forward.h"
#include "jpeg_encode_rows.h"

#pragma STDC FP_CONTRACT OFF

TARGET static void quantize(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block) {
  jpeg_row d[8];
  transform_samples(samples, stride, d);
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const __m256 price = _mm256_set1_ps(lambda), half = _mm256_set1_ps(0.5F);
  __m256i levels[8];
  for (uint32_t u = 0; u < 8; u++) {
    const __m256 x = _mm256_mul_ps(d[u], _mm256_loadu_ps(chooser->inverse + (size_t)u * 8));
    _mm256_storeu_ps(values + (size_t)u * 8, x);
    const __m256 dead_zone = _mm256_mul_ps(price, _mm256_loadu_ps(chooser->dead_zone + (size_t)u * 8));
    const __m256 minimum = _mm256_add_ps(dead_zone, half);
    const __m256 is_large = _mm256_cmp_ps(_mm256_and_ps(x, magnitude), minimum, _CMP_GE_OQ);
    levels[u] = _mm256_cvtps_epi32(_mm256_and_ps(x, is_large));
  }
  block->dc = (int16_t)_mm_cvtss_si32(_mm_load_ss(values));
  const __m256i highest = _mm256_set1_epi16(JPEG_MAX_LEVEL), lowest = _mm256_set1_epi16(-JPEG_MAX_LEVEL);
  __m256i rows[4];
  for (uint32_t i = 0; i < 4; i++) {
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packs_epi32(levels[2 * i], levels[2 * i + 1]), 0xD8);
    rows[i] = _mm256_max_epi16(_mm256_min_epi16(pairs, highest), lowest);
    _mm256_storeu_si256((__m256i *)(block->levels + (size_t)i * 16), rows[i]);
  }
  uint64_t zeros = 0;
  for (uint32_t i = 0; i < 2; i++) {
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(rows[2 * i], rows[2 * i + 1]), 0xD8);
    const __m256i is_zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
    zeros |= (uint64_t)(uint32_t)_mm256_movemask_epi8(is_zero) << 32 * i;
  }
  block->mask = ccodecs_jpeg_zigzag_mask(~zeros & ~(uint64_t)1);
}

/// Returns the activity of one block.
TARGET static uint32_t block_activity(const uint8_t *p, size_t stride) {
  __m128i sum = _mm_setzero_si128();
  __m128i row = _mm_loadl_epi64((const __m128i *)p);
  for (uint32_t y = 0; y < 8; y++, p += stride) {
    sum = _mm_add_epi32(sum, _mm_sad_epu8(row, _mm_loadl_epi64((const __m128i *)(p + 1))));
    if (y < 7) {
      const __m128i below = _mm_loadl_epi64((const __m128i *)(p + stride));
      sum = _mm_add_epi32(sum, _mm_sad_epu8(row, below));
      row = below;
    }
  }
  return (uint32_t)_mm_cvtsi128_si32(sum);
}

TARGET static void activity(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums) {
  uint32_t block = 0;
  for (; block + 4 <= count; block += 4) {
    const uint8_t *p = samples + (size_t)block * 8;
    __m256i sum = _mm256_setzero_si256();
    __m256i row = _mm256_loadu_si256((const __m256i *)p);
    for (uint32_t y = 0; y < 8; y++, p += stride) {
      sum = _mm256_add_epi64(sum, _mm256_sad_epu8(row, _mm256_loadu_si256((const __m256i *)(p + 1))));
      if (y < 7) {
        const __m256i below = _mm256_loadu_si256((const __m256i *)(p + stride));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(row, below));
        row = below;
      }
    }
    const __m256i even = _mm256_permutevar8x32_epi32(sum, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_storeu_si128((__m128i *)(sums + block), _mm256_castsi256_si128(even));
  }
  for (; block < count; block++) {
    sums[block] = block_activity(samples + (size_t)block * 8, stride);
  }
}

const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_avx2 = JPEG_ENCODE_KERNELS;

#endif

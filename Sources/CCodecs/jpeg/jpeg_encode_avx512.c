// The AVX-512 versions of the native JPEG encoder's kernels, which quantize sixteen coefficients at a time. The results
// are identical to those of jpeg_encode_kernels.c.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512bitalg")))

#include "jpeg_encode_forward.h"
#include "jpeg_encode_rows.h"

#pragma STDC FP_CONTRACT OFF

/// The coefficients of a block in units of their steps, transposed.
typedef struct coefficients {
  __m512 rows[4];
} coefficients;

INLINE coefficients transform_block(const uint8_t *samples, size_t stride, const float inverse[JPEG_BLOCK]) {
  jpeg_row d[8];
  transform_samples(samples, stride, d);
  coefficients c;
  for (uint32_t i = 0; i < 4; i++) {
    const __m512 rows = _mm512_insertf32x8(_mm512_castps256_ps512(d[2 * i]), d[2 * i + 1], 1);
    c.rows[i] = _mm512_mul_ps(rows, _mm512_loadu_ps(inverse + (size_t)i * 16));
  }
  return c;
}

TARGET static void quantize(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block) {
  const coefficients c = transform_block(samples, stride, chooser->inverse);
  const __m512 price = _mm512_set1_ps(lambda), half = _mm512_set1_ps(0.5F);
  const __m256i highest = _mm256_set1_epi16(JPEG_MAX_LEVEL), lowest = _mm256_set1_epi16(-JPEG_MAX_LEVEL);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const __m512 x = c.rows[i];
    _mm512_storeu_ps(values + (size_t)i * 16, x);
    const __m512 dead_zone = _mm512_mul_ps(price, _mm512_loadu_ps(chooser->dead_zone + (size_t)i * 16));
    const __mmask16 is_large = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_add_ps(dead_zone, half), _CMP_GE_OQ);
    const __m512i nearest = _mm512_maskz_cvtps_epi32(is_large, x);
    mask |= (uint64_t)_mm512_test_epi32_mask(nearest, nearest) << 16 * i;
    const __m256i levels = _mm256_max_epi16(_mm256_min_epi16(_mm512_cvtsepi32_epi16(nearest), highest), lowest);
    _mm256_storeu_si256((__m256i *)(block->levels + (size_t)i * 16), levels);
  }
  block->dc = (int16_t)_mm_cvtss_si32(_mm512_castps512_ps128(c.rows[0]));
  const __m512i order = _mm512_loadu_si512(ccodecs_jpeg_transposed_zigzag);
  block->mask = _mm512_bitshuffle_epi64_mask(_mm512_set1_epi64((int64_t)(mask & ~(uint64_t)1)), order);
}

TARGET static void activity(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums) {
  ccodecs_jpeg_encode_kernels_avx2.activity(samples, stride, count, sums);
}

const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_avx512 = JPEG_ENCODE_KERNELS;

#endif

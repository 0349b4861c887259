// Forward transforms and activities of the native JPEG encoder with AVX2: a block at a time, one row in each register.
// The results are identical to those of jpeg_encode_kernels.c.

#include "jpeg_encode.h"
#include "jpeg_encode_forward_avx2.h"
#include "jpeg_encode_rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma STDC FP_CONTRACT OFF

#define AVX2 __attribute__((target("avx2")))

AVX2 static uint64_t forward(
    const uint8_t *samples, size_t stride, const float inverse[JPEG_BLOCK], float threshold, float output[JPEG_BLOCK]) {
  __m256 d[8];
  for (uint32_t y = 0; y < 8; y++) {
    const __m128i row = _mm_loadl_epi64((const __m128i *)(samples + y * stride));
    d[y] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(row));
  }
  jpeg_transform_avx2(d);
  jpeg_transpose_avx2(d);
  jpeg_transform_avx2(d);
  d[0] = _mm256_sub_ps(d[0], _mm256_setr_ps(64 * 128, 0, 0, 0, 0, 0, 0, 0));
  const __m256 least = _mm256_set1_ps(threshold);
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  uint64_t mask = 0;
  for (uint32_t u = 0; u < 8; u++) {
    const __m256 x = _mm256_mul_ps(d[u], _mm256_loadu_ps(inverse + (size_t)u * 8));
    _mm256_storeu_ps(output + (size_t)u * 8, x);
    const __m256 is_large = _mm256_cmp_ps(_mm256_and_ps(x, magnitude), least, _CMP_GE_OQ);
    mask |= (uint64_t)(uint32_t)_mm256_movemask_ps(is_large) << 8 * u;
  }
  return mask;
}

AVX2 static void consider(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, jpeg_candidates *candidates) {
  ccodecs_jpeg_consider(chooser, forward, samples, stride, lambda, candidates);
}

AVX2 static void activity(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums) {
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
  if (block < count) {
    ccodecs_jpeg_encode_kernels_scalar.activity(samples + (size_t)block * 8, stride, count - block, sums + block);
  }
}

AVX2 static void convert(const uint8_t *rgb, uint8_t *luma, uint8_t *blue, uint8_t *red, size_t count) {
  ccodecs_jpeg_convert_rgb(rgb, luma, blue, red, count);
}

AVX2 static void halve(const uint8_t *upper, const uint8_t *lower, uint8_t *output, size_t count) {
  ccodecs_jpeg_halve_rows(upper, lower, output, count);
}

const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_avx2 = {
    .forward = forward, .consider = consider, .activity = activity, .convert = convert, .halve = halve};

#endif

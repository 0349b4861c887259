// Forward transforms and activities of the native JPEG encoder with AVX2: a block at a time, one row in each register.
// The results are identical to those of jpeg_encode_kernels.c.

#include "jpeg_encode.h"
#include "jpeg_encode_rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma STDC FP_CONTRACT OFF

#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))

INLINE void transform(__m256 d[8]) {
  const __m256 t0 = _mm256_add_ps(d[0], d[7]), t7 = _mm256_sub_ps(d[0], d[7]);
  const __m256 t1 = _mm256_add_ps(d[1], d[6]), t6 = _mm256_sub_ps(d[1], d[6]);
  const __m256 t2 = _mm256_add_ps(d[2], d[5]), t5 = _mm256_sub_ps(d[2], d[5]);
  const __m256 t3 = _mm256_add_ps(d[3], d[4]), t4 = _mm256_sub_ps(d[3], d[4]);
  const __m256 e0 = _mm256_add_ps(t0, t3), e3 = _mm256_sub_ps(t0, t3);
  const __m256 e1 = _mm256_add_ps(t1, t2), e2 = _mm256_sub_ps(t1, t2);
  const __m256 z1 = _mm256_mul_ps(_mm256_add_ps(e2, e3), _mm256_set1_ps(0.707106781F));
  d[0] = _mm256_add_ps(e0, e1);
  d[4] = _mm256_sub_ps(e0, e1);
  d[2] = _mm256_add_ps(e3, z1);
  d[6] = _mm256_sub_ps(e3, z1);
  const __m256 o0 = _mm256_add_ps(t4, t5), o1 = _mm256_add_ps(t5, t6), o2 = _mm256_add_ps(t6, t7);
  const __m256 z5 = _mm256_mul_ps(_mm256_sub_ps(o0, o2), _mm256_set1_ps(0.382683433F));
  const __m256 z2 = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(0.541196100F), o0), z5);
  const __m256 z4 = _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(1.306562965F), o2), z5);
  const __m256 z3 = _mm256_mul_ps(o1, _mm256_set1_ps(0.707106781F));
  const __m256 z11 = _mm256_add_ps(t7, z3), z13 = _mm256_sub_ps(t7, z3);
  d[5] = _mm256_add_ps(z13, z2);
  d[3] = _mm256_sub_ps(z13, z2);
  d[1] = _mm256_add_ps(z11, z4);
  d[7] = _mm256_sub_ps(z11, z4);
}

INLINE void transpose(__m256 d[8]) {
  const __m256 a0 = _mm256_unpacklo_ps(d[0], d[1]), a1 = _mm256_unpackhi_ps(d[0], d[1]);
  const __m256 a2 = _mm256_unpacklo_ps(d[2], d[3]), a3 = _mm256_unpackhi_ps(d[2], d[3]);
  const __m256 a4 = _mm256_unpacklo_ps(d[4], d[5]), a5 = _mm256_unpackhi_ps(d[4], d[5]);
  const __m256 a6 = _mm256_unpacklo_ps(d[6], d[7]), a7 = _mm256_unpackhi_ps(d[6], d[7]);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xEE);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xEE);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xEE);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xEE);
  d[0] = _mm256_permute2f128_ps(b0, b4, 0x20);
  d[1] = _mm256_permute2f128_ps(b1, b5, 0x20);
  d[2] = _mm256_permute2f128_ps(b2, b6, 0x20);
  d[3] = _mm256_permute2f128_ps(b3, b7, 0x20);
  d[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
  d[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
  d[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
  d[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

AVX2 static uint64_t forward(
    const uint8_t *samples, size_t stride, const float inverse[JPEG_BLOCK], float threshold, float output[JPEG_BLOCK]) {
  __m256 d[8];
  for (uint32_t y = 0; y < 8; y++) {
    const __m128i row = _mm_loadl_epi64((const __m128i *)(samples + y * stride));
    d[y] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(row));
  }
  transform(d);
  transpose(d);
  transform(d);
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
    .forward = forward, .activity = activity, .convert = convert, .halve = halve};

#endif

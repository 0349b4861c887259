// The forward transform in AVX2, which the AVX-512 kernels share: a block has eight registers of eight samples. Private
// to the encoder.

#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#pragma STDC FP_CONTRACT OFF

#define JPEG_AVX2_INLINE static inline __attribute__((always_inline, target("avx2")))

/// Transforms the columns of a block, one row in each register.
JPEG_AVX2_INLINE void jpeg_transform_avx2(__m256 d[8]) {
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

/// Transposes eight rows.
JPEG_AVX2_INLINE void jpeg_transpose_avx2(__m256 d[8]) {
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

#endif

// Windows of a cascade for AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

#include "faces_lanes.h"

INLINE uint32_t bits_of(whole_lanes mask) {
  return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

TARGET uint32_t
cpixels_faces_judge_avx2(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations) {
  return judge(cascade, sums, deviations);
}

#endif

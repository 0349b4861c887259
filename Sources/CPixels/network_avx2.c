// The arithmetic of a network for AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8

#include "network_lanes.h"

INLINE lanes in_order(lanes x) {
  return (lanes)_mm256_permute4x64_epi64((__m256i)x, 0xD8);
}

INLINE pair every_other(const float *floats) {
  const lanes first = load_lanes(floats);
  const lanes second = load_lanes(floats + 8);
  return (pair){in_order(_mm256_shuffle_ps(first, second, 0x88)), in_order(_mm256_shuffle_ps(first, second, 0xDD))};
}

const cpixels_network_kernels cpixels_network_avx2 = {.tap = tap, .weigh = weigh};

#endif

// All PNG row filters at once, with AVX2.

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

#define LANES 32
#define TARGET __attribute__((target("avx2")))

typedef uint64_t sum_lanes __attribute__((vector_size(32)));

#include "png_filter_lanes.h"

INLINE bytes mean(bytes a, bytes b) {
  return (bytes)_mm256_avg_epu8((__m256i)a, (__m256i)b) - ((a ^ b) & 1);
}

INLINE sum_lanes add_bytes(sum_lanes sums, bytes magnitudes) {
  return sums + (sum_lanes)_mm256_sad_epu8((__m256i)magnitudes, _mm256_setzero_si256());
}

TARGET void ccodecs_png_filter_avx2(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]) {
  filter_all(row, sums);
}

#endif

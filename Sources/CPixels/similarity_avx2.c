// The similarity kernels for AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define SUMS 8

#include "similarity_lanes.h"

TARGET static void linearize(
    const float *table, const uint8_t *row, uint32_t channels, size_t pixel_count, float *const *linear) {
  // Rows may end before unreadable memory, so the last pixels are left to the scalar kernel.
  const size_t whole = channels == 3 && pixel_count > 2 ? (pixel_count - 2) / 8 * 8 : 0;
  const __m256i order = _mm256_setr_epi8(
      0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1, 0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1,
      -1, -1);
  for (size_t x = 0; x < whole; x += 8) {
    const __m128i low = _mm_loadu_si128((const __m128i *)(row + 3 * x));
    const __m128i high = _mm_loadu_si128((const __m128i *)(row + 3 * x + 12));
    const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    for (int c = 0; c < 3; c++) {
      const __m256i index = _mm256_shuffle_epi8(pixels, _mm256_add_epi8(order, _mm256_set1_epi32(c)));
      _mm256_storeu_ps(linear[c] + x, _mm256_i32gather_ps(table, index, 4));
    }
  }
  float *const rest[3] = {linear[0] + whole, linear[1] + whole, linear[2] + whole};
  cpixels_similarity_scalar.linearize(table, row + whole * channels, channels, pixel_count - whole, rest);
}

const cpixels_similarity_kernels cpixels_similarity_avx2 = CPIXELS_SIMILARITY_KERNELS;

#endif

// The similarity kernels for AVX-512. Their sums are those of AVX2, in the same order.

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma")))
#define LANES 16
#define SUMS 8

#include "similarity_lanes.h"

TARGET static void linearize(
    const float *table, const uint8_t *row, uint32_t channels, size_t pixel_count, float *const *linear) {
  // A load of 16 bytes has 4 pixels and 4 bytes more, which may be behind the row.
  const size_t whole = channels == 3 && pixel_count > 2 ? (pixel_count - 2) / 16 * 16 : 0;
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1));
  for (size_t x = 0; x < whole; x += 16) {
    const uint8_t *first = row + 3 * x;
    __m512i pixels = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)first));
    pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128((const __m128i *)(first + 12)), 1);
    pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128((const __m128i *)(first + 24)), 2);
    pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128((const __m128i *)(first + 36)), 3);
    for (int c = 0; c < 3; c++) {
      const __m512i index = _mm512_shuffle_epi8(pixels, _mm512_add_epi8(order, _mm512_set1_epi32(c)));
      _mm512_storeu_ps(linear[c] + x, _mm512_i32gather_ps(index, table, 4));
    }
  }
  float *const rest[3] = {linear[0] + whole, linear[1] + whole, linear[2] + whole};
  cpixels_similarity_scalar.linearize(table, row + whole * channels, channels, pixel_count - whole, rest);
}

const cpixels_similarity_kernels cpixels_similarity_avx512 = CPIXELS_SIMILARITY_KERNELS;

#endif

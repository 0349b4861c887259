// Conversion of packed pixels to planes and back, 32 pixels at a time. Both halves of a register do the same with 16
// pixels each.
//
// Three channels: 16 pixels take three loads. For each byte position (modulo 16), exactly one of these loads contains a
// given channel. Blending collects the 16 bytes of a channel, still at their positions, and one shuffle puts them in
// order.

#if defined(__x86_64__)

#include "kernels.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

/// Masks of the positions whose index modulo 3 is 0 and 1.
#define THIRDS_0 -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1
#define THIRDS_1 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0
/// The position of pixel i's first channel, 3 i modulo 16, and the inverse; rotating these gives the other channels.
#define SPLIT_0 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13
#define SPLIT_1 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14
#define SPLIT_2 2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15
#define JOIN_0 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5
#define JOIN_1 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10
#define JOIN_2 10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15
/// Four pixels of four channels, reordered channel by channel.
#define QUARTERS 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15

AVX2 static inline __m256i load_halves(const uint8_t *low, const uint8_t *high) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)), _mm_loadu_si128((const __m128i *)high), 1);
}

AVX2 static inline void store_halves(uint8_t *low, uint8_t *high, __m256i value) {
  _mm_storeu_si128((__m128i *)low, _mm256_castsi256_si128(value));
  _mm_storeu_si128((__m128i *)high, _mm256_extracti128_si256(value, 1));
}

/// Returns `a` where a position modulo 3 is 0, `b` where it is 1, and `c` where it is 2.
AVX2 static inline __m256i thirds(__m256i a, __m256i b, __m256i c, __m256i is_0, __m256i is_1) {
  return _mm256_blendv_epi8(_mm256_blendv_epi8(c, b, is_1), a, is_0);
}

AVX2 static void split_3(const uint8_t *packed, uint8_t *planes, size_t plane_stride) {
  const __m256i is_0 = _mm256_setr_epi8(THIRDS_0, THIRDS_0);
  const __m256i is_1 = _mm256_setr_epi8(THIRDS_1, THIRDS_1);
  const __m256i v0 = load_halves(packed, packed + 48);
  const __m256i v1 = load_halves(packed + 16, packed + 64);
  const __m256i v2 = load_halves(packed + 32, packed + 80);
  const __m256i c0 = thirds(v0, v2, v1, is_0, is_1);
  const __m256i c1 = thirds(v1, v0, v2, is_0, is_1);
  const __m256i c2 = thirds(v2, v1, v0, is_0, is_1);
  _mm256_storeu_si256((__m256i *)planes, _mm256_shuffle_epi8(c0, _mm256_setr_epi8(SPLIT_0, SPLIT_0)));
  _mm256_storeu_si256((__m256i *)(planes + plane_stride), _mm256_shuffle_epi8(c1, _mm256_setr_epi8(SPLIT_1, SPLIT_1)));
  _mm256_storeu_si256(
      (__m256i *)(planes + 2 * plane_stride), _mm256_shuffle_epi8(c2, _mm256_setr_epi8(SPLIT_2, SPLIT_2)));
}

AVX2 static void join_3(const uint8_t *planes, size_t plane_stride, uint8_t *packed) {
  const __m256i is_0 = _mm256_setr_epi8(THIRDS_0, THIRDS_0);
  const __m256i is_1 = _mm256_setr_epi8(THIRDS_1, THIRDS_1);
  const __m256i c0 = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)planes), _mm256_setr_epi8(JOIN_0, JOIN_0));
  const __m256i c1 = _mm256_shuffle_epi8(
      _mm256_loadu_si256((const __m256i *)(planes + plane_stride)), _mm256_setr_epi8(JOIN_1, JOIN_1));
  const __m256i c2 = _mm256_shuffle_epi8(
      _mm256_loadu_si256((const __m256i *)(planes + 2 * plane_stride)), _mm256_setr_epi8(JOIN_2, JOIN_2));
  store_halves(packed, packed + 48, thirds(c0, c1, c2, is_0, is_1));
  store_halves(packed + 16, packed + 64, thirds(c1, c2, c0, is_0, is_1));
  store_halves(packed + 32, packed + 80, thirds(c2, c0, c1, is_0, is_1));
}

AVX2 static void split_4(const uint8_t *packed, uint8_t *planes, size_t plane_stride) {
  const __m256i order = _mm256_setr_epi8(QUARTERS, QUARTERS);
  const __m256i v0 = _mm256_shuffle_epi8(load_halves(packed, packed + 64), order);
  const __m256i v1 = _mm256_shuffle_epi8(load_halves(packed + 16, packed + 80), order);
  const __m256i v2 = _mm256_shuffle_epi8(load_halves(packed + 32, packed + 96), order);
  const __m256i v3 = _mm256_shuffle_epi8(load_halves(packed + 48, packed + 112), order);
  const __m256i low_01 = _mm256_unpacklo_epi32(v0, v1);
  const __m256i low_23 = _mm256_unpacklo_epi32(v2, v3);
  const __m256i high_01 = _mm256_unpackhi_epi32(v0, v1);
  const __m256i high_23 = _mm256_unpackhi_epi32(v2, v3);
  _mm256_storeu_si256((__m256i *)planes, _mm256_unpacklo_epi64(low_01, low_23));
  _mm256_storeu_si256((__m256i *)(planes + plane_stride), _mm256_unpackhi_epi64(low_01, low_23));
  _mm256_storeu_si256((__m256i *)(planes + 2 * plane_stride), _mm256_unpacklo_epi64(high_01, high_23));
  _mm256_storeu_si256((__m256i *)(planes + 3 * plane_stride), _mm256_unpackhi_epi64(high_01, high_23));
}

AVX2 static void join_4(const uint8_t *planes, size_t plane_stride, uint8_t *packed) {
  const __m256i c0 = _mm256_loadu_si256((const __m256i *)planes);
  const __m256i c1 = _mm256_loadu_si256((const __m256i *)(planes + plane_stride));
  const __m256i c2 = _mm256_loadu_si256((const __m256i *)(planes + 2 * plane_stride));
  const __m256i c3 = _mm256_loadu_si256((const __m256i *)(planes + 3 * plane_stride));
  const __m256i low_01 = _mm256_unpacklo_epi8(c0, c1);
  const __m256i low_23 = _mm256_unpacklo_epi8(c2, c3);
  const __m256i high_01 = _mm256_unpackhi_epi8(c0, c1);
  const __m256i high_23 = _mm256_unpackhi_epi8(c2, c3);
  store_halves(packed, packed + 64, _mm256_unpacklo_epi16(low_01, low_23));
  store_halves(packed + 16, packed + 80, _mm256_unpackhi_epi16(low_01, low_23));
  store_halves(packed + 32, packed + 96, _mm256_unpacklo_epi16(high_01, high_23));
  store_halves(packed + 48, packed + 112, _mm256_unpackhi_epi16(high_01, high_23));
}

AVX2 void cpixels_split_avx2(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride) {
  size_t i = 0;
  for (; i + 32 <= pixel_count; i += 32) {
    if (channels == 3) {
      split_3(packed + 3 * i, planes + i, plane_stride);
    } else {
      split_4(packed + 4 * i, planes + i, plane_stride);
    }
  }
  cpixels_split_scalar(packed + channels * i, pixel_count - i, channels, planes + i, plane_stride);
}

AVX2 void cpixels_join_avx2(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed) {
  size_t i = 0;
  for (; i + 32 <= pixel_count; i += 32) {
    if (channels == 3) {
      join_3(planes + i, plane_stride, packed + 3 * i);
    } else {
      join_4(planes + i, plane_stride, packed + 4 * i);
    }
  }
  cpixels_join_scalar(planes + i, plane_stride, pixel_count - i, channels, packed + channels * i);
}

#endif

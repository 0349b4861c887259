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

typedef int8_t order[16];

/// Masks of the positions whose index modulo 3 is 0 and 1.
static const order is_third[2] = {
    {-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1}, {0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0}};
/// The position of pixel i's first channel, 3 i modulo 16, and the inverse; rotating these gives the other channels.
static const order split_orders[3] = {
    {0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13},
    {1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14},
    {2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15}};
static const order join_orders[3] = {
    {0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5},
    {5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10},
    {10, 5, 0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15}};
/// Four pixels of four channels, reordered channel by channel.
static const order quarters = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

AVX2 static inline __m256i load_halves(const uint8_t *low, const uint8_t *high) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)), _mm_loadu_si128((const __m128i *)high), 1);
}

AVX2 static inline __m256i twice(const order bytes) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes));
}

/// Returns `a` where a position modulo 3 is 0, `b` where it is 1, and `c` where it is 2.
AVX2 static inline __m256i thirds(__m256i a, __m256i b, __m256i c) {
  return _mm256_blendv_epi8(_mm256_blendv_epi8(c, b, twice(is_third[1])), a, twice(is_third[0]));
}

AVX2 static void split_3(const uint8_t *packed, uint8_t *planes, size_t plane_stride) {
  __m256i v[3];
  for (size_t i = 0; i < 3; i++) {
    v[i] = load_halves(packed + 16 * i, packed + 16 * i + 48);
  }
  for (size_t c = 0; c < 3; c++) {
    const __m256i channel = _mm256_shuffle_epi8(thirds(v[c], v[(c + 2) % 3], v[(c + 1) % 3]), twice(split_orders[c]));
    _mm256_storeu_si256((__m256i *)(planes + c * plane_stride), channel);
  }
}

AVX2 static void join_3(const uint8_t *planes, size_t plane_stride, uint8_t *packed) {
  __m256i v[3];
  for (size_t c = 0; c < 3; c++) {
    v[c] = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(planes + c * plane_stride)), twice(join_orders[c]));
  }
  for (size_t i = 0; i < 3; i++) {
    const __m256i pixels = thirds(v[i], v[(i + 1) % 3], v[(i + 2) % 3]);
    _mm_storeu_si128((__m128i *)(packed + 16 * i), _mm256_castsi256_si128(pixels));
    _mm_storeu_si128((__m128i *)(packed + 16 * i + 48), _mm256_extracti128_si256(pixels, 1));
  }
}

AVX2 static void split_4(const uint8_t *packed, uint8_t *planes, size_t plane_stride) {
  __m256i v[4];
  for (size_t i = 0; i < 4; i++) {
    v[i] = _mm256_shuffle_epi8(load_halves(packed + 16 * i, packed + 16 * i + 64), twice(quarters));
  }
  const __m256i low_01 = _mm256_unpacklo_epi32(v[0], v[1]), low_23 = _mm256_unpacklo_epi32(v[2], v[3]);
  const __m256i high_01 = _mm256_unpackhi_epi32(v[0], v[1]), high_23 = _mm256_unpackhi_epi32(v[2], v[3]);
  _mm256_storeu_si256((__m256i *)planes, _mm256_unpacklo_epi64(low_01, low_23));
  _mm256_storeu_si256((__m256i *)(planes + plane_stride), _mm256_unpackhi_epi64(low_01, low_23));
  _mm256_storeu_si256((__m256i *)(planes + 2 * plane_stride), _mm256_unpacklo_epi64(high_01, high_23));
  _mm256_storeu_si256((__m256i *)(planes + 3 * plane_stride), _mm256_unpackhi_epi64(high_01, high_23));
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
  if (channels == 4) {
    cpixels_join_four_avx2(planes, plane_stride, pixel_count, packed);
    return;
  }
  size_t i = 0;
  for (; i + 32 <= pixel_count; i += 32) {
    join_3(planes + i, plane_stride, packed + 3 * i);
  }
  cpixels_join_scalar(planes + i, plane_stride, pixel_count - i, 3, packed + 3 * i);
}

#endif

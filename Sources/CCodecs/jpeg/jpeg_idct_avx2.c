// Inverse transforms of the native JPEG decoder with AVX2: 16 blocks at once, one in each 16-bit lane. The samples are
// identical to those of jpeg_idct.c, which explains the arithmetic.

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))
#define LANES 16

#include "jpeg_idct_lanes.h"

INLINE __m256i pair(int16_t a, int16_t b) {
  return _mm256_set1_epi32((int32_t)((uint32_t)(uint16_t)b << 16 | (uint16_t)a));
}

/// The lower half of the lanes is that of each 128 bits.
INLINE half_lanes dot_low(lanes a, lanes b, int16_t factor_a, int16_t factor_b) {
  return (half_lanes)_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), pair(factor_a, factor_b));
}

INLINE half_lanes dot_high(lanes a, lanes b, int16_t factor_a, int16_t factor_b) {
  return (half_lanes)_mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), pair(factor_a, factor_b));
}

/// A value in the upper 16 bits, shifted down by 3, is the value times 8192.
INLINE half_lanes low_times_8192(lanes a) {
  return (half_lanes)_mm256_srai_epi32(_mm256_unpacklo_epi16(_mm256_setzero_si256(), a), 3);
}

INLINE half_lanes high_times_8192(lanes a) {
  return (half_lanes)_mm256_srai_epi32(_mm256_unpackhi_epi16(_mm256_setzero_si256(), a), 3);
}

INLINE lanes descale(half_lanes low, half_lanes high, const int32_t shift) {
  const uint32_t half = 1u << (shift - 1);
  return (lanes)_mm256_packs_epi32(_mm256_srai_epi32(low + half, shift), _mm256_srai_epi32(high + half, shift));
}

// MARK: Samples

INLINE void store_128(uint8_t *row, __m128i samples) {
  _mm_storeu_si128((__m128i *)row, samples);
}

/// Stores 8 samples of each of 16 blocks, or the first `n` of them, as 16 * n consecutive bytes.
INLINE void store_8(uint8_t *row, const lanes x[8], const uint32_t n) {
  const __m256i center = _mm256_set1_epi8((char)0x80);
  const __m256i a = _mm256_xor_si256(_mm256_packs_epi16(x[0], x[4]), center);
  const __m256i b = _mm256_xor_si256(_mm256_packs_epi16(x[1], x[5]), center);
  const __m256i c = _mm256_xor_si256(_mm256_packs_epi16(x[2], x[6]), center);
  const __m256i d = _mm256_xor_si256(_mm256_packs_epi16(x[3], x[7]), center);
  const __m256i ab0 = _mm256_unpacklo_epi8(a, b);
  const __m256i ab4 = _mm256_unpackhi_epi8(a, b);
  const __m256i cd0 = _mm256_unpacklo_epi8(c, d);
  const __m256i cd4 = _mm256_unpackhi_epi8(c, d);
  const __m256i low0 = _mm256_unpacklo_epi16(ab0, cd0);
  const __m256i high0 = _mm256_unpackhi_epi16(ab0, cd0);
  const __m256i low4 = _mm256_unpacklo_epi16(ab4, cd4);
  const __m256i high4 = _mm256_unpackhi_epi16(ab4, cd4);
  __m256i blocks[4] = {
      _mm256_unpacklo_epi32(low0, low4), _mm256_unpackhi_epi32(low0, low4), _mm256_unpacklo_epi32(high0, high4),
      _mm256_unpackhi_epi32(high0, high4)};
  if (n < 8) {
    const __m128i gather = n == 7   ? _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, -1, -1)
                           : n == 6 ? _mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1)
                                    : _mm_setr_epi8(0, 1, 2, 3, 4, 8, 9, 10, 11, 12, -1, -1, -1, -1, -1, -1);
    for (uint32_t i = 0; i < 4; i++) {
      blocks[i] = _mm256_shuffle_epi8(blocks[i], _mm256_broadcastsi128_si256(gather));
    }
  }
  for (uint32_t i = 0; i < 4; i++) {
    store_128(row + 2 * n * i, _mm256_castsi256_si128(blocks[i]));
  }
  for (uint32_t i = 0; i < 4; i++) {
    store_128(row + 2 * n * (i + 4), _mm256_extracti128_si256(blocks[i], 1));
  }
}

/// Stores 3 or 4 samples of each block.
INLINE void store_4(uint8_t *row, const lanes x[4], const uint32_t n) {
  const __m256i center = _mm256_set1_epi8((char)0x80);
  const __m256i a = _mm256_xor_si256(_mm256_packs_epi16(x[0], x[2]), center);
  const __m256i b = _mm256_xor_si256(_mm256_packs_epi16(x[1], x[3]), center);
  const __m256i ab0 = _mm256_unpacklo_epi8(a, b);
  const __m256i ab2 = _mm256_unpackhi_epi8(a, b);
  __m256i low = _mm256_unpacklo_epi16(ab0, ab2);
  __m256i high = _mm256_unpackhi_epi16(ab0, ab2);
  if (n == 3) {
    const __m256i gather =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    low = _mm256_shuffle_epi8(low, gather);
    high = _mm256_shuffle_epi8(high, gather);
  }
  store_128(row, _mm256_castsi256_si128(low));
  store_128(row + 4 * n, _mm256_castsi256_si128(high));
  store_128(row + 8 * n, _mm256_extracti128_si256(low, 1));
  store_128(row + 12 * n, _mm256_extracti128_si256(high, 1));
}

INLINE void store_2(uint8_t *row, const lanes x[2]) {
  const __m256i both = _mm256_xor_si256(_mm256_packs_epi16(x[0], x[1]), _mm256_set1_epi8((char)0x80));
  const __m256i pairs = _mm256_unpacklo_epi8(both, _mm256_srli_si256(both, 8));
  store_128(row, _mm256_castsi256_si128(pairs));
  store_128(row + 16, _mm256_extracti128_si256(pairs, 1));
}

INLINE void store(uint8_t *row, const lanes x[8], const uint32_t n) {
  if (n > 4) {
    store_8(row, x, n);
  } else if (n > 2) {
    store_4(row, x, n);
  } else {
    store_2(row, x);
  }
}

/// Stores blocks of one value each, which is already reduced to a sample around 0.
INLINE void store_flat(uint8_t *rows, size_t row_stride, __m256i value, const uint32_t n) {
  const lanes x[8] = {value, value, value, value, value, value, value, value};
  for (uint32_t y = 0; y < n; y++) {
    store(rows + y * row_stride, x, n);
  }
}

// MARK: Full size

/// Returns whether a coefficient of the first row is so large that blocks with no other coefficients are computed
/// differently (see idct_8 in jpeg_idct.c).
INLINE bool is_extreme(const int16_t *tile, const uint16_t *quant) {
  __m256i any = _mm256_setzero_si256();
  for (uint32_t u = 0; u < 8; u++) {
    any = _mm256_or_si256(any, _mm256_abs_epi16(load(tile, quant, u)));
  }
  return !_mm256_testz_si256(any, _mm256_set1_epi16((int16_t)0xE000));
}

AVX2 static void idct_8(const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {
  if (is_extreme(tile, quant)) {
    ccodecs_jpeg_transform_scalar(8)(tile, quant, rows, row_stride, extent);
  } else if (extent == 0) {
    const __m256i dc = _mm256_slli_epi16(load(tile, quant, 0), 2);
    store_flat(rows, row_stride, _mm256_srai_epi16(_mm256_adds_epi16(dc, _mm256_set1_epi16(16)), 5), 8);
  } else if (extent <= 9) {
    transform_tile(tile, quant, rows, row_stride, 8, 4);
  } else {
    transform_tile(tile, quant, rows, row_stride, 8, 8);
  }
}

// MARK: Reduced

INLINE void transform_tile_n(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent, const uint32_t n) {
  if (extent == 0) {
    // Same result as both passes: 4 times the value, saturated, and an eighth of it.
    const __m256i dc = load(tile, quant, 0);
    const __m256i twice = _mm256_adds_epi16(dc, dc);
    const __m256i scaled = _mm256_adds_epi16(_mm256_adds_epi16(twice, twice), _mm256_set1_epi16(16));
    store_flat(rows, row_stride, _mm256_srai_epi16(scaled, 5), n);
    return;
  }
  transform_tile(tile, quant, rows, row_stride, n, n);
}

JPEG_IDCTS(AVX2)

AVX2 static void idct_1(const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {
  (void)row_stride;
  (void)extent;
  const __m256i dc = load(tile, quant, 0);
  const __m256i value = _mm256_srai_epi16(_mm256_adds_epi16(dc, _mm256_set1_epi16(4)), 3);
  const __m256i samples = _mm256_xor_si256(_mm256_packs_epi16(value, value), _mm256_set1_epi8((char)0x80));
  store_128(rows, _mm256_castsi256_si128(_mm256_permute4x64_epi64(samples, 0x08)));
}

jpeg_transform ccodecs_jpeg_transform_avx2(uint32_t n) {
  static const jpeg_transform transforms[9] = {NULL, idct_1, idct_2, idct_3, idct_4, idct_5, idct_6, idct_7, idct_8};
  return transforms[n];
}

#endif

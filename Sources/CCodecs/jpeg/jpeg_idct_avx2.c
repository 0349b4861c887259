// Inverse transforms of the native JPEG decoder with AVX2: 16 blocks at once, one in each 16-bit lane. The samples are
// identical to those of jpeg_idct.c, which explains the arithmetic.

#include "jpeg_cosines.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))

enum { PASS1_SHIFT = 11, PASS2_SHIFT = 18 };

INLINE __m256i load(const int16_t *tile, const uint16_t *quant, uint32_t row) {
  const __m256i coefficients = _mm256_loadu_si256((const __m256i *)(tile + (size_t)row * JPEG_LANES));
  return _mm256_mullo_epi16(coefficients, _mm256_set1_epi16((int16_t)quant[row]));
}

/// Returns the sum of the products of two vectors with two factors, for the lower (or upper) half of each 128 bits.
INLINE __m256i dot_low(__m256i a, __m256i b, int32_t factor_a, int32_t factor_b) {
  const __m256i factors = _mm256_set1_epi32((int32_t)((uint32_t)factor_b << 16 | (uint16_t)factor_a));
  return _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), factors);
}

INLINE __m256i dot_high(__m256i a, __m256i b, int32_t factor_a, int32_t factor_b) {
  const __m256i factors = _mm256_set1_epi32((int32_t)((uint32_t)factor_b << 16 | (uint16_t)factor_a));
  return _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), factors);
}

INLINE __m256i descale(__m256i low, __m256i high, const int32_t shift) {
  const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
  low = _mm256_srai_epi32(_mm256_add_epi32(low, half), shift);
  high = _mm256_srai_epi32(_mm256_add_epi32(high, half), shift);
  return _mm256_packs_epi32(low, high);
}

// MARK: Samples

INLINE void store_128(uint8_t *row, __m128i samples) {
  _mm_storeu_si128((__m128i *)row, samples);
}

/// Stores 8 samples of each of 16 blocks, or the first `n` of them, as 16 * n consecutive bytes.
INLINE void store_8(uint8_t *row, const __m256i x[8], const uint32_t n) {
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
INLINE void store_4(uint8_t *row, const __m256i x[4], const uint32_t n) {
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

INLINE void store_2(uint8_t *row, const __m256i x[2]) {
  const __m256i both = _mm256_xor_si256(_mm256_packs_epi16(x[0], x[1]), _mm256_set1_epi8((char)0x80));
  const __m256i pairs = _mm256_unpacklo_epi8(both, _mm256_srli_si256(both, 8));
  store_128(row, _mm256_castsi256_si128(pairs));
  store_128(row + 16, _mm256_extracti128_si256(pairs, 1));
}

INLINE void store(uint8_t *row, const __m256i x[8], const uint32_t n) {
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
  const __m256i x[8] = {value, value, value, value, value, value, value, value};
  for (uint32_t y = 0; y < n; y++) {
    store(rows + y * row_stride, x, n);
  }
}

// MARK: Full size

/// Runs one pass over 8 vectors. If `is_corner`, the upper four of them are zero.
INLINE void transform_8(const __m256i in[8], __m256i out[8], const int32_t shift, const bool is_corner) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i in4 = is_corner ? zero : in[4];
  const __m256i in5 = is_corner ? zero : in[5];
  const __m256i in6 = is_corner ? zero : in[6];
  const __m256i in7 = is_corner ? zero : in[7];
  const __m256i sum = is_corner ? in[0] : _mm256_add_epi16(in[0], in4);
  const __m256i difference = is_corner ? in[0] : _mm256_sub_epi16(in[0], in4);
  const __m256i z3 = is_corner ? in[3] : _mm256_add_epi16(in7, in[3]);
  const __m256i z4 = is_corner ? in[1] : _mm256_add_epi16(in5, in[1]);
  __m256i even[4][2];
  __m256i odd[4][2];
  // Computes both halves of the lanes. A value in the upper 16 bits, shifted down by 3, is the value times 8192.
#define HALF(h, dot, unpack)                                                                                           \
  do {                                                                                                                 \
    const __m256i t3 = dot(in[2], in6, 4433 + 6270, 4433);                                                             \
    const __m256i t2 = dot(in[2], in6, 4433, 4433 - 15137);                                                            \
    const __m256i t0 = _mm256_srai_epi32(unpack(zero, sum), 3);                                                        \
    const __m256i t1 = _mm256_srai_epi32(unpack(zero, difference), 3);                                                 \
    const __m256i s3 = dot(z3, z4, 9633 - 16069, 9633);                                                                \
    const __m256i s4 = dot(z3, z4, 9633, 9633 - 3196);                                                                 \
    even[0][h] = _mm256_add_epi32(t0, t3);                                                                             \
    even[1][h] = _mm256_add_epi32(t1, t2);                                                                             \
    even[2][h] = _mm256_sub_epi32(t1, t2);                                                                             \
    even[3][h] = _mm256_sub_epi32(t0, t3);                                                                             \
    odd[0][h] = _mm256_add_epi32(dot(in7, in[1], -7373, 12299 - 7373), s4);                                            \
    odd[1][h] = _mm256_add_epi32(dot(in5, in[3], -20995, 25172 - 20995), s3);                                          \
    odd[2][h] = _mm256_add_epi32(dot(in5, in[3], 16819 - 20995, -20995), s4);                                          \
    odd[3][h] = _mm256_add_epi32(dot(in7, in[1], 2446 - 7373, -7373), s3);                                             \
  } while (0)
  HALF(0, dot_low, _mm256_unpacklo_epi16);
  HALF(1, dot_high, _mm256_unpackhi_epi16);
#undef HALF
  for (uint32_t i = 0; i < 4; i++) {
    out[i] = descale(_mm256_add_epi32(even[i][0], odd[i][0]), _mm256_add_epi32(even[i][1], odd[i][1]), shift);
    out[7 - i] = descale(_mm256_sub_epi32(even[i][0], odd[i][0]), _mm256_sub_epi32(even[i][1], odd[i][1]), shift);
  }
}

INLINE void transform_tile_8(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, const bool is_corner) {
  __m256i work[8][8];
  const uint32_t count = is_corner ? 4 : 8;
  for (uint32_t u = 0; u < count; u++) {
    __m256i in[8];
    __m256i out[8];
    for (uint32_t v = 0; v < count; v++) {
      in[v] = load(tile, quant, v * 8 + u);
    }
    transform_8(in, out, PASS1_SHIFT, is_corner);
    for (uint32_t y = 0; y < 8; y++) {
      work[y][u] = out[y];
    }
  }
  for (uint32_t y = 0; y < 8; y++) {
    __m256i out[8];
    transform_8(work[y], out, PASS2_SHIFT, is_corner);
    store_8(rows + y * row_stride, out, 8);
  }
}

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
    transform_tile_8(tile, quant, rows, row_stride, true);
  } else {
    transform_tile_8(tile, quant, rows, row_stride, false);
  }
}

// MARK: Reduced

/// Runs one pass over `n` vectors, by the definition.
INLINE void transform_n(const __m256i in[8], __m256i out[8], const int32_t shift, const uint32_t n) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i in2 = n > 2 ? in[2] : zero;
  const __m256i in3 = n > 3 ? in[3] : zero;
  const __m256i in6 = n > 6 ? in[6] : zero;
  for (uint32_t x = 0; x < (n + 1) / 2; x++) {
    const int16_t *f = jpeg_cosines[n][x];
    __m256i even_low = dot_low(in[0], in2, f[0], f[2]);
    __m256i even_high = dot_high(in[0], in2, f[0], f[2]);
    __m256i odd_low = dot_low(in[1], in3, f[1], f[3]);
    __m256i odd_high = dot_high(in[1], in3, f[1], f[3]);
    if (n > 4) {
      even_low = _mm256_add_epi32(even_low, dot_low(in[4], in6, f[4], f[6]));
      even_high = _mm256_add_epi32(even_high, dot_high(in[4], in6, f[4], f[6]));
    }
    if (n > 5) {
      odd_low = _mm256_add_epi32(odd_low, dot_low(in[5], zero, f[5], 0));
      odd_high = _mm256_add_epi32(odd_high, dot_high(in[5], zero, f[5], 0));
    }
    out[x] = descale(_mm256_add_epi32(even_low, odd_low), _mm256_add_epi32(even_high, odd_high), shift);
    if (n - 1 - x != x) {
      out[n - 1 - x] = descale(_mm256_sub_epi32(even_low, odd_low), _mm256_sub_epi32(even_high, odd_high), shift);
    }
  }
}

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
  __m256i work[8][8];
  for (uint32_t u = 0; u < n; u++) {
    __m256i in[8];
    __m256i out[8];
    for (uint32_t v = 0; v < n; v++) {
      in[v] = load(tile, quant, v * n + u);
    }
    transform_n(in, out, PASS1_SHIFT, n);
    for (uint32_t y = 0; y < n; y++) {
      work[y][u] = out[y];
    }
  }
  for (uint32_t y = 0; y < n; y++) {
    __m256i out[8];
    transform_n(work[y], out, PASS2_SHIFT, n);
    for (uint32_t x = n; x < 8; x++) {
      out[x] = _mm256_setzero_si256();
    }
    store(rows + y * row_stride, out, n);
  }
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

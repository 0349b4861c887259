// The AVX-512 versions of the native JPEG encoder's kernels, which list the candidates of a block sixteen coefficients
// at a time. The results are identical to those of jpeg_encode_kernels.c.

#include "jpeg_encode.h"
#include "jpeg_encode_forward_avx2.h"
#include "jpeg_encode_rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#pragma STDC FP_CONTRACT OFF

#define AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512bitalg")))
#define INLINE                                                                                                         \
  static inline __attribute__((always_inline, target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512bitalg")))

/// The coefficients of a block in units of their steps, transposed.
typedef struct coefficients {
  __m512 rows[4];
} coefficients;

INLINE coefficients transform_block(const uint8_t *samples, size_t stride, const float inverse[JPEG_BLOCK]) {
  __m256 d[8];
  for (uint32_t y = 0; y < 8; y++) {
    const __m128i row = _mm_loadl_epi64((const __m128i *)(samples + y * stride));
    d[y] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(row));
  }
  jpeg_transform_avx2(d);
  jpeg_transpose_avx2(d);
  jpeg_transform_avx2(d);
  d[0] = _mm256_sub_ps(d[0], _mm256_setr_ps(64 * 128, 0, 0, 0, 0, 0, 0, 0));
  coefficients c;
  for (uint32_t i = 0; i < 4; i++) {
    const __m512 rows = _mm512_insertf32x8(_mm512_castps256_ps512(d[2 * i]), d[2 * i + 1], 1);
    c.rows[i] = _mm512_mul_ps(rows, _mm512_loadu_ps(inverse + (size_t)i * 16));
  }
  return c;
}

/// Returns the mask of the coefficients whose magnitude is at least `threshold`.
INLINE uint64_t large_coefficients(const coefficients *c, float threshold) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const __mmask16 large = _mm512_cmp_ps_mask(_mm512_abs_ps(c->rows[i]), _mm512_set1_ps(threshold), _CMP_GE_OQ);
    mask |= (uint64_t)large << 16 * i;
  }
  return mask;
}

AVX512 static uint64_t forward(
    const uint8_t *samples, size_t stride, const float inverse[JPEG_BLOCK], float threshold, float output[JPEG_BLOCK]) {
  const coefficients c = transform_block(samples, stride, inverse);
  for (uint32_t i = 0; i < 4; i++) {
    _mm512_storeu_ps(output + (size_t)i * 16, c.rows[i]);
  }
  return large_coefficients(&c, threshold);
}

/// Returns the coefficients at the given transposed indexes.
INLINE __m512 pick(const coefficients *c, __m512i index) {
  const __m512 lower = _mm512_permutex2var_ps(c->rows[0], index, c->rows[1]);
  const __m512 upper = _mm512_permutex2var_ps(c->rows[2], index, c->rows[3]);
  return _mm512_mask_blend_ps(_mm512_test_epi32_mask(index, _mm512_set1_epi32(32)), lower, upper);
}

/// Appends the candidates among sixteen coefficients in zigzag order, of which the first has index `first`.
INLINE uint32_t consider_group(
    const jpeg_chooser *chooser, __m512 values, uint32_t first, __mmask16 mask, __m512 price, uint32_t count,
    jpeg_candidates *candidates) {
  const __m512 magnitudes = _mm512_abs_ps(values);
  const __m512i nearest = _mm512_cvttps_epi32(_mm512_add_ps(magnitudes, _mm512_set1_ps(0.5F)));
  const __m512i levels = _mm512_min_epi32(nearest, _mm512_set1_epi32(JPEG_MAX_LEVEL));
  const __m512 level = _mm512_cvtepi32_ps(levels);
  const __m512 prices = _mm512_mul_ps(_mm512_loadu_ps(chooser->weight + first), price);
  const __m512 twice = _mm512_sub_ps(_mm512_mul_ps(_mm512_set1_ps(2), magnitudes), level);
  const __m512 gain = _mm512_mul_ps(_mm512_mul_ps(level, twice), prices);
  const __m512 limited = _mm512_min_ps(gain, _mm512_set1_ps(JPEG_MAX_GAIN));
  const __m512i gains = _mm512_and_si512(_mm512_cvttps_epi32(limited), _mm512_set1_epi32(~3));
  const __m512i sizes = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(levels));
  const __m512i indexes = _mm512_add_epi32(
      _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), _mm512_set1_epi32((int32_t)first));
  const __m512i places = _mm512_or_si512(_mm512_slli_epi32(sizes, 6), indexes);
  const __mmask16 is_negative = _mm512_movepi32_mask(_mm512_castps_si512(values));
  const __m512i signed_levels = _mm512_mask_sub_epi32(levels, is_negative, _mm512_setzero_si512(), levels);
  const __m512i both = _mm512_or_si512(_mm512_slli_epi32(signed_levels, 16), places);
  _mm512_storeu_si512(candidates->gains + count, _mm512_maskz_compress_epi32(mask, gains));
  _mm512_storeu_si512(candidates->places + count, _mm512_maskz_compress_epi32(mask, both));
  return count + (uint32_t)__builtin_popcount(mask);
}

AVX512 static void consider(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, jpeg_candidates *candidates) {
  const coefficients c = transform_block(samples, stride, chooser->inverse);
  const uint64_t large = large_coefficients(&c, 0.5F + lambda * JPEG_MIN_BITS) & ~(uint64_t)1;
  const __m512i index = _mm512_loadu_si512(chooser->index);
  const uint64_t mask = _mm512_bitshuffle_epi64_mask(_mm512_set1_epi64((int64_t)large), index);
  const __m512 price = _mm512_set1_ps(JPEG_COST_SCALE / lambda);
  candidates->dc = _mm512_cvtss_f32(c.rows[0]);
  candidates->mask = mask;
  uint32_t count = 0;
  for (uint32_t first = 0; mask >> first != 0; first += 16) {
    const __m128i group = _mm_loadu_si128((const __m128i *)(chooser->index + first));
    const __m512 values = pick(&c, _mm512_cvtepu8_epi32(group));
    count = consider_group(chooser, values, first, (__mmask16)(mask >> first), price, count, candidates);
    if (first == 48) {
      break;
    }
  }
}

AVX512 static void activity(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums) {
  ccodecs_jpeg_encode_kernels_avx2.activity(samples, stride, count, sums);
}

AVX512 static void convert(const uint8_t *rgb, uint8_t *luma, uint8_t *blue, uint8_t *red, size_t count) {
  ccodecs_jpeg_convert_rgb(rgb, luma, blue, red, count);
}

AVX512 static void halve(const uint8_t *upper, const uint8_t *lower, uint8_t *output, size_t count) {
  ccodecs_jpeg_halve_rows(upper, lower, output, count);
}

const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_avx512 = {
    .forward = forward, .consider = consider, .activity = activity, .convert = convert, .halve = halve};

#endif

// All PNG row filters at once, with AVX2: each vector of a row is loaded once, and the sums that filters are chosen by
// are computed with the filtered bytes. The scalar version in png_filter.c is the oracle.

#include "png_encoder.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
#define INLINE TARGET static inline __attribute__((always_inline))

enum { LANES = 32 };

/// A pixel's bytes and their neighbors.
typedef struct neighbors {
  __m256i value, left, up, corner;
} neighbors;

INLINE __m256i load(const uint8_t *bytes) {
  return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

INLINE __m256i difference(__m256i a, __m256i b) {
  return _mm256_or_si256(_mm256_subs_epu8(a, b), _mm256_subs_epu8(b, a));
}

/// Returns the mean of each two bytes, rounded down.
INLINE __m256i mean(__m256i a, __m256i b) {
  const __m256i is_odd = _mm256_and_si256(_mm256_xor_si256(a, b), _mm256_set1_epi8(1));
  return _mm256_sub_epi8(_mm256_avg_epu8(a, b), is_odd);
}

/// Predicts as Paeth does, in bytes: left + up - corner is nearest to the corner only if the corner is between the
/// others. Then its distance is the difference between those of the others, which fits into a byte.
INLINE __m256i paeth(const neighbors *n) {
  const __m256i to_left = difference(n->up, n->corner);
  const __m256i to_up = difference(n->left, n->corner);
  const __m256i nearest = _mm256_min_epu8(to_left, to_up);
  const __m256i is_left = _mm256_cmpeq_epi8(nearest, to_left);
  const __m256i of_two = _mm256_blendv_epi8(n->up, n->left, is_left);
  const __m256i low = _mm256_min_epu8(n->left, n->up), high = _mm256_max_epu8(n->left, n->up);
  const __m256i inner = _mm256_max_epu8(low, _mm256_min_epu8(high, n->corner));
  const __m256i is_between = _mm256_cmpeq_epi8(inner, n->corner);
  const __m256i to_corner = difference(to_left, to_up);
  const __m256i is_far = _mm256_cmpeq_epi8(_mm256_min_epu8(to_corner, nearest), nearest);
  return _mm256_blendv_epi8(of_two, n->corner, _mm256_andnot_si256(is_far, is_between));
}

/// Returns the sum of the absolute values of the bytes, interpreted as signed, in four parts.
INLINE __m256i distance(__m256i bytes) {
  return _mm256_sad_epu8(_mm256_abs_epi8(bytes), _mm256_setzero_si256());
}

/// Applies each filter, and adds to its sum.
INLINE void filter_lanes(const neighbors *n, __m256i outputs[PNG_FILTER_COUNT], __m256i sums[PNG_FILTER_COUNT]) {
  outputs[CCODECS_PNG_FILTER_NONE] = n->value;
  outputs[CCODECS_PNG_FILTER_SUB] = _mm256_sub_epi8(n->value, n->left);
  outputs[CCODECS_PNG_FILTER_UP] = _mm256_sub_epi8(n->value, n->up);
  outputs[CCODECS_PNG_FILTER_AVERAGE] = _mm256_sub_epi8(n->value, mean(n->left, n->up));
  outputs[CCODECS_PNG_FILTER_PAETH] = _mm256_sub_epi8(n->value, paeth(n));
#pragma GCC unroll 8
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    sums[way] = _mm256_add_epi64(sums[way], distance(outputs[way]));
  }
}

/// Applies each filter to the last bytes of a row, fewer than LANES.
INLINE void filter_rest(const png_filter_row *row, size_t start, uint8_t *output, __m256i sums[PNG_FILTER_COUNT]) {
  const size_t count = row->count - start;
  uint8_t bytes[4][LANES] = {{0}}; // bytes of zeros around zeros add nothing to a sum
  memcpy(bytes[0], row->current + start, count);
  memcpy(bytes[1], row->current + start - row->step, count);
  memcpy(bytes[2], row->above + start, count);
  memcpy(bytes[3], row->above + start - row->step, count);
  const neighbors n = {load(bytes[0]), load(bytes[1]), load(bytes[2]), load(bytes[3])};
  __m256i outputs[PNG_FILTER_COUNT];
  filter_lanes(&n, outputs, sums);
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    memcpy(output + way * row->stride, &outputs[way], count);
  }
}

TARGET void ccodecs_png_filter_avx2(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]) {
  __m256i parts[PNG_FILTER_COUNT] = {{0}};
  uint8_t *output = row->output;
  size_t i = 0;
  for (; i + LANES <= row->count; i += LANES, output += LANES) {
    const neighbors n = {
        load(row->current + i), load(row->current + i - row->step), load(row->above + i),
        load(row->above + i - row->step)};
    __m256i outputs[PNG_FILTER_COUNT];
    filter_lanes(&n, outputs, parts);
#pragma GCC unroll 8
    for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
      _mm256_storeu_si256((__m256i *)(void *)(output + way * row->stride), outputs[way]);
    }
  }
  if (i < row->count) {
    filter_rest(row, i, output, parts);
  }
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    uint64_t values[4];
    memcpy(values, &parts[way], sizeof values);
    sums[way] = values[0] + values[1] + values[2] + values[3];
  }
}

#endif

// All PNG row filters at once, in vectors: each vector of a row is loaded once, and the sums that filters are chosen by
// are computed with the filtered bytes. Written once for all instruction sets; png_filter.c has
// the filters one by one, which are the oracle of their bytes. The including file defines LANES (the bytes of a
// vector), TARGET (a function attribute), sum_lanes (a vector of sums), mean and add_bytes.

#include "png_encoder.h"

#define INLINE TARGET static inline __attribute__((always_inline))

typedef uint8_t bytes __attribute__((vector_size(LANES)));
typedef int8_t signed_bytes __attribute__((vector_size(LANES)));

/// Returns the mean of each two bytes, rounded down.
INLINE bytes mean(bytes a, bytes b);

/// Adds magnitudes to sums, each to any of them.
INLINE sum_lanes add_bytes(sum_lanes sums, bytes magnitudes);

/// A pixel's bytes and their neighbors.
typedef struct neighbors {
  bytes value, left, up, corner;
} neighbors;

INLINE bytes load(const uint8_t *from) {
  bytes x;
  memcpy(&x, from, sizeof x);
  return x;
}

INLINE bytes smaller(bytes a, bytes b) {
  return __builtin_elementwise_min(a, b);
}

INLINE bytes larger(bytes a, bytes b) {
  return __builtin_elementwise_max(a, b);
}

INLINE bytes difference(bytes a, bytes b) {
  return larger(a, b) - smaller(a, b);
}

INLINE bytes select_bytes(bytes mask, bytes x, bytes otherwise) {
  return (mask & x) | (~mask & otherwise);
}

/// Predicts as Paeth does, in bytes: left + up - corner is nearest to the corner only if the corner is between the
/// others. Then its distance is the difference between those of the others, which fits into a byte.
INLINE bytes paeth(const neighbors *n) {
  const bytes to_left = difference(n->up, n->corner);
  const bytes to_up = difference(n->left, n->corner);
  const bytes nearest = smaller(to_left, to_up);
  const bytes of_two = select_bytes((bytes)(nearest == to_left), n->left, n->up);
  const bytes inner = larger(smaller(n->left, n->up), smaller(larger(n->left, n->up), n->corner));
  const bytes is_between = (bytes)(inner == n->corner);
  const bytes is_near = (bytes)(difference(to_left, to_up) < nearest);
  return select_bytes(is_between & is_near, n->corner, of_two);
}

/// Applies each filter, and adds the absolute values of the results' bytes, interpreted as signed, to its sum.
INLINE void filter_lanes(const neighbors *n, bytes outputs[PNG_FILTER_COUNT], sum_lanes sums[PNG_FILTER_COUNT]) {
  outputs[CCODECS_PNG_FILTER_NONE] = n->value;
  outputs[CCODECS_PNG_FILTER_SUB] = n->value - n->left;
  outputs[CCODECS_PNG_FILTER_UP] = n->value - n->up;
  outputs[CCODECS_PNG_FILTER_AVERAGE] = n->value - mean(n->left, n->up);
  outputs[CCODECS_PNG_FILTER_PAETH] = n->value - paeth(n);
#pragma GCC unroll 8
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    sums[way] = add_bytes(sums[way], (bytes)__builtin_elementwise_abs((signed_bytes)outputs[way]));
  }
}

/// Applies each filter to the last bytes of a row, fewer than LANES.
INLINE void filter_rest(const png_filter_row *row, size_t start, uint8_t *output, sum_lanes sums[PNG_FILTER_COUNT]) {
  const size_t count = row->count - start;
  uint8_t rest[4][LANES] = {{0}}; // bytes of zeros around zeros add nothing to a sum
  memcpy(rest[0], row->current + start, count);
  memcpy(rest[1], row->current + start - row->step, count);
  memcpy(rest[2], row->above + start, count);
  memcpy(rest[3], row->above + start - row->step, count);
  const neighbors n = {load(rest[0]), load(rest[1]), load(rest[2]), load(rest[3])};
  bytes outputs[PNG_FILTER_COUNT];
  filter_lanes(&n, outputs, sums);
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    memcpy(output + way * row->stride, &outputs[way], count);
  }
}

INLINE void filter_all(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]) {
  sum_lanes parts[PNG_FILTER_COUNT] = {{0}};
  uint8_t *output = row->output;
  size_t i = 0;
  for (; i + LANES <= row->count; i += LANES, output += LANES) {
    const neighbors n = {
        load(row->current + i), load(row->current + i - row->step), load(row->above + i),
        load(row->above + i - row->step)};
    bytes outputs[PNG_FILTER_COUNT];
    filter_lanes(&n, outputs, parts);
#pragma GCC unroll 8
    for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
      memcpy(output + way * row->stride, &outputs[way], sizeof outputs[way]);
    }
  }
  if (i < row->count) {
    filter_rest(row, i, output, parts);
  }
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    sums[way] = 0;
    for (size_t lane = 0; lane < sizeof parts[way] / sizeof parts[way][0]; lane++) {
      sums[way] += parts[way][lane];
    }
  }
}

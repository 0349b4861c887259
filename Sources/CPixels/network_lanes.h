// The arithmetic of a network over vectors of floats, written once for all instruction sets. The including file defines
// LANES (the number of floats in a vector), TARGET (a function attribute) and every_other.

#include "lanes.h"
#include "network.h"

#pragma STDC FP_CONTRACT ON

typedef struct pair {
  lanes even, odd;
} pair;

/// Separates twice as many floats as a vector has.
INLINE pair every_other(const float *floats);

INLINE lanes tap_at(const float *const rows[3], const float *taps, float bias, size_t x, bool is_step) {
  lanes sum = bias - (lanes){0};
  for (size_t y = 0; y < 3; y++) {
    const float *row = rows[y] + (is_step ? 2 * x : x);
    if (is_step) {
      const pair before = every_other(row - 1);
      const pair after = every_other(row);
      sum += taps[3 * y] * before.even;
      sum += taps[3 * y + 1] * before.odd;
      sum += taps[3 * y + 2] * after.odd;
    } else {
      sum += taps[3 * y] * load_lanes(row - 1);
      sum += taps[3 * y + 1] * load_lanes(row);
      sum += taps[3 * y + 2] * load_lanes(row + 1);
    }
  }
  return sum;
}

TARGET static void tap(
    const float *const rows[3], const float *taps, float bias, uint32_t step, float *output, size_t count) {
  for (size_t x = 0; x < count; x += LANES) {
    store_lanes(output + x, step == 2 ? tap_at(rows, taps, bias, x, true) : tap_at(rows, taps, bias, x, false));
  }
}

/// `count` vectors side by side, whose sums stay in registers.
INLINE void weigh_block(
    const float *planes, size_t stride, const cpixels_network_weight *weights, size_t weight_count, float bias,
    const float *addend, bool clips, float *output, const size_t count) {
  lanes sums[64 / LANES];
  for (size_t i = 0; i < count; i++) {
    sums[i] = addend == NULL ? bias - (lanes){0} : bias + load_lanes(addend + i * LANES);
  }
  for (size_t k = 0; k < weight_count; k++) {
    const float *plane = planes + weights[k].channel * stride;
    const float factor = weights[k].factor;
    for (size_t i = 0; i < count; i++) {
      sums[i] += factor * load_lanes(plane + i * LANES);
    }
  }
  for (size_t i = 0; i < count; i++) {
    const lanes sum = sums[i];
    store_lanes(output + i * LANES, clips ? (lanes)((whole_lanes)sum & (sum > 0)) : sum);
  }
}

TARGET static void weigh(
    const float *planes, size_t stride, const cpixels_network_weight *weights, size_t weight_count, float bias,
    const float *addend, bool clips, float *output, size_t count) {
  for (size_t x = 0; x < count;) {
    const float *added = addend == NULL ? NULL : addend + x;
    const size_t rest = count - x < 64 ? count - x : 64;
#define BLOCK(size)                                                                                                    \
  case size:                                                                                                           \
    weigh_block(planes + x, stride, weights, weight_count, bias, added, clips, output + x, size / LANES);              \
    break;
    switch (rest) {
      BLOCK(64)
      BLOCK(56)
      BLOCK(48)
      BLOCK(40)
      BLOCK(32)
      BLOCK(24)
      BLOCK(16)
      BLOCK(8)
    }
#undef BLOCK
    x += rest;
  }
}

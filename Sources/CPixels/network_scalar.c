// The arithmetic of a network, one float after the other.

#include "network.h"

#pragma STDC FP_CONTRACT OFF

/// The number of sums that a compiler can keep side by side.
enum { BLOCK = 32 };

static void tap(const float *const rows[3], const float *taps, float bias, uint32_t step, float *output, size_t count) {
  for (size_t x = 0; x < count; x++) {
    float sum = bias;
    for (size_t i = 0; i < CPIXELS_NETWORK_TAPS; i++) {
      sum += taps[i] * *(rows[i / 3] + step * x + i % 3 - 1);
    }
    output[x] = sum;
  }
}

static void weigh(
    const float *planes, size_t stride, const cpixels_network_weight *weights, size_t weight_count, float bias,
    const float *addend, bool clips, float *output, size_t count) {
  for (size_t start = 0; start < count; start += BLOCK) {
    const size_t size = count - start < BLOCK ? count - start : BLOCK;
    float sums[BLOCK];
    for (size_t x = 0; x < size; x++) {
      sums[x] = addend == NULL ? bias : bias + addend[start + x];
    }
    for (size_t i = 0; i < weight_count; i++) {
      const float *plane = planes + weights[i].channel * stride + start;
      for (size_t x = 0; x < size; x++) {
        sums[x] += weights[i].factor * plane[x];
      }
    }
    for (size_t x = 0; x < size; x++) {
      output[start + x] = clips && !(sums[x] > 0) ? 0 : sums[x];
    }
  }
}

const cpixels_network_kernels cpixels_network_scalar = {.tap = tap, .weigh = weigh};

// Chooses the levels of a block: of all ways to code its coefficients, the one whose weighted squared error plus the
// price of its bits is least, found by dynamic programming over the coefficients that may be other than zero.

#include "jpeg_encode.h"

#include <math.h>

#pragma STDC FP_CONTRACT OFF

enum {
  STEPS = 4, ///< A coefficient is reached from one of so many candidates before it.
  NEVER = 1 << 26,
};

const uint8_t ccodecs_jpeg_zigzag[JPEG_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/// Returns a number of bits as a cost whose lowest bits are free.
static int32_t cost_of(float bits) {
  return (int32_t)(bits * JPEG_COST_SCALE) & ~(STEPS - 1);
}

void ccodecs_jpeg_chooser_init(jpeg_chooser *chooser, const jpeg_encode_tables *tables, uint32_t component) {
  const uint32_t kind = component > 0;
  memset(chooser->zigzag_bits, 0, sizeof chooser->zigzag_bits);
  for (uint32_t k = 0; k < JPEG_BLOCK; k++) {
    const uint32_t natural = ccodecs_jpeg_zigzag[k];
    const uint32_t transposed = natural % 8 * 8 + natural / 8;
    chooser->index[k] = (uint8_t)transposed;
    const float scale = ccodecs_jpeg_forward_scale[natural / 8] * ccodecs_jpeg_forward_scale[natural % 8] * 8;
    chooser->inverse[transposed] = 1 / (scale * (float)tables->quant[component][natural]);
    chooser->weight[k] = tables->weight[kind][k];
    for (uint32_t group = 0; group < 16; group++) {
      if (group >> transposed % 4 & 1) {
        chooser->zigzag_bits[transposed / 4][group] |= (uint64_t)1 << k;
      }
    }
  }
  chooser->end_rate = cost_of(tables->rate[kind][0]);
  for (uint32_t size = 1; size <= JPEG_SIZES; size++) {
    for (uint32_t run = 0; run < JPEG_LEVELS; run++) {
      chooser->run_rates[size][run] =
          cost_of(tables->rate[kind][run % 16 * 16 + size] + (float)(run / 16) * tables->rate[kind][0xF0]);
    }
  }
}

static uint64_t zigzag_mask(const jpeg_chooser *chooser, uint64_t mask) {
  uint64_t result = 0;
  while (mask != 0) {
    const uint32_t group = (uint32_t)__builtin_ctzll(mask) / 4;
    result |= chooser->zigzag_bits[group][mask >> 4 * group & 15];
    mask &= ~((uint64_t)15 << 4 * group);
  }
  return result;
}

static inline uint32_t size_of(uint32_t magnitude) {
  return 32 - (uint32_t)__builtin_clz(magnitude);
}

/// Returns by how much the error costs less if a coefficient of this magnitude becomes `level` instead of zero.
static inline int32_t gain_of(float magnitude, int32_t level, float price) {
  const float gain = (float)level * (2 * magnitude - (float)level) * price;
  return (gain > JPEG_MAX_GAIN ? JPEG_MAX_GAIN : (int32_t)gain) & ~(STEPS - 1);
}

void ccodecs_jpeg_consider(
    const jpeg_chooser *chooser, jpeg_forward forward, const uint8_t *samples, size_t stride, float lambda,
    jpeg_candidates *candidates) {
  float output[JPEG_BLOCK];
  const uint64_t large = forward(samples, stride, chooser->inverse, 0.5F + lambda * JPEG_MIN_BITS, output);
  const float price = JPEG_COST_SCALE / lambda;
  uint64_t mask = zigzag_mask(chooser, large & ~(uint64_t)1);
  candidates->dc = output[0];
  candidates->mask = mask;
  for (uint32_t i = 0; mask != 0; mask &= mask - 1, i++) {
    const uint32_t k = (uint32_t)__builtin_ctzll(mask);
    const float value = output[chooser->index[k]];
    const float magnitude = fabsf(value);
    const int32_t nearest = (int32_t)(magnitude + 0.5F);
    const int32_t level = nearest > JPEG_MAX_LEVEL ? JPEG_MAX_LEVEL : nearest;
    candidates->gains[i] = gain_of(magnitude, level, chooser->weight[k] * price);
    const uint32_t bits = (uint32_t)(value < 0 ? -level : level);
    candidates->places[i] = bits << 16 | size_of((uint32_t)level) << 6 | k;
  }
}

/// Returns the candidates that are worth their bits; bit i is that of candidate i.
static uint64_t best_candidates(const jpeg_chooser *chooser, const jpeg_candidates *candidates, int32_t count) {
  // The costs and zigzag indexes of the last candidates. The start of the block is reached at no cost, and what would
  // be before it never. Two bits for each candidate are the number of those that the best way to it skips.
  int32_t cost1 = 0, cost2 = NEVER, cost3 = NEVER, cost4 = NEVER;
  int32_t k1 = 0, k2 = 0, k3 = 0, k4 = 0;
  uint64_t skips[2] = {0, 0};
  int32_t best = chooser->end_rate, last = -1;
  uint64_t part = 0;
  for (int32_t i = 0; i < count; i++) {
    const uint32_t place = candidates->places[i];
    const int32_t k = place % JPEG_BLOCK, gain = candidates->gains[i];
    const int32_t *rates = chooser->run_rates[place >> 6 & 15] + k - 1;
    const int32_t from4 = (cost4 + rates[-k4]) | 3, from3 = (cost3 + rates[-k3]) | 2;
    const int32_t from2 = (cost2 + rates[-k2]) | 1, farther = from4 < from3 ? from4 : from3;
    const int32_t far = (farther < from2 ? farther : from2) - gain, near = cost1 + (rates[-k1] - gain);
    const int32_t reached = far < near ? far : near;
    if (i == 32) {
      skips[0] = part;
      part = 0;
    }
    part |= (uint64_t)(reached & (STEPS - 1)) << i % 32 * 2;
    const int32_t cost = reached & ~(STEPS - 1);
    const int32_t end = cost + (k < 63 ? chooser->end_rate : 0);
    last = end < best ? i : last;
    best = end < best ? end : best;
    cost4 = cost3, cost3 = cost2, cost2 = cost1, cost1 = cost;
    k4 = k3, k3 = k2, k2 = k1, k1 = k;
  }
  skips[count > 32] = part;
  uint64_t chosen = 0;
  for (; last >= 32; last -= 1 + (int32_t)(skips[1] >> (last - 32) * 2 & 3)) {
    chosen |= (uint64_t)1 << last;
  }
  for (; last >= 0; last -= 1 + (int32_t)(skips[0] >> last * 2 & 3)) {
    chosen |= (uint64_t)1 << last;
  }
  return chosen;
}

void ccodecs_jpeg_choose(
    const jpeg_chooser *chooser, const jpeg_encode_kernels *kernels, const uint8_t *samples, size_t stride,
    float lambda, jpeg_block *block) {
  jpeg_candidates candidates;
  kernels->consider(chooser, samples, stride, lambda, &candidates);
  const float dc = candidates.dc;
  block->dc = (int16_t)(dc < 0 ? -(int32_t)(0.5F - dc) : (int32_t)(dc + 0.5F));
  uint64_t chosen = best_candidates(chooser, &candidates, __builtin_popcountll(candidates.mask));
  uint64_t mask = 0;
  int16_t *levels = block->levels;
  for (; chosen != 0; chosen &= chosen - 1) {
    const uint32_t i = (uint32_t)__builtin_ctzll(chosen);
    mask |= (uint64_t)1 << candidates.places[i] % JPEG_BLOCK;
    *levels++ = (int16_t)(candidates.places[i] >> 16);
  }
  block->mask = mask;
}

// Chooses the levels of a block: of all ways to code its coefficients, the one whose weighted squared error plus the
// price of its bits is least, found by dynamic programming over the coefficients that may be other than zero.

#include "jpeg_encode.h"

#include <math.h>

#pragma STDC FP_CONTRACT OFF

/// Bits that no coefficient costs less than: smaller errors are not worth considering.
static const float min_bits = 0.75F;

enum {
  MAX_LEVEL = 1023, ///< Of a file with 8 bits per sample.
  STEPS = 4,        ///< A coefficient is reached from one of so many candidates before it.
  COST_SCALE = 64,  ///< Units of a bit, of which the lowest bits are free for the step.
  MAX_GAIN = 1 << 18,
  NEVER = 1 << 26,
};

const uint8_t ccodecs_jpeg_zigzag[JPEG_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/// Returns a number of bits as a cost whose lowest bits are free.
static int32_t cost_of(float bits) {
  return (int32_t)(bits * COST_SCALE) & ~(STEPS - 1);
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

/// A coefficient that may be other than zero, and the best way to it.
typedef struct candidate {
  int32_t cost;      ///< In units of COST_SCALE to the bit, compared with a block of zeros.
  uint32_t position; ///< Zigzag index.
  uint64_t mask;     ///< The zigzag indexes of the coefficients on the way, this one included.
} candidate;

/// Returns the cost of the best way over one of the candidates before, with its index in the lowest bits.
static inline int32_t best_way(const candidate *end, uint32_t position, const int32_t *rates) {
  int32_t best = INT32_MAX;
#pragma unroll
  for (int32_t i = STEPS; i > 0; i--) {
    const candidate *c = end - i;
    const int32_t cost = (c->cost + rates[position - c->position - 1]) | (i - 1);
    best = cost < best ? cost : best;
  }
  return best;
}

/// Returns by how much the error costs less if a coefficient of this magnitude becomes `level` instead of zero.
static inline int32_t gain_of(float magnitude, int32_t level, float price) {
  const float gain = (float)level * (2 * magnitude - (float)level) * price;
  return (gain > MAX_GAIN ? MAX_GAIN : (int32_t)gain) & ~(STEPS - 1);
}

void ccodecs_jpeg_choose(
    const jpeg_chooser *chooser, const jpeg_encode_kernels *kernels, const uint8_t *samples, size_t stride,
    float lambda, jpeg_block *block) {
  float output[JPEG_BLOCK];
  uint64_t mask = kernels->forward(samples, stride, chooser->inverse, 0.5F + lambda * min_bits, output);
  const float dc = output[0];
  block->dc = (int16_t)(dc < 0 ? -(int32_t)(0.5F - dc) : (int32_t)(dc + 0.5F));
  mask = zigzag_mask(chooser, mask & ~(uint64_t)1);
  // The start of the block is reached at no cost, and what would be before it never.
  candidate candidates[STEPS + JPEG_BLOCK];
  int16_t levels[JPEG_BLOCK];
  for (uint32_t i = 0; i < STEPS; i++) {
    candidates[i] = (candidate){.cost = i + 1 < STEPS ? NEVER : 0};
  }
  candidate *next = candidates + STEPS;
  const float price = COST_SCALE / lambda;
  int32_t best = chooser->end_rate;
  uint64_t best_mask = 0;
  for (; mask != 0; mask &= mask - 1, next++) {
    const uint32_t k = (uint32_t)__builtin_ctzll(mask);
    const float value = output[chooser->index[k]];
    const float magnitude = fabsf(value);
    const float weight = chooser->weight[k] * price;
    const int32_t nearest = (int32_t)(magnitude + 0.5F);
    const int32_t level = nearest > MAX_LEVEL ? MAX_LEVEL : nearest;
    const uint32_t size = size_of((uint32_t)level);
    const int32_t reached = best_way(next, k, chooser->run_rates[size]) - gain_of(magnitude, level, weight);
    levels[k] = (int16_t)(value < 0 ? -level : level);
    const uint64_t way = (next - 1 - (reached & (STEPS - 1)))->mask | (uint64_t)1 << k;
    const int32_t cost = reached & ~(STEPS - 1);
    *next = (candidate){.cost = cost, .position = k, .mask = way};
    const int32_t end = cost + (k < 63 ? chooser->end_rate : 0);
    best_mask = end < best ? way : best_mask;
    best = end < best ? end : best;
  }
  block->mask = best_mask;
  int16_t *output_levels = block->levels;
  for (; best_mask != 0; best_mask &= best_mask - 1) {
    *output_levels++ = levels[__builtin_ctzll(best_mask)];
  }
}

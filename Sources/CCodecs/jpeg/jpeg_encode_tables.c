// What the native JPEG encoder does at each quality: quantization steps and prices, interpolated between qualities at
// which they were fitted.

#include "jpeg_encode.h"

#include <math.h>

#pragma STDC FP_CONTRACT OFF

enum { TRIANGLE = 36, RATE_SIZES = 11, MAX_FITTED_RATES = 128 };

/// Parameters fitted at one quality.
typedef struct jpeg_anchor {
  float position;              ///< The quality that they were fitted at.
  float lambda[2];             ///< Squared error in steps that is worth one bit, at an activity of 1.
  float mask_slope[2];         ///< The power of the luma's activity that lambda is proportional to.
  float luma_weights[4];       ///< Weights of errors at 1, 3, 6 and 9.9 cycles.
  float chroma_weight;         ///< Logarithm of the weight at 10 cycles.
  uint16_t steps[3][TRIANGLE]; ///< Eighths of the steps in the lower triangle of the symmetric matrices, by rows.
  /// Eighths of bits, by run and size: for each run those that were fitted, and a 0. Larger sizes are too rare.
  const uint8_t (*rates)[MAX_FITTED_RATES];
} jpeg_anchor;

#include "jpeg_encode_anchors.h"

// Small images with fine colors lose several points of SSIMULACRA2 by errors of blue chroma that others do not notice;
// they cost 0.5 % of bytes.
const float ccodecs_jpeg_lambda_shares[3] = {1, 0.4F, 1};

static float mix(float a, float b, float share) {
  return a + (b - a) * share;
}

/// Interpolates the weights of luma errors by distance from the DC coefficient.
static float luma_weight(const float weights[4], float distance) {
  static const float knots[4] = {1, 3, 6, 9.9F};
  uint32_t i = 1;
  while (i < 3 && distance > knots[i]) {
    i++;
  }
  const float share = (distance - knots[i - 1]) / (knots[i] - knots[i - 1]);
  return mix(weights[i - 1], weights[i], share < 0 ? 0 : share > 1 ? 1 : share);
}

/// The two anchors around a quality.
typedef struct anchor_pair {
  const jpeg_anchor *lower;
  const jpeg_anchor *upper;
  float share; ///< Of the upper one.
  float scale; ///< Of the steps.
} anchor_pair;

/// Returns the factor of libjpeg's steps, in percent.
static float scale_of(float quality) {
  return quality < 50 ? 5000.0F / quality : 200 - 2 * quality;
}

/// Where a quality is between the anchors.
typedef struct position_knot {
  float quality;
  float position;
} position_knot;

static const position_knot halved_positions[] = {
    {1, 1},      {20, 19.25}, {30, 30.25}, {35, 36.5}, {40, 42.5}, {45, 46.5},  {50, 52},
    {55, 56},    {60, 60},    {65, 64},    {70, 70.5}, {75, 74},   {80, 80.25}, {83, 82.75},
    {86, 85.75}, {89, 88.5},  {92, 92},    {95, 96},   {97, 97.5}, {99, 99.75}, {100, 100}};
static const position_knot full_positions[] = {{1, 1},      {20, 28},    {30, 40},    {40, 50.5},  {50, 58},
                                               {60, 63.5},  {70, 70.5},  {80, 79},    {85, 85.25}, {88, 89},
                                               {90, 91.75}, {92, 93.3F}, {94, 94.9F}, {95, 95.5},  {96, 97},
                                               {97, 98},    {98, 99},    {99, 99.5},  {100, 100}};

/// Returns the position among the anchors, 1 to 100, at which files score as those of libjpeg-turbo at a quality.
static float position_of(float quality, bool has_full_chroma) {
  const position_knot *knot = has_full_chroma ? full_positions : halved_positions;
  // The last knot is of quality 100.
  while (knot[1].quality < quality) {
    knot++;
  }
  return mix(knot[0].position, knot[1].position, (quality - knot[0].quality) / (knot[1].quality - knot[0].quality));
}

static anchor_pair anchors_around(float quality, bool has_full_chroma) {
  const float position = position_of(quality, has_full_chroma);
  const jpeg_anchor *first = has_full_chroma ? full_anchors : halved_anchors;
  const jpeg_anchor *upper = first;
  // The last anchor is at position 100.
  while (upper->position < position) {
    upper++;
  }
  if (upper == first) {
    // Below the first anchor, steps grow as those of libjpeg do.
    return (anchor_pair){.lower = first, .upper = first, .scale = scale_of(position) / scale_of(first->position)};
  }
  const jpeg_anchor *lower = upper - 1;
  const float from = scale_of(lower->position);
  const float share = (scale_of(position) - from) / (scale_of(upper->position) - from);
  return (anchor_pair){.lower = lower, .upper = upper, .share = share, .scale = 1};
}

/// Returns the step between two entries of the anchors.
static uint32_t step_between(const anchor_pair *pair, uint16_t lower, uint16_t upper) {
  const float step = mix(lower, upper, pair->share) / 8 * pair->scale;
  return step < 1 ? 1 : step > 255 ? 255 : (uint32_t)(int32_t)(step + 0.5F);
}

static uint8_t step_at(const anchor_pair *pair, uint32_t component, uint32_t i) {
  const uint32_t y = i / 8 > i % 8 ? i / 8 : i % 8, x = i / 8 + i % 8 - y;
  const uint32_t at = y * (y + 1) / 2 + x;
  return (uint8_t)step_between(pair, pair->lower->steps[component][at], pair->upper->steps[component][at]);
}

/// Returns the sum of the steps of a component.
static uint32_t step_sum(const anchor_pair *pair, uint32_t component) {
  // How often an entry of the triangle is in the matrix. Sums over the triangle are computed in vectors.
  static const uint32_t counts[TRIANGLE] = {1, 2, 1, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 2,
                                            2, 2, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 1};
  const uint16_t *lower = pair->lower->steps[component], *upper = pair->upper->steps[component];
  uint32_t sum = 0;
  for (uint32_t i = 0; i < TRIANGLE; i++) {
    sum += counts[i] * step_between(pair, lower[i], upper[i]);
  }
  return sum;
}

/// Eighths of bits, by run and size.
typedef struct rate_table {
  uint8_t rates[16][RATE_SIZES];
} rate_table;

static rate_table expand_rates(const uint8_t *fitted) {
  rate_table table;
  for (uint32_t run = 0; run < 16; run++, fitted++) {
    for (uint32_t size = 0; size < RATE_SIZES; size++) {
      // Of size 0 there are only the end of a block and sixteen zeros.
      const bool has_symbol = size > 0 || run == 0 || run == 15;
      table.rates[run][size] = has_symbol && *fitted != 0 ? *fitted++ : (uint8_t)(125 + 8 * size);
    }
  }
  return table;
}

void ccodecs_jpeg_encode_tables_init(jpeg_encode_tables *tables, float quality, bool has_full_chroma) {
  const anchor_pair pair = anchors_around(quality, has_full_chroma);
  const jpeg_anchor *a = pair.lower, *b = pair.upper;
  const float share = pair.share;
  for (uint32_t c = 0; c < 3; c++) {
    for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
      tables->quant[c][i] = step_at(&pair, c, i);
    }
  }
  for (uint32_t k = 0; k < JPEG_BLOCK; k++) {
    const uint32_t y = ccodecs_jpeg_zigzag[k] / 8, x = ccodecs_jpeg_zigzag[k] % 8;
    const float distance = sqrtf((float)(x * x + y * y));
    tables->weight[0][k] = mix(luma_weight(a->luma_weights, distance), luma_weight(b->luma_weights, distance), share);
    tables->weight[1][k] = 1 + mix(a->chroma_weight, b->chroma_weight, share) * (distance - 3) / 7;
  }
  for (uint32_t kind = 0; kind < 2; kind++) {
    tables->lambda[kind] = mix(a->lambda[kind], b->lambda[kind], share);
    tables->mask_slope[kind] = mix(a->mask_slope[kind], b->mask_slope[kind], share);
    const rate_table lower = expand_rates(a->rates[kind]), upper = expand_rates(b->rates[kind]);
    for (uint32_t symbol = 0; symbol < 256; symbol++) {
      const uint32_t run = symbol / 16, size = symbol % 16 < RATE_SIZES ? symbol % 16 : RATE_SIZES - 1;
      tables->rate[kind][symbol] = mix(lower.rates[run][size], upper.rates[run][size], share) / 8;
    }
  }
}

uint8_t ccodecs_jpeg_encode_quality(uint32_t luma_sum, uint32_t chroma_sum) {
  for (uint32_t i = 0; i < 200; i++) {
    const anchor_pair pair = anchors_around((float)(i / 2 + 1), i % 2 == 1);
    if (step_sum(&pair, 0) != luma_sum) {
      continue;
    }
    const uint32_t first = step_sum(&pair, 1), second = step_sum(&pair, 2);
    if ((first < second ? first : second) == chroma_sum) {
      return (uint8_t)(i / 2 + 1);
    }
  }
  return 0;
}

float ccodecs_jpeg_masking(float slope, uint32_t activity) {
  // A power by linear interpolation between powers of two, which is the same on every machine.
  const float value = (float)activity / 128 + 0.5F;
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const float exponent = (float)(bits - 0x3F800000) * slope;
  bits = (int32_t)exponent + 0x3F800000;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

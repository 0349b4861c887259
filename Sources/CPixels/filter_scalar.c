// The filter kernels in plain C, which are the oracle for the others. All versions perform the same operations in the
// same order, so that every instruction set produces the same samples. Fusing a multiplication and an addition into one
// rounding would break this.

#include "filter_kernels.h"

#include <math.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

static inline float clamped(float x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}

static inline int32_t limited(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

// MARK: Color

static void map_levels(
    const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count) {
  if (channels != 4) {
    for (size_t i = 0; i < channels * pixel_count; i++) {
      destination[i] = table[source[i]];
    }
    return;
  }
  for (size_t i = 0; i < 4 * pixel_count; i += 4) {
    destination[i] = table[source[i]];
    destination[i + 1] = table[source[i + 1]];
    destination[i + 2] = table[source[i + 2]];
    destination[i + 3] = source[i + 3];
  }
}

static void load_block(
    const float *table, uint32_t channels, const uint8_t *source, size_t pixel_count, cpixels_color_block *block) {
  cpixels_split_scalar(source, pixel_count, channels, block->levels[0], CPIXELS_COLOR_BLOCK);
  for (uint32_t c = 0; c < 3; c++) {
    for (size_t i = 0; i < pixel_count; i++) {
      const uint8_t level = block->levels[c][i];
      block->planes[c][i] = table != NULL ? table[level] : (float)level * (1 / 255.0f);
    }
  }
}

static void store_block(cpixels_color_block *block, uint32_t channels, size_t pixel_count, uint8_t *destination) {
  for (uint32_t c = 0; c < 3; c++) {
    for (size_t i = 0; i < pixel_count; i++) {
      block->levels[c][i] = (uint8_t)(int32_t)(block->planes[c][i] * 255 + 0.5f);
    }
  }
  cpixels_join_scalar(block->levels[0], CPIXELS_COLOR_BLOCK, pixel_count, channels, destination);
}

static inline float binary_logarithm(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  // Chosen so that the remaining factor of x is between the square roots of 1/2 and 2, where the series is short.
  const int32_t exponent = (int32_t)(bits - 0x3F3504F3) >> 23;
  bits -= (uint32_t)exponent << 23;
  float rest;
  memcpy(&rest, &bits, sizeof rest);
  const float t = (rest - 1) / (rest + 1);
  const float square = t * t;
  float series = CPIXELS_LOG_9 * square + CPIXELS_LOG_7;
  series = series * square + CPIXELS_LOG_5;
  series = series * square + CPIXELS_LOG_3;
  series = series * square + CPIXELS_LOG_1;
  return (float)exponent + t * series;
}

static inline float power_of_two(float x) {
  const float limit = x < -125 ? -125 : x > 125 ? 125 : x;
  const int32_t whole = (int32_t)(limit + (limit < 0 ? -0.5f : 0.5f));
  const float rest = limit - (float)whole;
  float series = CPIXELS_EXP_6 * rest + CPIXELS_EXP_5;
  series = series * rest + CPIXELS_EXP_4;
  series = series * rest + CPIXELS_EXP_3;
  series = series * rest + CPIXELS_EXP_2;
  series = series * rest + CPIXELS_EXP_1;
  series = series * rest + 1;
  const uint32_t bits = (uint32_t)(whole + 127) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return series * scale;
}

/// Returns x^exponent for x >= 0, accurate to a few millionths.
static inline float power(float x, float exponent) {
  return x < CPIXELS_SMALLEST_BASE ? 0 : power_of_two(exponent * binary_logarithm(x));
}

static inline float exposed(float x, float gain) {
  const float curved = power((x + CPIXELS_SRGB_OFFSET) * (1 / (1 + CPIXELS_SRGB_OFFSET)), 2.4f);
  const float light = (x > CPIXELS_SRGB_DECODE_KNEE ? curved : x * (1 / CPIXELS_SRGB_SLOPE)) * gain;
  const float encoded = power(light, 1 / 2.4f) * (1 + CPIXELS_SRGB_OFFSET) - CPIXELS_SRGB_OFFSET;
  return light > CPIXELS_SRGB_ENCODE_KNEE ? encoded : light * CPIXELS_SRGB_SLOPE;
}

static void step_matrix(const float *m, size_t count, float *red, float *green, float *blue) {
  for (size_t i = 0; i < count; i++) {
    const float r = red[i];
    const float g = green[i];
    const float b = blue[i];
    red[i] = clamped(m[0] * r + m[1] * g + m[2] * b + m[3]);
    green[i] = clamped(m[4] * r + m[5] * g + m[6] * b + m[7]);
    blue[i] = clamped(m[8] * r + m[9] * g + m[10] * b + m[11]);
  }
}

static void step_threshold(const float *n, size_t count, float *red, float *green, float *blue) {
  for (size_t i = 0; i < count; i++) {
    const float sum = n[0] * red[i] + n[1] * green[i] + n[2] * blue[i];
    const float white = sum >= n[3] - CPIXELS_THRESHOLD_SLACK ? n[4] : 0;
    red[i] = clamped(red[i] - n[4] * red[i] + white);
    green[i] = clamped(green[i] - n[4] * green[i] + white);
    blue[i] = clamped(blue[i] - n[4] * blue[i] + white);
  }
}

static void step_vignette(
    const float *n, const cpixels_color_place *place, size_t count, float *red, float *green, float *blue) {
  // Twice the distance from the center in pixels is an integer, so both halves are exactly symmetric.
  const float across = 1 / (float)place->width;
  const float down = (float)(2 * (int32_t)place->y + 1 - (int32_t)place->height) * (1 / (float)place->height);
  const float down_square = down * down;
  const float rise = 1 / n[1];
  const int32_t first = 2 * (int32_t)place->x + 1 - (int32_t)place->width;
  for (size_t i = 0; i < count; i++) {
    const float right = (float)(first + 2 * (int32_t)i) * across;
    const float distance = sqrtf((right * right + down_square) * 0.5f);
    const float t = clamped((distance - n[0]) * rise);
    const float keep = 1 - n[2] * (t * t * (3 - 2 * t));
    red[i] *= keep;
    green[i] *= keep;
    blue[i] *= keep;
  }
}

static void step(
    const cpixels_color_step *step, const cpixels_color_place *place, size_t pixel_count, cpixels_color_block *block) {
  const float *n = step->numbers;
  float *red = block->planes[0];
  float *green = block->planes[1];
  float *blue = block->planes[2];
  switch (step->kind) {
  case CPIXELS_COLOR_MATRIX:
    step_matrix(n, pixel_count, red, green, blue);
    return;
  case CPIXELS_COLOR_THRESHOLD:
    step_threshold(n, pixel_count, red, green, blue);
    return;
  case CPIXELS_COLOR_VIGNETTE:
    step_vignette(n, place, pixel_count, red, green, blue);
    return;
  default:
    break;
  }
  for (uint32_t c = 0; c < 3; c++) {
    float *plane = block->planes[c];
    for (size_t i = 0; i < pixel_count; i++) {
      const float x = plane[i];
      switch (step->kind) {
      case CPIXELS_COLOR_LINEAR:
        plane[i] = clamped(n[0] * x + n[1]);
        break;
      case CPIXELS_COLOR_POWER:
        plane[i] = clamped(x + n[3] * (n[1] * power(x, n[0]) + n[2] - x));
        break;
      default:
        plane[i] = clamped(x + n[1] * (exposed(x, n[0]) - x));
      }
    }
  }
}

// MARK: Area

static void widen(const uint8_t *samples, size_t sample_count, int16_t *wide) {
  for (size_t i = 0; i < sample_count; i++) {
    wide[i] = (int16_t)(samples[i] << CPIXELS_AREA_BITS);
  }
}

static void premultiply(const uint8_t *rgba, size_t pixel_count, int16_t *wide) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, wide += 4) {
    const int32_t alpha = rgba[3];
    wide[0] = (int16_t)((rgba[0] * alpha + 2) >> 2);
    wide[1] = (int16_t)((rgba[1] * alpha + 2) >> 2);
    wide[2] = (int16_t)((rgba[2] * alpha + 2) >> 2);
    wide[3] = (int16_t)((255 * alpha + 2) >> 2);
  }
}

static void accumulate(const int16_t *wide, size_t sample_count, uint32_t *sums) {
  for (size_t i = 0; i < sample_count; i++) {
    sums[i] += (uint32_t)wide[i];
  }
}

static void convolve(const cpixels_taps *taps, size_t sample_count, int16_t *wide) {
  for (size_t x = 0; x < sample_count; x += CPIXELS_AREA_MULTIPLE) { // the compiler vectorizes the inner loops
    int32_t sums[CPIXELS_AREA_MULTIPLE];
    for (size_t i = 0; i < CPIXELS_AREA_MULTIPLE; i++) {
      sums[i] = 1 << (taps->bits - 1);
    }
    for (uint32_t t = 0; t < taps->count; t++) {
      const int16_t *before = taps->before[t] + x;
      const int16_t *after = taps->after[t] + x;
      const int32_t weight = taps->weights[t];
      for (size_t i = 0; i < CPIXELS_AREA_MULTIPLE; i++) {
        sums[i] += weight * (before[i] + after[i]);
      }
    }
    for (size_t i = 0; i < CPIXELS_AREA_MULTIPLE; i++) {
      wide[x + i] = (int16_t)(sums[i] >> taps->bits);
    }
  }
}

/// `source` is 8-bit, `filtered` is Q6.
static inline uint8_t blended(int32_t source, int32_t filtered, int32_t gain, int32_t threshold) {
  int32_t difference = source * (1 << CPIXELS_AREA_BITS) - filtered;
  if (difference <= threshold && difference >= -threshold) {
    difference = 0;
  }
  const int32_t bits = CPIXELS_AREA_BITS + CPIXELS_GAIN_BITS;
  const int32_t sum = (source << bits) + gain * difference + (1 << (bits - 1));
  return (uint8_t)limited(sum >> bits, 0, 255);
}

static void blend(
    const uint8_t *source, const int16_t *wide, size_t sample_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  for (size_t i = 0; i < sample_count; i++) {
    destination[i] = blended(source[i], wide[i], gain, threshold);
  }
}

static void blend_over_alpha(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  for (size_t i = 0; i < 4 * pixel_count; i += 4) {
    const float alpha = wide[i + 3];
    for (size_t c = i; c < i + 3; c++) {
      // Where all surrounding pixels are transparent, there is no color to compare with.
      const float color = (float)wide[c] * (float)CPIXELS_AREA_WHITE / (alpha < 1 ? 1 : alpha) + 0.5f;
      const int32_t straight = limited((int32_t)color, 0, CPIXELS_AREA_WHITE);
      const int32_t filtered = alpha < 1 ? rgba[c] << CPIXELS_AREA_BITS : straight;
      destination[c] = blended(rgba[c], filtered, gain, threshold);
    }
    destination[i + 3] = rgba[i + 3];
  }
}

static void blend_premultiplied(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, uint16_t *premultiplied) {
  for (size_t i = 0; i < 4 * pixel_count; i += 4) {
    int16_t source[4];
    premultiply(rgba + i, 1, source);
    for (size_t c = 0; c < 4; c++) {
      const int32_t half = 1 << (CPIXELS_GAIN_BITS - 1);
      const int32_t change = (gain * (source[c] - wide[i + c]) + half) >> CPIXELS_GAIN_BITS;
      premultiplied[i + c] = (uint16_t)(limited(source[c] + change, 0, 16256) << 2);
    }
  }
}

const cpixels_filter_kernels cpixels_filter_scalar = CPIXELS_FILTER_KERNELS;

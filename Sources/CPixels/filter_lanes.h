// The steps of a color program over vectors of floats, written once for all instruction sets. The including file
// defines LANES (the number of floats in a vector), TARGET (a function attribute) and clamp_lanes. All
// versions perform the same operations in the same order, so that every instruction set produces the same samples.
// Fusing a multiplication and an addition into one rounding would break this.

#include "filter_kernels.h"
#include "lanes.h"

#include <string.h>

#pragma STDC FP_CONTRACT OFF

INLINE lanes clamp_lanes(lanes x);

INLINE lanes all_lanes(float x) {
  return x - (lanes){0};
}

INLINE lanes select_lanes(whole_lanes mask, lanes x, lanes otherwise) {
  return (lanes)((mask & (whole_lanes)x) | (~mask & (whole_lanes)otherwise));
}

INLINE lanes binary_logarithm(lanes x) {
  // Chosen so that the remaining factor of x is between the square roots of 1/2 and 2, where the series is short.
  const whole_lanes exponent = ((whole_lanes)x - 0x3F3504F3) >> 23;
  const lanes rest = (lanes)((whole_lanes)x - (exponent << 23));
  const lanes t = (rest - 1) / (rest + 1);
  const lanes square = t * t;
  lanes series = CPIXELS_LOG_9 * square + CPIXELS_LOG_7;
  series = series * square + CPIXELS_LOG_5;
  series = series * square + CPIXELS_LOG_3;
  series = series * square + CPIXELS_LOG_1;
  return __builtin_convertvector(exponent, lanes) + t * series;
}

INLINE lanes power_of_two(lanes x) {
  const lanes high = select_lanes(x > 125, all_lanes(125), x);
  const lanes limit = select_lanes(x < -125, all_lanes(-125), high);
  const lanes half = select_lanes(limit < 0, all_lanes(-0.5f), all_lanes(0.5f));
  const whole_lanes whole = __builtin_convertvector(limit + half, whole_lanes);
  const lanes rest = limit - __builtin_convertvector(whole, lanes);
  lanes series = CPIXELS_EXP_6 * rest + CPIXELS_EXP_5;
  series = series * rest + CPIXELS_EXP_4;
  series = series * rest + CPIXELS_EXP_3;
  series = series * rest + CPIXELS_EXP_2;
  series = series * rest + CPIXELS_EXP_1;
  series = series * rest + 1;
  return series * (lanes)((whole + 127) << 23);
}

/// Returns x^exponent for x >= 0, accurate to a few millionths.
INLINE lanes power(lanes x, float exponent) {
  const lanes result = power_of_two(exponent * binary_logarithm(x));
  return select_lanes(x < CPIXELS_SMALLEST_BASE, (lanes){0}, result);
}

INLINE lanes exposed(lanes x, float gain) {
  const lanes curved = power((x + CPIXELS_SRGB_OFFSET) * (1 / (1 + CPIXELS_SRGB_OFFSET)), 2.4f);
  const lanes light = select_lanes(x > CPIXELS_SRGB_DECODE_KNEE, curved, x * (1 / CPIXELS_SRGB_SLOPE)) * gain;
  const lanes encoded = power(light, 1 / 2.4f) * (1 + CPIXELS_SRGB_OFFSET) - CPIXELS_SRGB_OFFSET;
  return select_lanes(light > CPIXELS_SRGB_ENCODE_KNEE, encoded, light * CPIXELS_SRGB_SLOPE);
}

TARGET static void step_matrix(const float *m, size_t count, float *red, float *green, float *blue) {
  for (size_t i = 0; i < count; i += LANES) {
    const lanes r = load_lanes(red + i);
    const lanes g = load_lanes(green + i);
    const lanes b = load_lanes(blue + i);
    store_lanes(red + i, clamp_lanes(m[0] * r + m[1] * g + m[2] * b + m[3]));
    store_lanes(green + i, clamp_lanes(m[4] * r + m[5] * g + m[6] * b + m[7]));
    store_lanes(blue + i, clamp_lanes(m[8] * r + m[9] * g + m[10] * b + m[11]));
  }
}

TARGET static void step_threshold(const float *n, size_t count, float *red, float *green, float *blue) {
  for (size_t i = 0; i < count; i += LANES) {
    const lanes r = load_lanes(red + i);
    const lanes g = load_lanes(green + i);
    const lanes b = load_lanes(blue + i);
    const lanes sum = n[0] * r + n[1] * g + n[2] * b;
    const lanes white = select_lanes(sum >= n[3] - CPIXELS_THRESHOLD_SLACK, all_lanes(n[4]), (lanes){0});
    store_lanes(red + i, clamp_lanes(r - n[4] * r + white));
    store_lanes(green + i, clamp_lanes(g - n[4] * g + white));
    store_lanes(blue + i, clamp_lanes(b - n[4] * b + white));
  }
}

TARGET static void step_vignette(
    const float *n, const cpixels_color_place *place, size_t count, float *red, float *green, float *blue) {
  // Twice the distance from the center in pixels is an integer, so both halves are exactly symmetric.
  const float across = 1 / (float)place->width;
  const float down = (float)(2 * (int32_t)place->y + 1 - (int32_t)place->height) * (1 / (float)place->height);
  const float down_square = down * down;
  const float rise = 1 / n[1];
  const int32_t first = 2 * (int32_t)place->x + 1 - (int32_t)place->width;
  whole_lanes odd;
  for (int32_t i = 0; i < LANES; i++) {
    odd[i] = first + 2 * i;
  }
  for (size_t i = 0; i < count; i += LANES, odd += 2 * LANES) {
    const lanes right = __builtin_convertvector(odd, lanes) * across;
    const lanes distance = __builtin_elementwise_sqrt((right * right + down_square) * 0.5f);
    const lanes t = clamp_lanes((distance - n[0]) * rise);
    const lanes keep = 1 - n[2] * (t * t * (3 - 2 * t));
    store_lanes(red + i, load_lanes(red + i) * keep);
    store_lanes(green + i, load_lanes(green + i) * keep);
    store_lanes(blue + i, load_lanes(blue + i) * keep);
  }
}

TARGET static void step_linear(const float *n, size_t count, float *plane) {
  for (size_t i = 0; i < count; i += LANES) {
    store_lanes(plane + i, clamp_lanes(n[0] * load_lanes(plane + i) + n[1]));
  }
}

TARGET static void step_power(const float *n, size_t count, float *plane) {
  for (size_t i = 0; i < count; i += LANES) {
    const lanes x = load_lanes(plane + i);
    store_lanes(plane + i, clamp_lanes(x + n[3] * (n[1] * power(x, n[0]) + n[2] - x)));
  }
}

TARGET static void step_exposure(const float *n, size_t count, float *plane) {
  for (size_t i = 0; i < count; i += LANES) {
    const lanes x = load_lanes(plane + i);
    store_lanes(plane + i, clamp_lanes(x + n[1] * (exposed(x, n[0]) - x)));
  }
}

TARGET static void step(
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
    switch (step->kind) {
    case CPIXELS_COLOR_LINEAR:
      step_linear(n, pixel_count, block->planes[c]);
      break;
    case CPIXELS_COLOR_POWER:
      step_power(n, pixel_count, block->planes[c]);
      break;
    default:
      step_exposure(n, pixel_count, block->planes[c]);
    }
  }
}

/// Clears the part of the block after the last pixel that the steps process, so that they never read uninitialized
/// values.
INLINE void clear_rest(size_t pixel_count, cpixels_color_block *block) {
  if (pixel_count < CPIXELS_COLOR_BLOCK) {
    const size_t rest = CPIXELS_COLOR_BLOCK - pixel_count;
    const size_t count = rest < LANES ? rest : LANES;
    for (uint32_t c = 0; c < 3; c++) {
      memset(block->levels[c] + pixel_count, 0, count);
    }
  }
}

// The filter kernels for any processor. The steps of color programs are those of filter_lanes.h, which tests compare
// with formulas; the others are plain C, and the oracle of filter_area_lanes.h.

#define TARGET
#define LANES 4

#include "filter_lanes.h"

INLINE lanes clamp_lanes(lanes x) {
  const lanes positive = select_lanes(x > 0, x, (lanes){0});
  return select_lanes(positive < 1, positive, all_lanes(1));
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
  clear_rest(pixel_count, block);
  for (uint32_t c = 0; c < 3; c++) {
    const uint8_t *levels = block->levels[c];
    float *plane = block->planes[c];
    for (size_t i = 0; i < pixel_count; i += LANES) {
      for (size_t lane = i; lane < i + LANES; lane++) {
        plane[lane] = table != NULL ? table[levels[lane]] : (float)levels[lane] * (1 / 255.0f);
      }
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

// Conversion of signals to linear light and back, by the curve of sRGB.

#include "kernels.h"

#pragma STDC FP_CONTRACT OFF

enum { WHITE = 65535 };

/// The inverse of cpixels_light_of.
static double signal_of(double light) {
  return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

void cpixels_light_fill(bool is_16bit, cpixels_light *light) {
  for (int i = 0; i < 256; i++) {
    light->levels[i] = (float)floor(WHITE * cpixels_light_of(i / 255.0) + 0.5);
  }
  for (int i = 0; i <= CPIXELS_LIGHT_STEPS + 1; i++) {
    const double place = i <= CPIXELS_LIGHT_STEPS ? i / (double)CPIXELS_LIGHT_STEPS : 1;
    light->light[i] = is_16bit ? (float)(WHITE * cpixels_light_of(place)) : 0;
    light->signals[i] = (float)signal_of(place);
  }
}

/// Returns the value of a table at `place`, in steps; 0 to CPIXELS_LIGHT_STEPS.
static inline float value_at(const float *table, float place) {
  const int step = (int)place;
  return table[step] + (table[step + 1] - table[step]) * (place - (float)step);
}

// MARK: To light

static inline float light_of_u16(const cpixels_light *light, uint16_t signal) {
  return value_at(light->light, (float)signal * ((float)CPIXELS_LIGHT_STEPS / WHITE));
}

static void linearize_u8(
    const cpixels_light *light, cpixels_light_pixels pixels, const uint8_t *row, size_t pixel_count, float *lanes) {
  if (!pixels.has_alpha) {
    for (size_t i = 0; i < pixel_count * pixels.channels; i++) {
      lanes[i] = light->levels[row[i]];
    }
    return;
  }
  for (size_t i = 0; i < pixel_count; i++, row += 4, lanes += 4) {
    const float alpha = (float)row[3] * (1 / 255.0f);
    lanes[0] = light->levels[row[0]] * alpha;
    lanes[1] = light->levels[row[1]] * alpha;
    lanes[2] = light->levels[row[2]] * alpha;
    lanes[3] = alpha;
  }
}

static void linearize_u16(
    const cpixels_light *light, cpixels_light_pixels pixels, const uint16_t *row, size_t pixel_count, float *lanes) {
  const uint32_t lane_count = pixels.channels == 1 ? 1 : 4;
  const uint32_t color_count = pixels.has_alpha ? 3 : pixels.channels;
  for (size_t i = 0; i < pixel_count; i++, row += pixels.channels, lanes += lane_count) {
    const float alpha = pixels.has_alpha ? (float)row[3] * (1.0f / WHITE) : 1;
    for (uint32_t c = 0; c < color_count; c++) {
      lanes[c] = light_of_u16(light, row[c]) * alpha;
    }
    if (pixels.has_alpha) {
      lanes[3] = alpha;
    }
  }
}

void cpixels_linearize(
    const cpixels_light *light, const cpixels_resize_kernels *kernels, cpixels_light_pixels pixels, const void *row,
    size_t pixel_count, float *lanes) {
  if (pixels.is_16bit) {
    linearize_u16(light, pixels, row, pixel_count, lanes);
  } else if (pixels.channels == 3) {
    kernels->linearize_rgb8(light->levels, row, pixel_count, lanes);
  } else {
    linearize_u8(light, pixels, row, pixel_count, lanes);
  }
}

// MARK: From light

/// Returns `value` limited to 0 to `limit`.
static inline float limited(float value, float limit) {
  return value > 0 ? value < limit ? value : limit : 0;
}

static inline float signal_at(const cpixels_light *light, float value) {
  return value_at(light->signals, limited(value, WHITE) * ((float)CPIXELS_LIGHT_STEPS / WHITE));
}

CPIXELS_INLINE void put(bool is_16bit, void *row, size_t at, float value) {
  if (is_16bit) {
    ((uint16_t *)row)[at] = (uint16_t)(value * WHITE + 0.5f);
  } else {
    ((uint8_t *)row)[at] = (uint8_t)(value * 255 + 0.5f);
  }
}

CPIXELS_INLINE void delinearize(
    const cpixels_light *light, bool is_16bit, uint32_t channels, bool has_alpha, const float *lanes,
    size_t pixel_count, void *row) {
  const uint32_t lane_count = channels == 1 ? 1 : 4;
  const uint32_t color_count = has_alpha ? 3 : channels;
  const float minimum = is_16bit ? 0.5f / WHITE : 0.5f / 255; // the lowest alpha that does not round to 0
  for (size_t i = 0; i < pixel_count; i++, lanes += lane_count) {
    float factor = 1;
    if (has_alpha) {
      const float alpha = limited(lanes[3], 1);
      factor = alpha < minimum ? 0 : 1 / alpha;
      put(is_16bit, row, channels * i + 3, alpha);
    }
    for (uint32_t c = 0; c < color_count; c++) {
      put(is_16bit, row, channels * i + c, signal_at(light, lanes[c] * factor));
    }
  }
}

void cpixels_delinearize(
    const cpixels_light *light, cpixels_light_pixels pixels, const float *lanes, size_t pixel_count, void *row) {
  if (pixels.is_16bit) {
    delinearize(light, true, pixels.channels, pixels.has_alpha, lanes, pixel_count, row);
  } else if (pixels.channels == 3) {
    delinearize(light, false, 3, false, lanes, pixel_count, row);
  } else {
    delinearize(light, false, pixels.channels, pixels.has_alpha, lanes, pixel_count, row);
  }
}

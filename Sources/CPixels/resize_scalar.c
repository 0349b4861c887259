// The plain kernels: what the vector ones must agree with, bit for bit where the arithmetic is in integers.

#include "kernels.h"

static int32_t clamp(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

static void horizontal_u8(const cpixels_axis *axis, uint8_t channels, const uint8_t *source, int16_t *destination) {
  const int32_t rounding = 1 << (CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS - 1);
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const uint8_t *samples = source + (size_t)axis->first[d] * channels;
    const int16_t *weights = axis->fixed_weights + (size_t)d * axis->tap_stride;
    for (uint32_t c = 0; c < channels; c++) {
      int32_t sum = rounding;
      for (uint32_t t = 0; t < axis->tap_count; t++) {
        sum += samples[t * channels + c] * weights[t];
      }
      *destination++ = (int16_t)clamp(sum >> (CPIXELS_WEIGHT_BITS - CPIXELS_INTERMEDIATE_BITS), INT16_MIN, INT16_MAX);
    }
  }
}

static void vertical_u8(
    const int16_t *const *rows, const int16_t *weights, uint32_t tap_count, size_t sample_count,
    uint8_t *destination) {
  const int32_t bits = CPIXELS_WEIGHT_BITS + CPIXELS_INTERMEDIATE_BITS;
  for (size_t x = 0; x < sample_count; x++) {
    int32_t sum = 1 << (bits - 1);
    for (uint32_t t = 0; t < tap_count; t++) {
      sum += rows[t][x] * weights[t];
    }
    destination[x] = (uint8_t)clamp(sum >> bits, 0, 255);
  }
}

static void horizontal_u16(const cpixels_axis *axis, uint8_t channels, const uint16_t *source, float *destination) {
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    const uint16_t *samples = source + (size_t)axis->first[d] * channels;
    const float *weights = axis->float_weights + (size_t)d * axis->tap_stride;
    for (uint32_t c = 0; c < channels; c++) {
      float sum = 0;
      for (uint32_t t = 0; t < axis->tap_count; t++) {
        sum += (float)samples[t * channels + c] * weights[t];
      }
      *destination++ = sum;
    }
  }
}

static void vertical_u16(
    const float *const *rows, const float *weights, uint32_t tap_count, size_t sample_count,
    uint16_t *destination) {
  for (size_t x = 0; x < sample_count; x++) {
    float sum = 0;
    for (uint32_t t = 0; t < tap_count; t++) {
      sum += rows[t][x] * weights[t];
    }
    sum += 0.5f;
    destination[x] = sum <= 0 ? 0 : sum >= 65535 ? 65535 : (uint16_t)sum;
  }
}

const cpixels_resize_kernels cpixels_resize_scalar = {
    .horizontal_u8 = horizontal_u8,
    .vertical_u8 = vertical_u8,
    .horizontal_u16 = horizontal_u16,
    .vertical_u16 = vertical_u16,
};

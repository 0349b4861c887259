// Overlays for NEON, whose loads and stores separate the channels.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET

#include "overlay_lanes.h"

INLINE words widen(uint8x16_t bytes) {
  return __builtin_convertvector(bytes, words);
}

INLINE void over_rgb(const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  for (; i + 16 <= pixel_count; i += 16) {
    const uint8x16x4_t over = vld4q_u8(rgba + 4 * i);
    uint8x16x3_t pixels = vld3q_u8(row + 3 * i);
    for (uint32_t c = 0; c < 3; c++) {
      const words drawn = drawn_over(widen(over.val[c]), widen(pixels.val[c]), widen(over.val[3]));
      pixels.val[c] = __builtin_convertvector(drawn, uint8x16_t);
    }
    vst3q_u8(row + 3 * i, pixels);
  }
  cpixels_overlay_scalar(CPIXELS_BLEND_OVER, rgba + 4 * i, row + 3 * i, 3, pixel_count - i);
}

INLINE whole_lanes lanes_of(uint8x8_t bytes) {
  return __builtin_convertvector(bytes, whole_lanes);
}

INLINE uint8x8_t bytes_of(whole_lanes samples) {
  return __builtin_convertvector(samples, uint8x8_t);
}

INLINE void blend_rgb(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const uint8x8x4_t over = vld4_u8(rgba + 4 * i);
    uint8x8x3_t pixels = vld3_u8(row + 3 * i);
    const whole_lanes alpha = lanes_of(over.val[3]);
    for (uint32_t c = 0; c < 3; c++) {
      pixels.val[c] = bytes_of(blended_with_opaque(blend, lanes_of(over.val[c]), lanes_of(pixels.val[c]), alpha));
    }
    vst3_u8(row + 3 * i, pixels);
  }
  cpixels_overlay_scalar(blend, rgba + 4 * i, row + 3 * i, 3, pixel_count - i);
}

INLINE void blend_rgba(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const uint8x8x4_t over = vld4_u8(rgba + 4 * i);
    uint8x8x4_t pixels = vld4_u8(row + 4 * i);
    const whole_lanes over_alpha = lanes_of(over.val[3]);
    const whole_lanes under_alpha = lanes_of(pixels.val[3]);
    for (uint32_t c = 0; c < 3; c++) {
      const whole_lanes under = lanes_of(pixels.val[c]);
      pixels.val[c] = bytes_of(blended(blend, lanes_of(over.val[c]), under, over_alpha, under_alpha));
    }
    pixels.val[3] = bytes_of(blended_alpha(over_alpha, under_alpha));
    vst4_u8(row + 4 * i, pixels);
  }
  cpixels_overlay_scalar(blend, rgba + 4 * i, row + 4 * i, 4, pixel_count - i);
}

void cpixels_overlay_neon(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
  overlay(blend, rgba, row, channels, pixel_count);
}

#endif

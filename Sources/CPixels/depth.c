// 16-bit samples, where 65535 represents 1: conversion to 8 bits, premultiplying and unpremultiplying. All arithmetic
// is exact integer arithmetic, and simple enough for the compiler to vectorize.

#include "kernels.h"

/// The value of 1 in premultiplied samples, and 65535 / 255.
enum { UNIT = 65025, STEP = 257 };

void cpixels_convert_to_8bit(const uint16_t *source, uint8_t *destination, size_t sample_count) {
  for (size_t i = 0; i < sample_count; i++) {
    const uint32_t v = source[i];
    destination[i] = (uint8_t)((v - ((v + 128) >> 8) + 128) >> 8); // equals v / 257 rounded, for all 65536 values
  }
}

void cpixels_gray_to_rgb_16bit(const uint16_t *gray, uint16_t *rgb, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgb += 3) {
    rgb[0] = rgb[1] = rgb[2] = gray[i];
  }
}

void cpixels_premultiply_16bit(const uint16_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  const uint32_t square = STEP * STEP; // 65535 * 65535 / UNIT
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint32_t alpha = rgba[3];
    for (uint32_t c = 0; c < 3; c++) {
      premultiplied[c] = (uint16_t)((rgba[c] * alpha + square / 2) / square);
    }
    premultiplied[3] = (uint16_t)((alpha * 255 + STEP / 2) / STEP);
  }
}

void cpixels_unpremultiply_16bit(const uint16_t *premultiplied, uint16_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint32_t alpha = premultiplied[3] < UNIT ? premultiplied[3] : UNIT;
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t color = premultiplied[c] < alpha ? premultiplied[c] : alpha;
      rgba[c] = alpha == 0 ? 0 : (uint16_t)((color * 65535 + alpha / 2) / alpha);
    }
    rgba[3] = (uint16_t)((alpha * STEP + 127) / 255);
  }
}

// Hiding parts of rows. Scalar, as few pixels of an image are hidden.

#include "cpixels.h"

#pragma STDC FP_CONTRACT OFF

static uint16_t sample_at(const uint8_t *row, cpixels_pixel_kind kind, size_t index) {
  return kind.is_16bit ? ((const uint16_t *)(const void *)row)[index] : row[index];
}

static void set_sample(uint8_t *row, cpixels_pixel_kind kind, size_t index, uint16_t value) {
  if (kind.is_16bit) {
    ((uint16_t *)(void *)row)[index] = value;
  } else {
    row[index] = (uint8_t)value;
  }
}

void cpixels_block_add(
    const uint8_t *row, cpixels_pixel_kind kind, size_t first, size_t count, cpixels_block_sums *sums) {
  const uint32_t colors = kind.channels - (kind.has_alpha ? 1u : 0u);
  for (size_t x = first; x < first + count; x++) {
    const size_t start = x * kind.channels;
    const uint64_t weight = kind.has_alpha ? sample_at(row, kind, start + colors) : 1;
    for (uint32_t c = 0; c < colors; c++) {
      sums->channels[c] += sample_at(row, kind, start + c) * weight;
    }
    sums->weight += weight;
  }
  sums->pixels += count;
}

void cpixels_block_mean(const cpixels_block_sums *sums, cpixels_pixel_kind kind, uint16_t mean[4]) {
  const uint32_t colors = kind.channels - (kind.has_alpha ? 1u : 0u);
  for (uint32_t c = 0; c < 4; c++) {
    const uint64_t sum = c < colors ? sums->channels[c] : c == colors && kind.has_alpha ? sums->weight : 0;
    const uint64_t weight = c < colors ? sums->weight : sums->pixels;
    mean[c] = (uint16_t)(weight > 0 ? (sum + weight / 2) / weight : 0);
  }
}

void cpixels_row_fill(uint8_t *row, cpixels_pixel_kind kind, size_t first, size_t count, const uint16_t color[4]) {
  for (size_t x = first; x < first + count; x++) {
    for (uint32_t c = 0; c < kind.channels; c++) {
      set_sample(row, kind, x * kind.channels + c, color[c]);
    }
  }
}

void cpixels_row_blend(
    uint8_t *row, cpixels_pixel_kind kind, size_t first, size_t count, const uint16_t *colors, size_t color_count,
    double start, double width) {
  for (size_t x = first; x < first + count; x++) {
    // The place between the centers of columns.
    double place = ((double)x + 0.5 - start) / width - 0.5;
    const double last = (double)(color_count - 1);
    place = place < 0 ? 0 : place > last ? last : place;
    const size_t left = (size_t)place;
    const size_t right = left + 1 < color_count ? left + 1 : left;
    const double share = place - (double)left;
    for (uint32_t c = 0; c < kind.channels; c++) {
      const double from = colors[4 * left + c];
      const double to = colors[4 * right + c];
      set_sample(row, kind, x * kind.channels + c, (uint16_t)(from + (to - from) * share + 0.5));
    }
  }
}

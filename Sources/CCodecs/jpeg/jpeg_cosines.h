// The constants of the reduced inverse transforms, and their functions. They are in a header so that every transform
// has them at compile time.

#pragma once

#include "jpeg_decoder.h"

/// 8192 * sqrt(2) * cos((2x + 1) u pi / 2N), and 8192 for u = 0, as [N][x][u] for the first (N + 1) / 2 samples. The
/// others mirror them.
static const int16_t jpeg_cosines[8][4][8] = {
    {{0}},
    {{0}},
    {
        {8192, 8192, 0, 0, 0, 0, 0, 0},
    },
    {
        {8192, 10033, 5793, 0, 0, 0, 0, 0},
        {8192, 0, -11585, 0, 0, 0, 0, 0},
    },
    {
        {8192, 10703, 8192, 4433, 0, 0, 0, 0},
        {8192, 4433, -8192, -10703, 0, 0, 0, 0},
    },
    {
        {8192, 11018, 9373, 6810, 3580, 0, 0, 0},
        {8192, 6810, -3580, -11018, -9373, 0, 0, 0},
        {8192, 0, -11585, 0, 11585, 0, 0, 0},
    },
    {
        {8192, 11190, 10033, 8192, 5793, 2998, 0, 0},
        {8192, 8192, 0, -8192, -11585, -8192, 0, 0},
        {8192, 2998, -10033, -8192, 5793, 11190, 0, 0},
    },
    {
        {8192, 11295, 10438, 9058, 7223, 5027, 2578, 0},
        {8192, 9058, 2578, -5027, -10438, -11295, -7223, 0},
        {8192, 5027, -7223, -11295, -2578, 9058, 10438, 0},
        {8192, 0, -11585, 0, 11585, 0, -11585, 0},
    },
};

/// Defines the transforms to 2 to 7 samples by the including file's transform_tile_n. `target` is a function attribute.
#define JPEG_IDCTS(target)                                                                                             \
  JPEG_IDCT(target, 2)                                                                                                 \
  JPEG_IDCT(target, 3)                                                                                                 \
  JPEG_IDCT(target, 4)                                                                                                 \
  JPEG_IDCT(target, 5)                                                                                                 \
  JPEG_IDCT(target, 6)                                                                                                 \
  JPEG_IDCT(target, 7)
#define JPEG_IDCT(target, n)                                                                                           \
  target static void idct_##n(                                                                                         \
      const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent) {                 \
    transform_tile_n(tile, quant, rows, row_stride, extent, n);                                                        \
  }

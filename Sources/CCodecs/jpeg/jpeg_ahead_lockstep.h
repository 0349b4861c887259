// What the files share that decode blocks in lockstep, which were found ahead, in the native JPEG decoder.

#pragma once

#include "jpeg_ahead.h"
#include "jpeg_blocks.h"

enum {
  JPEG_LOCKSTEP_MAX_N = 4, ///< The maximum N of N/8.
};

/// jpeg_decoder.limit by N.
static const uint8_t jpeg_lockstep_limits[JPEG_LOCKSTEP_MAX_N + 1] = {0, 1, 5, 13, 25};

/// Zigzag indices of the coefficients of a tile, by row and column.
static const uint8_t jpeg_lockstep_orders[JPEG_LOCKSTEP_MAX_N][JPEG_LOCKSTEP_MAX_N] = {
    {0, 1, 5, 6}, {2, 4, 7, 13}, {3, 8, 12, 17}, {9, 11, 18, 24}};

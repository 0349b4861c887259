// The nearest colors of a palette over vectors of eight colors, written once for all instruction sets. The including
// file defines TARGET, a function attribute. Private to the palettes.

#pragma once

#include "palette_private.h"

#define INLINE TARGET static inline __attribute__((always_inline))

typedef int16_t axes_lanes __attribute__((vector_size(4 * PALETTE_LANES)));
typedef int32_t wide_lanes __attribute__((vector_size(8 * PALETTE_LANES)));
typedef int32_t sum_lanes __attribute__((vector_size(4 * PALETTE_LANES)));
typedef uint32_t key_lanes __attribute__((vector_size(4 * PALETTE_LANES)));
typedef bool lane_flags __attribute__((ext_vector_type(PALETTE_LANES)));

/// A point for each color of a group.
typedef struct points {
  axes_lanes first, last; ///< Axes 0 and 1, and 2 and 3, in turn.
} points;

INLINE points spread(palette_point point) {
  int32_t pairs[2];
  memcpy(pairs, point.axes, sizeof pairs);
  return (points){(axes_lanes)((sum_lanes){0} + pairs[0]), (axes_lanes)((sum_lanes){0} + pairs[1])};
}

INLINE points load_group(const palette_group *group) {
  points colors;
  memcpy(&colors, group, sizeof colors);
  return colors;
}

/// Adds the squares of each pair of axes, which processors do in one instruction.
INLINE void add_squares(const axes_lanes *axes, sum_lanes *sums) {
  const wide_lanes wide = __builtin_convertvector(*axes, wide_lanes);
  const wide_lanes squares = wide * wide;
  *sums += __builtin_shufflevector(squares, squares, 0, 2, 4, 6, 8, 10, 12, 14) +
           __builtin_shufflevector(squares, squares, 1, 3, 5, 7, 9, 11, 13, 15);
}

INLINE void squared_distances(points a, points b, sum_lanes *sums) {
  const points differences = {a.first - b.first, a.last - b.last};
  *sums = (sum_lanes){0};
  add_squares(&differences.first, sums);
  add_squares(&differences.last, sums);
}

/// See ccodecs_palette_nearest_of.
INLINE uint32_t nearest_of(const palette_group *groups, uint32_t count, palette_point point) {
  const points wanted = spread(point);
  key_lanes minimum = (key_lanes){0} - 1;
  for (uint32_t g = 0; g < count; g++) {
    sum_lanes sums;
    key_lanes indices;
    memcpy(&indices, groups[g].indices, sizeof indices);
    squared_distances(wanted, load_group(groups + g), &sums);
    minimum = __builtin_elementwise_min(minimum, (key_lanes)sums << 8 | indices);
  }
  return __builtin_reduce_min(minimum);
}

INLINE uint32_t group_count_of(const palette_nearest *nearest) {
  return (nearest->count + PALETTE_LANES - 1) / PALETTE_LANES;
}

/// Returns the corners of bounds that are farthest from `best` in the direction of each color.
INLINE points corners(points low, points high, points best, points colors) {
  const axes_lanes first = colors.first > best.first, last = colors.last > best.last;
  return (points){(high.first & first) | (low.first & ~first), (high.last & last) | (low.last & ~last)};
}

/// See palette_kernels.
TARGET static uint32_t list(
    const palette_nearest *nearest, const palette_bounds *bounds, uint8_t kept[CCODECS_PALETTE_MAX_COLORS]) {
  palette_point lowest, highest, center;
  for (int k = 0; k < PALETTE_AXES; k++) {
    lowest.axes[k] = (int16_t)bounds->low[k];
    highest.axes[k] = (int16_t)bounds->high[k];
    center.axes[k] = (int16_t)((bounds->low[k] + bounds->high[k]) / 2);
  }
  const uint32_t group_count = group_count_of(nearest);
  const points low = spread(lowest), high = spread(highest);
  const points best = spread(nearest->points[nearest_of(nearest->groups, group_count, center) & 0xff]);
  uint32_t count = 0;
  for (uint32_t g = 0; g < group_count; g++) {
    const points colors = load_group(nearest->groups + g), corner = corners(low, high, best, colors);
    sum_lanes of_color, of_best;
    squared_distances(colors, corner, &of_color);
    squared_distances(best, corner, &of_best);
    const lane_flags flags = __builtin_convertvector(of_color <= of_best, lane_flags);
    uint8_t near;
    memcpy(&near, &flags, sizeof near);
    for (uint32_t left = near; left != 0; left &= left - 1) {
      const uint32_t index = g * PALETTE_LANES + (uint32_t)__builtin_ctz(left);
      kept[count] = (uint8_t)index;
      count += index < nearest->count ? 1 : 0;
    }
  }
  return count;
}

TARGET static void find_gaps(const palette_nearest *nearest, uint32_t gaps[CCODECS_PALETTE_MAX_COLORS]) {
  for (uint32_t i = 0; i < nearest->count; i++) {
    const points color = spread(nearest->points[i]);
    key_lanes minimum = (key_lanes){0} + (UINT32_MAX >> 8);
    for (uint32_t g = 0; g < group_count_of(nearest); g++) {
      sum_lanes sums;
      key_lanes indices;
      memcpy(&indices, nearest->groups[g].indices, sizeof indices);
      squared_distances(color, load_group(nearest->groups + g), &sums);
      minimum = __builtin_elementwise_min(minimum, (key_lanes)(sums | (indices == i)));
    }
    gaps[i] = __builtin_reduce_min(minimum);
  }
}

TARGET static void find(palette_nearest *nearest, const palette_point *points, uint32_t count, uint32_t *keys) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t cell = palette_list_of(nearest, palette_cell(points[i]));
    keys[i] = nearest_of(nearest->groups + (cell & 0xffff), cell >> 16, points[i]);
  }
}

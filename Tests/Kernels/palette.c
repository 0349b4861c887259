// Compares the nearest colors of a palette, and the lists of those that may be the nearest in a cell, with all of its
// distances. What palette_nearest.c has is also for NEON.

#include "check.h"
#include "palette/palette_private.h"

enum { POINTS = 500 };

/// Returns a number of some bits from `minimum`, mostly near the last one.
static int16_t next_axis(int minimum, int bits, int16_t last) {
  const int high = minimum + (1 << bits) - 1;
  const int value =
      next_random() % 2 == 0 ? minimum + (int)(next_random() % (1u << bits)) : last + (int)(next_random() % 9) - 4;
  return (int16_t)(value < minimum ? minimum : value > high ? high : value);
}

static palette_point next_point(palette_point last) {
  return (palette_point){{
      next_axis(PALETTE_MIN_0, PALETTE_BITS_0, last.axes[0]),
      next_axis(PALETTE_MIN_1, PALETTE_BITS_1, last.axes[1]),
      next_axis(PALETTE_MIN_2, PALETTE_BITS_2, last.axes[2]),
      next_axis(PALETTE_MIN_3, PALETTE_BITS_3, last.axes[3]),
  }};
}

static uint32_t nearest_of(const palette_point *colors, uint32_t count, palette_point point) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t distance = 0;
    for (int k = 0; k < PALETTE_AXES; k++) {
      const int64_t difference = point.axes[k] - colors[i].axes[k];
      distance += (uint64_t)(difference * difference);
    }
    least = distance << 8 < least - least % 256 ? distance << 8 | i : least;
  }
  return (uint32_t)least;
}

void check_palette(void) {
  static palette_nearest nearest;
  static palette_point colors[CCODECS_PALETTE_MAX_COLORS];
  const uint32_t count = 1 + next_random() % CCODECS_PALETTE_MAX_COLORS;
  palette_point last = {{0}};
  for (uint32_t i = 0; i < count; i++) {
    last = colors[i] = next_point(last);
  }
  ccodecs_palette_nearest_set(&nearest, colors, count);
  const uint32_t all = nearest.group_count;
  bool is_good = true, is_listed = true;
  for (uint32_t i = 0; i < POINTS; i++) {
    last = next_point(i % 3 == 0 ? colors[next_random() % count] : last);
    const uint32_t expected = nearest_of(colors, count, last);
    is_good = is_good && ccodecs_palette_nearest_of(nearest.groups, all, last) == expected;
    (void)palette_list_of(&nearest, palette_cell(last)); // the first time, all colors
    const uint32_t list = palette_list_of(&nearest, palette_cell(last));
    is_listed = is_listed && ccodecs_palette_nearest_of(nearest.groups + (list & 0xffff), list >> 16, last) == expected;
  }
  report("nearest colors", is_good);
  report("lists of near colors", is_listed);
}

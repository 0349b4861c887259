// The nearest color of a palette, by lists per cell of space.

#include "palette_private.h"

#include <cinstructions.h>

static const int minimums[PALETTE_AXES] = {PALETTE_MIN_0, PALETTE_MIN_1, PALETTE_MIN_2, PALETTE_MIN_3};
static const int shifts[PALETTE_AXES] = {
    PALETTE_BITS_0 - PALETTE_CELL_BITS, PALETTE_BITS_1 - PALETTE_CELL_BITS, PALETTE_BITS_2 - PALETTE_CELL_BITS,
    PALETTE_BITS_3 - PALETTE_CELL_BITS + 1};

/// Writes the groups of a list. Returns their number.
static uint32_t write_groups(palette_nearest *nearest, uint32_t first, const uint8_t *indices, uint32_t count) {
  const uint32_t group_count = (count + PALETTE_LANES - 1) / PALETTE_LANES;
  for (uint32_t i = 0; i < group_count * PALETTE_LANES; i++) {
    palette_group *group = nearest->groups + first + i / PALETTE_LANES;
    const uint8_t index = indices[i < count ? i : 0];
    const int16_t *axes = nearest->points[index].axes;
    memcpy(group->first[i % PALETTE_LANES], axes, sizeof group->first[0]);
    memcpy(group->last[i % PALETTE_LANES], axes + 2, sizeof group->last[0]);
    group->indices[i % PALETTE_LANES] = index;
  }
  return group_count;
}

void ccodecs_palette_nearest_set(palette_nearest *nearest, const palette_point *points, uint32_t count) {
  uint8_t all[CCODECS_PALETTE_MAX_COLORS];
  for (uint32_t i = 0; i < count; i++) {
    nearest->points[i] = points[i];
    all[i] = (uint8_t)i;
  }
  nearest->count = count;
  nearest->has_avx2 = false;
#if defined(__x86_64__)
  nearest->has_avx2 = cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2");
#endif
  memset(nearest->cells, 0, sizeof nearest->cells);
  nearest->group_count = write_groups(nearest, 0, all, count);
}

/// Returns whether every point of a cell is nearer to `best` than to `other`: the difference of the squared distances
/// is linear, so that it is largest in a corner.
static bool is_farther(const int16_t *other, const int16_t *best, const int low[4], const int high[4]) {
  int64_t sum = 0;
  for (int i = 0; i < PALETTE_AXES; i++) {
    const int slope = 2 * (best[i] - other[i]);
    sum += (int64_t)slope * (slope < 0 ? high[i] : low[i]);
    sum += other[i] * other[i] - best[i] * best[i];
  }
  return sum > 0;
}

uint32_t ccodecs_palette_nearest_make(palette_nearest *nearest, uint32_t cell) {
  const uint32_t mask = (1 << PALETTE_CELL_BITS) - 1;
  const uint32_t places[PALETTE_AXES] = {
      cell >> 2 * PALETTE_CELL_BITS & mask, cell >> PALETTE_CELL_BITS & mask, cell & mask,
      cell >> 3 * PALETTE_CELL_BITS};
  int low[PALETTE_AXES], high[PALETTE_AXES];
  palette_point center;
  for (int i = 0; i < PALETTE_AXES; i++) {
    low[i] = minimums[i] + (int)(places[i] << shifts[i]);
    high[i] = low[i] + (1 << shifts[i]) - 1;
    center.axes[i] = (int16_t)((low[i] + high[i]) / 2);
  }
  uint32_t best = 0;
  uint32_t least = UINT32_MAX;
  for (uint32_t i = 0; i < nearest->count; i++) {
    const uint32_t distance = palette_squared_distance(nearest->points[i], center);
    best = distance < least ? i : best;
    least = distance < least ? distance : least;
  }
  uint8_t kept[CCODECS_PALETTE_MAX_COLORS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < nearest->count; i++) {
    if (!is_farther(nearest->points[i].axes, nearest->points[best].axes, low, high)) {
      kept[count++] = (uint8_t)i;
    }
  }
  const uint32_t group_count = (count + PALETTE_LANES - 1) / PALETTE_LANES;
  uint32_t first = nearest->group_count;
  if (group_count > PALETTE_GROUPS - first) {
    nearest->cells[cell] = (nearest->count + PALETTE_LANES - 1) / PALETTE_LANES << 16;
  } else {
    write_groups(nearest, first, kept, count);
    nearest->group_count += group_count;
    nearest->cells[cell] = group_count << 16 | first;
  }
  return nearest->cells[cell];
}

uint32_t ccodecs_palette_nearest_of(const palette_group *groups, uint32_t count, palette_point point) {
  uint32_t least = UINT32_MAX;
  for (uint32_t g = 0; g < count; g++) {
    for (int i = 0; i < PALETTE_LANES; i++) {
      const int a = point.axes[0] - groups[g].first[i][0], b = point.axes[1] - groups[g].first[i][1];
      const int c = point.axes[2] - groups[g].last[i][0], d = point.axes[3] - groups[g].last[i][1];
      const uint32_t key = (uint32_t)(a * a + b * b + c * c + d * d) << 8 | groups[g].indices[i];
      least = key < least ? key : least;
    }
  }
  return least;
}

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

uint32_t ccodecs_palette_nearest_list(
    const palette_nearest *nearest, const palette_bounds *bounds, uint8_t kept[CCODECS_PALETTE_MAX_COLORS]) {
  palette_point center;
  for (int k = 0; k < PALETTE_AXES; k++) {
    center.axes[k] = (int16_t)((bounds->low[k] + bounds->high[k]) / 2);
  }
  const uint32_t group_count = (nearest->count + PALETTE_LANES - 1) / PALETTE_LANES;
  const int16_t *best = nearest->points[ccodecs_palette_nearest_of(nearest->groups, group_count, center) & 0xff].axes;
  uint32_t count = 0;
  for (uint32_t i = 0; i < nearest->count; i++) {
    int32_t sum = 0;
    for (int k = 0; k < PALETTE_AXES; k++) {
      const int32_t other = nearest->points[i].axes[k], corner = other > best[k] ? bounds->high[k] : bounds->low[k];
      sum += (other - corner) * (other - corner) - (best[k] - corner) * (best[k] - corner);
    }
    kept[count] = (uint8_t)i;
    count += sum <= 0 ? 1 : 0;
  }
  return count;
}

static uint32_t list(const palette_nearest *nearest, const palette_bounds *bounds, uint8_t *kept) {
#if defined(__x86_64__)
  if (nearest->has_avx2) {
    return ccodecs_palette_nearest_list_avx2(nearest, bounds, kept);
  }
#endif
  return ccodecs_palette_nearest_list(nearest, bounds, kept);
}

void ccodecs_palette_nearest_gaps(const palette_nearest *nearest, uint32_t gaps[CCODECS_PALETTE_MAX_COLORS]) {
#if defined(__x86_64__)
  if (nearest->has_avx2) {
    ccodecs_palette_nearest_gaps_avx2(nearest, gaps);
    return;
  }
#endif
  for (uint32_t i = 0; i < nearest->count; i++) {
    uint32_t gap = UINT32_MAX >> 8;
    for (uint32_t k = 0; k < nearest->count; k++) {
      uint32_t sum = 0;
      for (int axis = 0; axis < PALETTE_AXES; axis++) {
        const int32_t difference = nearest->points[k].axes[axis] - nearest->points[i].axes[axis];
        sum += (uint32_t)(difference * difference);
      }
      sum = k == i ? gap : sum;
      gap = sum < gap ? sum : gap;
    }
    gaps[i] = gap;
  }
}

uint32_t ccodecs_palette_nearest_make(palette_nearest *nearest, uint32_t cell) {
  const uint32_t all = (nearest->count + PALETTE_LANES - 1) / PALETTE_LANES << 16;
  if (nearest->cells[cell]++ == 0) {
    return all;
  }
  const uint32_t mask = (1 << PALETTE_CELL_BITS) - 1;
  const uint32_t places[PALETTE_AXES] = {
      cell >> 2 * PALETTE_CELL_BITS & mask, cell >> PALETTE_CELL_BITS & mask, cell & mask,
      cell >> 3 * PALETTE_CELL_BITS};
  palette_bounds bounds;
  for (int i = 0; i < PALETTE_AXES; i++) {
    bounds.low[i] = minimums[i] + (int)(places[i] << shifts[i]);
    bounds.high[i] = bounds.low[i] + (1 << shifts[i]) - 1;
  }
  uint8_t kept[CCODECS_PALETTE_MAX_COLORS];
  const uint32_t count = list(nearest, &bounds, kept);
  const uint32_t group_count = (count + PALETTE_LANES - 1) / PALETTE_LANES;
  uint32_t first = nearest->group_count;
  if (group_count > PALETTE_GROUPS - first) {
    nearest->cells[cell] = all;
  } else {
    write_groups(nearest, first, kept, count);
    nearest->group_count += group_count;
    nearest->cells[cell] = group_count << 16 | first;
  }
  return nearest->cells[cell];
}

uint32_t ccodecs_palette_nearest_of(const palette_group *groups, uint32_t count, palette_point point) {
  uint32_t minimum = UINT32_MAX;
  for (uint32_t g = 0; g < count; g++) {
    for (int i = 0; i < PALETTE_LANES; i++) {
      const int a = point.axes[0] - groups[g].first[i][0], b = point.axes[1] - groups[g].first[i][1];
      const int c = point.axes[2] - groups[g].last[i][0], d = point.axes[3] - groups[g].last[i][1];
      const uint32_t key = (uint32_t)(a * a + b * b + c * c + d * d) << 8 | groups[g].indices[i];
      minimum = key < minimum ? key : minimum;
    }
  }
  return minimum;
}

void ccodecs_palette_nearest_find(
    palette_nearest *nearest, const palette_point *points, uint32_t count, uint32_t *keys) {
#if defined(__x86_64__)
  if (nearest->has_avx2) {
    ccodecs_palette_nearest_find_avx2(nearest, points, count, keys);
    return;
  }
#endif
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t list = palette_list_of(nearest, palette_cell(points[i]));
    keys[i] = ccodecs_palette_nearest_of(nearest->groups + (list & 0xffff), list >> 16, points[i]);
  }
}

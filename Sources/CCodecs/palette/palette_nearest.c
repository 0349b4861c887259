// The nearest color of a palette, by lists per cell of space.

#define TARGET

#include "palette_nearest_lanes.h"

#include <cinstructions.h>

static const int minimums[PALETTE_AXES] = {PALETTE_MIN_0, PALETTE_MIN_1, PALETTE_MIN_2, PALETTE_MIN_3};
static const int shifts[PALETTE_AXES] = {
    PALETTE_BITS_0 - PALETTE_CELL_BITS, PALETTE_BITS_1 - PALETTE_CELL_BITS, PALETTE_BITS_2 - PALETTE_CELL_BITS,
    PALETTE_BITS_3 - PALETTE_CELL_BITS + 1};

static const palette_kernels base_kernels = {list, find_gaps, find, ccodecs_palette_diffuse};

static const palette_kernels *kernels(void) {
#if defined(__x86_64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2")) {
    return &ccodecs_palette_kernels_avx2;
  }
#endif
  return &base_kernels;
}

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
  nearest->kernels = kernels();
  memset(nearest->cells, 0, sizeof nearest->cells);
  nearest->group_count = write_groups(nearest, 0, all, count);
}

void ccodecs_palette_nearest_gaps(const palette_nearest *nearest, uint32_t gaps[CCODECS_PALETTE_MAX_COLORS]) {
  nearest->kernels->find_gaps(nearest, gaps);
}

uint32_t ccodecs_palette_nearest_make(palette_nearest *nearest, uint32_t cell) {
  const uint32_t all = group_count_of(nearest) << 16;
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
  const uint32_t count = nearest->kernels->list(nearest, &bounds, kept);
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
  return nearest_of(groups, count, point);
}

void ccodecs_palette_nearest_find(
    palette_nearest *nearest, const palette_point *points, uint32_t count, uint32_t *keys) {
  nearest->kernels->find(nearest, points, count, keys);
}

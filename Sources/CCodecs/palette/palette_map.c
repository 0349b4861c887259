// Maps pixels to palette indices, and diffuses the errors in the space of palette_space.c.
//
// Errors are diffused less where neighbors differ, since errors are not seen there and only make files larger. A pixel
// takes the index of the pixel before it if that is nearly as good, which makes files smaller.
//
// Source: R. Floyd, L. Steinberg, An Adaptive Algorithm for Spatial Gray Scale (1976); every other row from right to
// left.

#include "palette_private.h"

#include <stddef.h>

enum {
  MAX_ERROR = 511, // of an axis, so that sums of 16ths fit in 16 bits
  TABLE_SLOTS = 1024,
  NOT_FIXED = -1,
  // 256ths of the error that are diffused where neighbors are equal, and where they differ by at least EDGE.
  SMOOTH_STRENGTH = 192,
  EDGE_STRENGTH = 160,
  EDGE = 128,
  // The previous index may be worse than the best one by this many 256ths of the squared distance from the best color
  // to the color next to it, and by at most this much.
  REPEAT_SHARE = 200,
  MAX_REPEAT = 500,
};

/// Stands for a pixel that takes no part in error diffusion.
static const palette_point absent = {{INT16_MIN, 0, 0, 0}};

struct ccodecs_palette_mapper {
  ccodecs_budget *budget;
  ccodecs_palette palette;
  uint32_t width;
  uint32_t first;              ///< The first color of `nearest`: 1 if a transparent entry is not one of its colors.
  bool is_backward;            ///< The next row is mapped from right to left.
  palette_point *rows;         ///< The block of the following rows.
  palette_point *into;         ///< Errors into this row, in 16ths.
  palette_point *below;        ///< Errors into the next row.
  palette_point *points;       ///< The row's pixels.
  palette_point *above;        ///< The previous row's pixels.
  int16_t *fixed;              ///< Indices of pixels that take no part in error diffusion; NOT_FIXED for others.
  uint16_t table[TABLE_SLOTS]; ///< Of an exact palette: index plus 1 by color, or 0.
  uint32_t repeats[CCODECS_PALETTE_MAX_COLORS]; ///< By how much the previous index may be worse, per best index.
  uint32_t radii[CCODECS_PALETTE_MAX_COLORS];   ///< Squared distances within which a color is the nearest.
  palette_space space;
  palette_nearest nearest;
};

_Static_assert(
    sizeof(ccodecs_palette_mapper) + 2 * PALETTE_BLOCK_BYTES + 2 * CCODECS_PALETTE_MAPPER_PIXEL_BYTES <=
        CCODECS_PALETTE_MAPPER_BYTES,
    "documented");

// MARK: Creation

static uint32_t color_slot(uint32_t color) {
  return (color ^ color >> 15) * 0x9e3779b1u >> 22;
}

/// Returns the index of a color in an exact palette, or NOT_FIXED.
static int16_t find_exact(const ccodecs_palette_mapper *m, uint32_t color) {
  for (uint32_t slot = color_slot(color); m->table[slot] != 0; slot = (slot + 1) % TABLE_SLOTS) {
    if (palette_key(m->palette.colors[m->table[slot] - 1]) == color) {
      return (int16_t)(m->table[slot] - 1);
    }
  }
  return NOT_FIXED;
}

static void fill_table(ccodecs_palette_mapper *m) {
  memset(m->table, 0, sizeof m->table);
  for (uint32_t i = 0; i < m->palette.count && m->palette.is_exact; i++) {
    uint32_t slot = color_slot(palette_key(m->palette.colors[i]));
    while (m->table[slot] != 0) {
      slot = (slot + 1) % TABLE_SLOTS;
    }
    m->table[slot] = (uint16_t)(i + 1);
  }
}

static void set_colors(ccodecs_palette_mapper *m) {
  const ccodecs_palette *palette = &m->palette;
  palette_point points[CCODECS_PALETTE_MAX_COLORS];
  m->first = palette_first_color(palette);
  const uint32_t count = palette->count - m->first;
  for (uint32_t i = 0; i < count; i++) {
    points[i] = ccodecs_palette_space_point(&m->space, palette->colors[i + m->first]);
  }
  memset(m->radii, 0, sizeof m->radii);
  ccodecs_palette_nearest_set(&m->nearest, points, count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t gap = UINT32_MAX >> 8;
    for (uint32_t k = 0; k < count; k++) {
      const uint32_t distance = palette_squared_distance(points[i], points[k]);
      gap = i != k && distance < gap ? distance : gap;
    }
    m->radii[i] = gap / 4;
    gap = gap * REPEAT_SHARE / 256;
    m->repeats[i] = gap < MAX_REPEAT ? gap : MAX_REPEAT;
  }
}

ccodecs_status ccodecs_palette_mapper_create(
    const ccodecs_palette *palette, uint32_t width, ccodecs_budget *budget, ccodecs_palette_mapper **mapper) {
  *mapper = NULL;
  if (palette->count == 0 || palette->count > CCODECS_PALETTE_MAX_COLORS) {
    return CCODECS_MISUSE;
  }
  // Errors go to one more pixel at both ends.
  const uint64_t row_count = (uint64_t)width + 2, row_bytes = CCODECS_PALETTE_MAPPER_PIXEL_BYTES;
  ccodecs_palette_mapper *m = ccodecs_allocate(budget, sizeof *m);
  palette_point *rows =
      m != NULL && row_count <= SIZE_MAX / row_bytes ? ccodecs_allocate(budget, (size_t)(row_count * row_bytes)) : NULL;
  if (rows == NULL) {
    ccodecs_free(budget, m);
    return CCODECS_NO_MEMORY;
  }
  m->budget = budget;
  m->width = width;
  m->rows = rows;
  m->into = rows;
  m->below = rows + row_count;
  m->points = rows + 2 * row_count;
  m->above = rows + 3 * row_count;
  m->fixed = (int16_t *)(void *)(rows + 4 * row_count);
  ccodecs_palette_space_fill(&m->space);
  memset(&m->nearest, 0, offsetof(palette_nearest, groups));
  ccodecs_palette_mapper_set(m, palette);
  ccodecs_palette_mapper_begin(m);
  *mapper = m;
  return CCODECS_OK;
}

void ccodecs_palette_mapper_set(ccodecs_palette_mapper *m, const ccodecs_palette *palette) {
  m->palette = *palette;
  set_colors(m);
  fill_table(m);
}

double ccodecs_palette_mapper_error(ccodecs_palette_mapper *m, const ccodecs_palette_histogram *h) {
  double squares = 0, weight = 0;
  for (uint32_t i = 0; i < h->bin_count; i++) {
    const palette_bin *bin = h->bins + i;
    weight += (double)bin->weight;
    if (m->palette.is_exact && h->dropped_bits == 0 && find_exact(m, bin->key) != NOT_FIXED) {
      continue;
    }
    uint8_t rgba[4];
    palette_bin_color(h, bin, rgba);
    const palette_point point = ccodecs_palette_space_point(&m->space, rgba);
    squares += (double)bin->weight * (palette_nearest_find(&m->nearest, point) >> 8);
  }
  return weight > 0 ? squares / weight : 0;
}

void ccodecs_palette_mapper_begin(ccodecs_palette_mapper *m) {
  m->is_backward = false;
  memset(m->into, 0, ((size_t)m->width + 2) * sizeof *m->into);
  for (uint32_t x = 0; x < m->width; x++) {
    m->above[x] = absent;
  }
}

void ccodecs_palette_mapper_destroy(ccodecs_palette_mapper *m) {
  if (m != NULL) {
    ccodecs_budget *budget = m->budget;
    ccodecs_free(budget, m->rows);
    ccodecs_free(budget, m);
  }
}

// MARK: Pixels

/// Returns whether a pixel has not changed.
static bool is_kept(const uint8_t *pixel, const uint8_t *other, uint32_t channels, uint8_t tolerance) {
  if (tolerance == 0) {
    return palette_read_pixel(pixel, channels) == palette_read_pixel(other, channels);
  }
  for (uint32_t c = 0; c < channels; c++) {
    const int difference = pixel[c] - other[c];
    if (difference > tolerance || -difference > tolerance) {
      return false;
    }
  }
  return true;
}

/// Converts a color to a point and returns NOT_FIXED. Returns its index, with the point `absent`, if it has one in any
/// case.
static int16_t convert(const ccodecs_palette_mapper *m, uint32_t pixel, palette_point *point) {
  const bool has_transparent = m->palette.transparent >= 0;
  uint32_t color = palette_represented(pixel, m->palette.is_binary);
  if (color == 0 && m->palette.is_binary && !has_transparent) {
    color = pixel | 0xff000000u;
  }
  const int16_t fixed = color == 0 && has_transparent ? (int16_t)m->palette.transparent
                        : m->palette.is_exact         ? find_exact(m, color)
                                                      : NOT_FIXED;
  *point = absent;
  if (fixed == NOT_FIXED) {
    uint8_t rgba[4];
    palette_split_key(color, rgba);
    *point = ccodecs_palette_space_point(&m->space, rgba);
  }
  return fixed;
}

/// Converts the row's pixels to points and fixed indices.
static void convert_row(
    ccodecs_palette_mapper *m, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous) {
  uint32_t last = 0;
  bool has_last = false;
  palette_point point = absent;
  int16_t fixed = NOT_FIXED;
  for (uint32_t x = 0; x < count; x++, pixels += channels) {
    if (previous != NULL && is_kept(pixels, previous->pixels + (size_t)x * channels, channels, previous->tolerance)) {
      m->points[x] = absent;
      m->fixed[x] = previous->indices[x];
      continue;
    }
    const uint32_t pixel = palette_read_pixel(pixels, channels);
    if (!has_last || pixel != last) {
      last = pixel;
      has_last = true;
      fixed = convert(m, pixel, &point);
    }
    m->points[x] = point;
    m->fixed[x] = fixed;
  }
}

/// Returns the largest difference to the neighbors that errors are diffused to or from, the ones below excepted.
static int contrast(const ccodecs_palette_mapper *m, size_t x, size_t count) {
  const palette_point here = m->points[x],
                      neighbors[3] = {m->points[x > 0 ? x - 1 : x], m->points[x + 1 < count ? x + 1 : x], m->above[x]};
  int most = 0;
  for (int i = 0; i < 3; i++) {
    if (neighbors[i].axes[0] == absent.axes[0]) {
      continue;
    }
    for (int k = 0; k < PALETTE_AXES; k++) {
      const int difference = neighbors[i].axes[k] - here.axes[k];
      const int size = difference < 0 ? -difference : difference;
      most = size > most ? size : most;
    }
  }
  return most;
}

/// Returns the number of the color for a point: `before` if that is nearly as good as the nearest.
static uint32_t choose(ccodecs_palette_mapper *m, palette_point target, int before) {
  uint32_t distance = UINT32_MAX;
  if (before >= 0) {
    distance = palette_squared_distance(target, m->nearest.points[before]);
    if (distance < m->radii[before]) {
      return (uint32_t)before;
    }
  }
  const uint32_t key = palette_nearest_find(&m->nearest, target), best = key & 0xff;
  return distance <= (key >> 8) + m->repeats[best] ? (uint32_t)before : best;
}

static void diffuse(
    ccodecs_palette_mapper *m, size_t x, int step, const int wanted[4], palette_point chosen, int edge) {
  const int strength = SMOOTH_STRENGTH + (EDGE_STRENGTH - SMOOTH_STRENGTH) * (edge < EDGE ? edge : EDGE) / EDGE;
  int16_t *ahead = m->into[(size_t)((ptrdiff_t)x + step)].axes, *behind = m->below[(size_t)((ptrdiff_t)x - step)].axes;
  int16_t *under = m->below[x].axes, *beyond = m->below[(size_t)((ptrdiff_t)x + step)].axes;
  for (int k = 0; k < PALETTE_AXES; k++) {
    const int error = palette_clamp((wanted[k] - chosen.axes[k]) * strength / 256, -MAX_ERROR, MAX_ERROR);
    ahead[k] = (int16_t)(ahead[k] + 7 * error);
    behind[k] = (int16_t)(behind[k] + 3 * error);
    under[k] = (int16_t)(under[k] + 5 * error);
    beyond[k] = (int16_t)(beyond[k] + error);
  }
}

static void swap(palette_point **a, palette_point **b) {
  palette_point *moved = *a;
  *a = *b;
  *b = moved;
}

void ccodecs_palette_mapper_map(
    ccodecs_palette_mapper *m, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous, uint8_t *indices) {
  convert_row(m, pixels, channels, count, previous);
  memset(m->below, 0, ((size_t)count + 2) * sizeof *m->below);
  const int step = m->is_backward ? -1 : 1;
  int before = -1;
  for (uint32_t i = 0; i < count; i++) {
    const size_t x = m->is_backward ? count - 1 - i : i;
    if (m->fixed[x] != NOT_FIXED) {
      indices[x] = (uint8_t)m->fixed[x];
      before = m->fixed[x] - (int)m->first;
      continue;
    }
    int wanted[PALETTE_AXES];
    for (int k = 0; k < PALETTE_AXES; k++) {
      wanted[k] = m->points[x].axes[k] + ((m->into[x + 1].axes[k] + 8) >> 4);
    }
    const uint32_t color = choose(m, palette_point_within(wanted), before);
    indices[x] = (uint8_t)(color + m->first);
    diffuse(m, x + 1, step, wanted, m->nearest.points[color], contrast(m, x, count));
    before = (int)color;
  }
  swap(&m->into, &m->below);
  swap(&m->points, &m->above);
  m->is_backward = !m->is_backward;
}

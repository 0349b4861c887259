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
  // The previous index may be worse than the best one by this many 256ths of the squared distance from the best color
  // to the color next to it, and by at most this much.
  REPEAT_SHARE = 200,
  MAX_REPEAT = 500,
  ERROR_BATCH = 64,
};

_Static_assert(
    sizeof(ccodecs_palette_mapper) + 2 * PALETTE_BLOCK_BYTES + 2 * CCODECS_PALETTE_MAPPER_PIXEL_BYTES <=
        CCODECS_PALETTE_MAPPER_BYTES,
    "documented");

// MARK: Creation

static uint32_t color_slot(uint32_t color) {
  return (color ^ color >> 15) * 0x9e3779b1u >> 19;
}

_Static_assert(PALETTE_TABLE_SLOTS == 1 << 13, "as color_slot computes");

/// Returns the index of a color in an exact palette, or PALETTE_NOT_FIXED.
static int16_t find_exact(const ccodecs_palette_mapper *m, uint32_t color) {
  uint32_t slot = color_slot(color);
  while (__builtin_expect(m->keys[m->slots[slot]] != color && m->slots[slot] != 0, false)) {
    slot = (slot + 1) % PALETTE_TABLE_SLOTS;
  }
  return (int16_t)(m->slots[slot] - 1);
}

static void fill_table(ccodecs_palette_mapper *m) {
  memset(m->slots, 0, sizeof m->slots);
  m->keys[0] = 1; // no color: a transparent one is 0
  for (uint32_t i = 0; i < m->palette.count && m->palette.is_exact; i++) {
    m->keys[i + 1] = palette_key(m->palette.colors[i]);
    uint32_t slot = color_slot(m->keys[i + 1]);
    while (m->slots[slot] != 0) {
      slot = (slot + 1) % PALETTE_TABLE_SLOTS;
    }
    m->slots[slot] = (uint16_t)(i + 1);
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
  ccodecs_palette_nearest_set(&m->nearest, points, count);
  m->has_gaps = false;
}

/// Sets what depends on the distances between colors, which only error diffusion needs.
static void set_gaps(ccodecs_palette_mapper *m) {
  uint32_t gaps[CCODECS_PALETTE_MAX_COLORS];
  ccodecs_palette_nearest_gaps(&m->nearest, gaps);
  memset(m->radii, 0, sizeof m->radii);
  for (uint32_t i = 0; i < m->nearest.count; i++) {
    const uint32_t share = gaps[i] * REPEAT_SHARE / 256;
    m->radii[i] = gaps[i] / 4;
    m->repeats[i] = share < MAX_REPEAT ? share : MAX_REPEAT;
  }
  m->has_gaps = true;
}

ccodecs_status ccodecs_palette_mapper_create(
    const ccodecs_palette *palette, uint32_t width, ccodecs_budget *budget, ccodecs_palette_mapper **mapper) {
  *mapper = NULL;
  if (palette->count == 0 || palette->count > CCODECS_PALETTE_MAX_COLORS) {
    return CCODECS_MISUSE;
  }
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
  m->into = rows + 1;
  m->below = rows + row_count + 1;
  m->points = rows + 2 * row_count + 1;
  m->above = rows + 3 * row_count + 1;
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

/// Adds the squared distances of the bins from `first` on, up to `end`, to the sum.
static double add_squares(
    ccodecs_palette_mapper *m, ccodecs_palette_histogram *h, uint32_t first, uint32_t end, double squares) {
  palette_point points[ERROR_BATCH];
  uint64_t weights[ERROR_BATCH];
  uint32_t keys[ERROR_BATCH], count = 0;
  for (uint32_t i = first; i < end; i++) {
    if (m->palette.is_exact && h->dropped_bits == 0 && find_exact(m, h->bins[i].key) != PALETTE_NOT_FIXED) {
      continue;
    }
    points[count] = h->points[i];
    weights[count++] = h->bins[i].weight;
  }
  ccodecs_palette_nearest_find(&m->nearest, points, count, keys);
  for (uint32_t i = 0; i < count; i++) {
    squares += (double)weights[i] * (keys[i] >> 8);
  }
  return squares;
}

double ccodecs_palette_mapper_error(ccodecs_palette_mapper *m, ccodecs_palette_histogram *h, double maximum) {
  double squares = 0, weight = 0;
  for (uint32_t i = 0; i < h->bin_count; i++) {
    weight += (double)h->bins[i].weight;
  }
  ccodecs_palette_histogram_locate(h);
  for (uint32_t i = 0; i < h->bin_count && squares <= maximum * weight; i += ERROR_BATCH) {
    squares = add_squares(m, h, i, i + ERROR_BATCH < h->bin_count ? i + ERROR_BATCH : h->bin_count, squares);
  }
  return weight > 0 ? squares / weight : 0;
}

void ccodecs_palette_mapper_begin(ccodecs_palette_mapper *m) {
  m->is_backward = false;
  memset(m->into - 1, 0, ((size_t)m->width + 2) * sizeof *m->into);
  for (uint32_t x = 0; x < m->width; x++) {
    m->above[x] = palette_absent;
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

/// Converts a color to a point and returns PALETTE_NOT_FIXED. Returns its index, with the point `palette_absent`, if it
/// has one in any case.
static int16_t convert(const ccodecs_palette_mapper *m, uint32_t pixel, palette_point *point) {
  const bool has_transparent = m->palette.transparent >= 0;
  uint32_t color = palette_represented(pixel, m->palette.is_binary);
  if (color == 0 && m->palette.is_binary && !has_transparent) {
    color = pixel | 0xff000000u;
  }
  const int16_t fixed = color == 0 && has_transparent ? (int16_t)m->palette.transparent
                        : m->palette.is_exact         ? find_exact(m, color)
                                                      : PALETTE_NOT_FIXED;
  *point = palette_absent;
  if (fixed == PALETTE_NOT_FIXED) {
    uint8_t rgba[4];
    palette_split_key(color, rgba);
    *point = ccodecs_palette_space_point(&m->space, rgba);
  }
  return fixed;
}

/// Converts the row's pixels, whose number of channels is constant, to points and fixed indices.
static inline __attribute__((always_inline)) void convert_row(
    ccodecs_palette_mapper *m, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous) {
  const uint8_t *before = previous == NULL ? NULL : previous->pixels;
  uint32_t last = 0;
  bool has_last = false;
  palette_point point = palette_absent;
  int16_t fixed = PALETTE_NOT_FIXED;
  for (size_t x = 0; x < count; x++) {
    if (before != NULL && palette_are_many_equal(pixels, before, channels, x, count)) {
      for (size_t i = 0; i < PALETTE_MANY; i++) {
        m->points[x + i] = palette_absent;
        m->fixed[x + i] = previous->indices[x + i];
      }
      x += PALETTE_MANY - 1;
      continue;
    }
    if (before != NULL && is_kept(pixels + x * channels, before + x * channels, channels, previous->tolerance)) {
      m->points[x] = palette_absent;
      m->fixed[x] = previous->indices[x];
      continue;
    }
    const uint32_t pixel = palette_read_pixel(pixels + x * channels, channels);
    if (!has_last || pixel != last) {
      last = pixel;
      has_last = true;
      fixed = convert(m, pixel, &point);
    }
    m->points[x] = point;
    m->fixed[x] = fixed;
  }
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
  const uint32_t list = palette_list_of(&m->nearest, palette_cell(target));
  const uint32_t key = ccodecs_palette_nearest_of(m->nearest.groups + (list & 0xffff), list >> 16, target);
  const uint32_t best = key & 0xff;
  return distance <= (key >> 8) + m->repeats[best] ? (uint32_t)before : best;
}

static void diffuse(
    ccodecs_palette_mapper *m, ptrdiff_t x, int step, const int wanted[4], palette_point chosen, int strength) {
  int16_t *ahead = m->into[x + step].axes, *behind = m->below[x - step].axes;
  int16_t *under = m->below[x].axes, *beyond = m->below[x + step].axes;
  for (int k = 0; k < PALETTE_AXES; k++) {
    const int difference = (wanted[k] - chosen.axes[k]) * strength / 256;
    const int error = palette_clamp(difference, -PALETTE_MAX_ERROR, PALETTE_MAX_ERROR);
    ahead[k] = (int16_t)(ahead[k] + 7 * error);
    behind[k] = (int16_t)(behind[k] + 3 * error);
    under[k] = (int16_t)(under[k] + 5 * error);
    beyond[k] = (int16_t)(beyond[k] + error);
  }
}

void ccodecs_palette_diffuse(ccodecs_palette_mapper *m, uint32_t count, uint8_t *indices) {
  memset(m->below - 1, 0, ((size_t)count + 2) * sizeof *m->below);
  const int step = m->is_backward ? -1 : 1;
  int before = -1;
  for (uint32_t i = 0; i < count; i++) {
    const size_t x = m->is_backward ? count - 1 - i : i;
    if (m->fixed[x] != PALETTE_NOT_FIXED) {
      indices[x] = (uint8_t)m->fixed[x];
      before = m->fixed[x] - (int)m->first;
      continue;
    }
    int wanted[PALETTE_AXES];
    for (int k = 0; k < PALETTE_AXES; k++) {
      wanted[k] = m->points[x].axes[k] + ((m->into[x].axes[k] + 8) >> 4);
    }
    const uint32_t color = choose(m, palette_point_within(wanted), before);
    indices[x] = (uint8_t)(color + m->first);
    const int strength = palette_strength(palette_contrast(m, x, count));
    diffuse(m, (ptrdiff_t)x, step, wanted, m->nearest.points[color], strength);
    before = (int)color;
  }
}

static void swap(palette_point **a, palette_point **b) {
  palette_point *moved = *a;
  *a = *b;
  *b = moved;
}

/// As ccodecs_palette_mapper_map_exact, for an exact palette and a constant number of channels.
static inline __attribute__((always_inline)) bool map_exact(
    const ccodecs_palette_mapper *m, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous, uint8_t *indices) {
  const uint8_t *before = previous == NULL ? NULL : previous->pixels;
  int missing = 0;
  for (size_t x = 0; x < count && missing >= 0; x++) {
    if (before != NULL && palette_are_many_equal(pixels, before, channels, x, count)) {
      memmove(indices + x, previous->indices + x, PALETTE_MANY);
      x += PALETTE_MANY - 1;
      continue;
    }
    const uint32_t pixel = palette_read_pixel(pixels + x * channels, channels);
    int index = find_exact(m, palette_represented(pixel, true)); // that of a transparent color is 0
    if (before != NULL) {
      index = pixel == palette_read_pixel(before + x * channels, channels) ? previous->indices[x] : index;
    }
    indices[x] = (uint8_t)index;
    missing |= index; // negative
  }
  return missing >= 0;
}

bool ccodecs_palette_mapper_map_exact(
    const ccodecs_palette_mapper *m, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous, uint8_t *indices) {
  const bool is_mappable = m->palette.is_exact && m->palette.is_binary && m->palette.transparent >= 0 &&
                           (previous == NULL || previous->tolerance == 0);
  if (!is_mappable) {
    return false;
  }
  return channels == 4   ? map_exact(m, pixels, 4, count, previous, indices)
         : channels == 3 ? map_exact(m, pixels, 3, count, previous, indices)
                         : map_exact(m, pixels, 1, count, previous, indices);
}

static void diffuse_row(ccodecs_palette_mapper *m, uint32_t count, uint8_t *indices) {
  if (!m->has_gaps) {
    set_gaps(m);
  }
  m->nearest.kernels->diffuse(m, count, indices);
}

void ccodecs_palette_mapper_map(
    ccodecs_palette_mapper *m, const uint8_t *pixels, uint32_t channels, uint32_t count,
    const ccodecs_palette_previous *previous, uint8_t *indices) {
  if (channels == 4) {
    convert_row(m, pixels, 4, count, previous);
  } else {
    convert_row(m, pixels, channels, count, previous);
  }
  diffuse_row(m, count, indices);
  swap(&m->into, &m->below);
  swap(&m->points, &m->above);
  m->is_backward = !m->is_backward;
}

// What the parts of the palettes share. Private to them.

#pragma once

#include "palette.h"

#include <stddef.h>
#include <string.h>

enum { PALETTE_BLOCK_BYTES = 128 }; ///< What an allocation takes in addition, at most.

// MARK: Color space (palette_space.c)

/// A color in a space in which distances are visible differences: the lightness, red-green and blue-yellow axes of XYB
/// (ISO/IEC 18181-1, annex L: opsin absorbance and its cube root), multiplied by alpha, and alpha.
///
/// Lightness is relative to medium gray. The squared distance of two colors is then the mean of those of their blends
/// with black and with white, which a product with alpha and half of alpha add up to.
typedef struct palette_point {
  int16_t axes[4];
} palette_point;

enum {
  PALETTE_AXES = 4,
  /// The axes' ranges, within which sums of squared differences have 24 bits. Colors have values of a smaller range.
  PALETTE_MIN_0 = -1024,
  PALETTE_BITS_0 = 11,
  PALETTE_MIN_1 = -384,
  PALETTE_BITS_1 = 10,
  PALETTE_MIN_2 = -896,
  PALETTE_BITS_2 = 11,
  PALETTE_MIN_3 = -512,
  PALETTE_BITS_3 = 10,
  PALETTE_ROOTS = 4114,
};

typedef struct palette_space {
  uint16_t roots[PALETTE_ROOTS]; ///< Cube roots at equal steps, in 16ths of a unit of lightness.
} palette_space;

void ccodecs_palette_space_fill(palette_space *space);

/// Converts a color.
palette_point ccodecs_palette_space_point(const palette_space *space, const uint8_t rgba[4]);

/// Converts a point to the nearest 8-bit color.
void ccodecs_palette_space_color(palette_point point, uint8_t rgba[4]);

// MARK: Nearest color (palette_nearest.c)

enum {
  PALETTE_LANES = 8,
  PALETTE_CELL_BITS = 4, ///< Of the axes of color; that of alpha has one less.
  PALETTE_CELLS = 1 << (4 * PALETTE_CELL_BITS - 1),
  PALETTE_GROUPS = 12288,
};

/// Colors whose distances are computed at once. Lanes beyond the last color repeat a color.
typedef struct palette_group {
  int16_t first[PALETTE_LANES][2]; ///< Axes 0 and 1.
  int16_t last[PALETTE_LANES][2];  ///< Axes 2 and 3.
  uint32_t indices[PALETTE_LANES];
} palette_group;

/// Finds the nearest color of a palette. Space is divided into cells; a cell has a list of the colors that are nearest
/// to one of its points, which is made when a point in the cell is looked up for the second time. For the first one,
/// and when there is no room for more lists, all colors are compared.
typedef struct palette_nearest {
  uint32_t count;
  uint32_t group_count;
  const struct palette_kernels *kernels;
  palette_point points[CCODECS_PALETTE_MAX_COLORS];
  /// Index of the first group, and the number of groups times 65536; less if there is no list.
  uint32_t cells[PALETTE_CELLS];
  palette_group groups[PALETTE_GROUPS]; ///< Those of all colors, then those of cells.
} palette_nearest;

/// Sets the palette.
void ccodecs_palette_nearest_set(palette_nearest *nearest, const palette_point *points, uint32_t count);

/// Returns the list of a cell that has none yet, or of all colors at the first time.
uint32_t ccodecs_palette_nearest_make(palette_nearest *nearest, uint32_t cell);

/// Sets the squared distance of each color to the one next to it.
void ccodecs_palette_nearest_gaps(const palette_nearest *nearest, uint32_t gaps[CCODECS_PALETTE_MAX_COLORS]);

/// The points of a cell, from the low ones to the high ones of each axis.
typedef struct palette_bounds {
  int32_t low[PALETTE_AXES], high[PALETTE_AXES];
} palette_bounds;

/// The kernels of an instruction set.
typedef struct palette_kernels {
  /// Lists the colors that may be the nearest of a point within bounds, in order. Returns their number.
  ///
  /// A color is not listed if every point is nearer to the color that is nearest to the center: the difference of the
  /// squared distances is linear, so that it is largest in a corner.
  uint32_t (*list)(
      const palette_nearest *nearest, const palette_bounds *bounds, uint8_t kept[CCODECS_PALETTE_MAX_COLORS]);
  /// See ccodecs_palette_nearest_gaps.
  void (*find_gaps)(const palette_nearest *nearest, uint32_t gaps[CCODECS_PALETTE_MAX_COLORS]);
  /// See ccodecs_palette_nearest_find.
  void (*find)(palette_nearest *nearest, const palette_point *points, uint32_t count, uint32_t *keys);
  /// See ccodecs_palette_diffuse.
  void (*diffuse)(ccodecs_palette_mapper *m, uint32_t count, uint8_t *indices);
} palette_kernels;

extern const palette_kernels ccodecs_palette_kernels_avx2;

static inline int palette_clamp(int value, int low, int high) {
  return value < low ? low : value > high ? high : value;
}

static inline uint32_t palette_squared_distance(palette_point a, palette_point b) {
  uint32_t sum = 0;
  for (int k = 0; k < PALETTE_AXES; k++) {
    const int difference = a.axes[k] - b.axes[k];
    sum += (uint32_t)(difference * difference);
  }
  return sum;
}

/// Moves a point into the range of the cells.
static inline palette_point palette_point_within(const int axes[4]) {
  return (palette_point){
      {(int16_t)palette_clamp(axes[0], PALETTE_MIN_0, PALETTE_MIN_0 + (1 << PALETTE_BITS_0) - 1),
       (int16_t)palette_clamp(axes[1], PALETTE_MIN_1, PALETTE_MIN_1 + (1 << PALETTE_BITS_1) - 1),
       (int16_t)palette_clamp(axes[2], PALETTE_MIN_2, PALETTE_MIN_2 + (1 << PALETTE_BITS_2) - 1),
       (int16_t)palette_clamp(axes[3], PALETTE_MIN_3, PALETTE_MIN_3 + (1 << PALETTE_BITS_3) - 1)}};
}

/// Returns the number of the cell that contains a point within the range.
static inline uint32_t palette_cell(palette_point p) {
  const uint32_t a = (uint32_t)(p.axes[0] - PALETTE_MIN_0) >> (PALETTE_BITS_0 - PALETTE_CELL_BITS);
  const uint32_t b = (uint32_t)(p.axes[1] - PALETTE_MIN_1) >> (PALETTE_BITS_1 - PALETTE_CELL_BITS);
  const uint32_t c = (uint32_t)(p.axes[2] - PALETTE_MIN_2) >> (PALETTE_BITS_2 - PALETTE_CELL_BITS);
  const uint32_t d = (uint32_t)(p.axes[3] - PALETTE_MIN_3) >> (PALETTE_BITS_3 - PALETTE_CELL_BITS + 1);
  return ((d << PALETTE_CELL_BITS | a) << PALETTE_CELL_BITS | b) << PALETTE_CELL_BITS | c;
}

/// Returns the list of the cell that contains a point within the range.
static inline uint32_t palette_list_of(palette_nearest *nearest, uint32_t cell) {
  const uint32_t made = nearest->cells[cell];
  return made >> 16 != 0 ? made : ccodecs_palette_nearest_make(nearest, cell);
}

/// Returns the squared distance times 256 plus the index of the nearest color, the first of those at the same distance.
uint32_t ccodecs_palette_nearest_of(const palette_group *groups, uint32_t count, palette_point point);

/// The same of all colors, for points within the range.
void ccodecs_palette_nearest_find(
    palette_nearest *nearest, const palette_point *points, uint32_t count, uint32_t *keys);

// MARK: Histogram (palette_histogram.c)

enum { PALETTE_MAX_BINS = 1 << 15, PALETTE_SLOTS = 1 << 16 };

/// Colors that are counted as one.
typedef struct palette_bin {
  uint32_t key;  ///< The color, R in the lowest byte, without the bits that are not distinguished.
  uint32_t slot; ///< Where `slots` has it.
  uint64_t weight;
} palette_bin;

struct ccodecs_palette_histogram {
  ccodecs_budget *budget;
  palette_space space;
  ccodecs_palette_transparency transparency;
  bool has_transparent;  ///< A pixel was transparent; with binary transparency, these are not counted as a color.
  uint32_t dropped_bits; ///< Low bits of samples that are not distinguished.
  uint32_t bin_count;
  uint32_t located;              ///< The number of bins whose points are known.
  uint16_t slots[PALETTE_SLOTS]; ///< Number of the bin plus 1, or 0.
  palette_bin bins[PALETTE_MAX_BINS];
  uint64_t sums[PALETTE_MAX_BINS][4];     ///< Of the samples of bins' pixels, once bits are dropped.
  palette_point points[PALETTE_MAX_BINS]; ///< Of bins: see ccodecs_palette_histogram_locate.
};

/// Sets the points of bins that are not known yet.
void ccodecs_palette_histogram_locate(ccodecs_palette_histogram *h);

/// Returns a color as one number, R in the lowest byte.
static inline uint32_t palette_key(const uint8_t rgba[4]) {
  return (uint32_t)rgba[0] | (uint32_t)rgba[1] << 8 | (uint32_t)rgba[2] << 16 | (uint32_t)rgba[3] << 24;
}

/// Reads a pixel as such a number.
static inline uint32_t palette_read_pixel(const uint8_t *pixel, uint32_t channels) {
  if (channels == 1) {
    return 0x10101u * pixel[0] | 0xff000000u;
  }
  return channels == 4 ? palette_key(pixel)
                       : (uint32_t)pixel[0] | (uint32_t)pixel[1] << 8 | (uint32_t)pixel[2] << 16 | 0xff000000u;
}

enum { PALETTE_MANY = 8 };

/// Returns whether the next PALETTE_MANY of `count` pixels, from a multiple of that number on, equal those of another
/// row.
static inline bool palette_are_many_equal(
    const uint8_t *pixels, const uint8_t *others, uint32_t channels, size_t x, size_t count) {
  return x % PALETTE_MANY == 0 && x + PALETTE_MANY <= count &&
         memcmp(pixels + x * channels, others + x * channels, (size_t)PALETTE_MANY * channels) == 0;
}

/// The representable part of a color: with binary transparency, alpha is 0 or 255. Transparent colors are 0.
static inline uint32_t palette_represented(uint32_t color, bool is_binary) {
  const uint32_t alpha = color >> 24;
  return alpha < (is_binary ? 128 : 1) ? 0 : is_binary ? color | 0xff000000u : color;
}

static inline void palette_split_key(uint32_t color, uint8_t rgba[4]) {
  for (int c = 0; c < 4; c++) {
    rgba[c] = (uint8_t)(color >> 8 * c);
  }
}

/// Returns the mean color of a bin.
static inline void palette_bin_color(const ccodecs_palette_histogram *h, uint32_t bin, uint8_t rgba[4]) {
  const uint64_t weight = h->bins[bin].weight;
  for (int c = 0; c < 4; c++) {
    rgba[c] = h->dropped_bits == 0 ? (uint8_t)(h->bins[bin].key >> 8 * c)
                                   : (uint8_t)((h->sums[bin][c] + weight / 2) / weight);
  }
}

/// Returns the index of the first entry that a pixel which is not transparent can have: with binary transparency, the
/// one after the transparent entry.
static inline uint32_t palette_first_color(const ccodecs_palette *palette) {
  return palette->is_binary && palette->transparent == 0 && palette->count > 1 ? 1 : 0;
}

// MARK: Mapper (palette_map.c)

enum {
  PALETTE_MAX_ERROR = 511, // of an axis, so that sums of 16ths fit in 16 bits
  PALETTE_TABLE_SLOTS = 8192,
  PALETTE_NOT_FIXED = -1,
  // 256ths of the error that are diffused where neighbors are equal, and where they differ by at least EDGE.
  PALETTE_SMOOTH_STRENGTH = 192,
  PALETTE_EDGE_STRENGTH = 160,
  PALETTE_EDGE = 128,
};

/// Stands for a pixel that takes no part in error diffusion.
static const palette_point palette_absent = {{INT16_MIN, 0, 0, 0}};

struct ccodecs_palette_mapper {
  ccodecs_budget *budget;
  ccodecs_palette palette;
  uint32_t width;
  uint32_t first;        ///< The first color of `nearest`: 1 if a transparent entry is not one of its colors.
  bool has_gaps;         ///< `repeats` and `radii` are set.
  bool is_backward;      ///< The next row is mapped from right to left.
  palette_point *rows;   ///< The block of the following rows, each with one more pixel at both ends.
  palette_point *into;   ///< Errors into this row, in 16ths.
  palette_point *below;  ///< Errors into the next row.
  palette_point *points; ///< The row's pixels.
  palette_point *above;  ///< The previous row's pixels.
  int16_t *fixed;        ///< Indices of pixels that take no part in error diffusion; negative for others.
  uint16_t slots[PALETTE_TABLE_SLOTS];           ///< Of an exact palette: indices plus 1 by a hash of the color, or 0.
  uint32_t keys[CCODECS_PALETTE_MAX_COLORS + 1]; ///< The colors of these numbers.
  uint32_t repeats[CCODECS_PALETTE_MAX_COLORS];  ///< By how much the previous index may be worse, per best index.
  uint32_t radii[CCODECS_PALETTE_MAX_COLORS];    ///< Squared distances within which a color is the nearest.
  palette_space space;
  palette_nearest nearest;
};

/// Returns the largest difference to the neighbors that errors are diffused to or from, the ones below excepted.
static inline int palette_contrast(const ccodecs_palette_mapper *m, size_t x, size_t count) {
  const palette_point here = m->points[x],
                      neighbors[3] = {m->points[x > 0 ? x - 1 : x], m->points[x + 1 < count ? x + 1 : x], m->above[x]};
  int maximum = 0;
  for (int i = 0; i < 3; i++) {
    if (neighbors[i].axes[0] == palette_absent.axes[0]) {
      continue;
    }
    for (int k = 0; k < PALETTE_AXES; k++) {
      const int difference = neighbors[i].axes[k] - here.axes[k];
      const int size = difference < 0 ? -difference : difference;
      maximum = size > maximum ? size : maximum;
    }
  }
  return maximum;
}

/// Returns how many 256ths of an error are diffused.
static inline int palette_strength(int contrast) {
  const int edge = contrast < PALETTE_EDGE ? contrast : PALETTE_EDGE;
  return PALETTE_SMOOTH_STRENGTH + (PALETTE_EDGE_STRENGTH - PALETTE_SMOOTH_STRENGTH) * edge / PALETTE_EDGE;
}

/// Maps a row whose points and fixed indices are set, and diffuses its errors.
void ccodecs_palette_diffuse(ccodecs_palette_mapper *m, uint32_t count, uint8_t *indices);

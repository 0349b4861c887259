// Checks palettes with random images. run.sh builds and runs it.
//
// Nearest colors are compared with a search of all colors, and the instruction sets with each other. A palette must
// keep within the number of colors, and be exact if there are few enough. Mapped pixels must be equal to those of an
// exact palette, keep their indices where frames do not change, and be transparent if and only if the image is. Memory
// must stay below what the header documents; without it, every function must fail and release everything.
//
// The last line is a digest of all palettes and indices, which run.sh compares between instruction sets.

#include "palette/palette_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// MARK: Random numbers

static uint64_t state;

/// Returns the next number of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t next_random(void) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static uint32_t below(uint32_t bound) {
  return (uint32_t)(next_random() % bound);
}

static uint64_t defects, round_number, digest = 14695981039346656037u;

static void expect(bool holds, const char *what) {
  if (!holds && defects++ < 20) {
    printf("round %" PRIu64 ": %s\n", round_number, what);
  }
}

static void digest_bytes(const void *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    digest = (digest ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
  }
}

// MARK: Images

typedef struct image {
  uint32_t width, height, channels;
  uint8_t *pixels;
  uint8_t *indices;
} image;

static uint8_t sample(uint32_t kind, uint32_t x, uint32_t y, uint32_t c) {
  switch (kind) {
  case 0:
    return (uint8_t)next_random();
  case 1:
    return (uint8_t)(x * (c + 1) + 2 * y);
  case 2:
    return (uint8_t)((x / 5 + y / 7) % 2 ? 255 : 30 * c);
  case 3:
    return (uint8_t)(100 + (x * y >> 4) % 100 + below(6));
  case 4:
    return (uint8_t)(below(4) * 85);
  case 5:
    return (uint8_t)(x % 3);
  default:
    return (uint8_t)(kind * 37);
  }
}

static image random_image(void) {
  const bool is_large = below(40) == 0;
  image m = {.width = 1 + below(is_large ? 400 : 70), .height = 1 + below(is_large ? 400 : 40)};
  m.channels = (uint32_t[]){1, 3, 4, 4}[below(4)];
  m.pixels = malloc((size_t)m.width * m.height * m.channels);
  m.indices = malloc((size_t)m.width * m.height);
  const uint32_t kind = below(7), alpha_kind = below(5);
  for (uint32_t i = 0; i < m.width * m.height; i++) {
    const uint32_t x = i % m.width, y = i / m.width;
    for (uint32_t c = 0; c < m.channels; c++) {
      uint8_t *value = m.pixels + (size_t)i * m.channels + c;
      *value = sample(kind, x, y, c);
      if (c == 3 && alpha_kind > 0) {
        *value = alpha_kind == 1 ? 255 : alpha_kind == 2 ? 0 : alpha_kind == 3 ? (x < y ? 0 : 255) : (uint8_t)(x * 4);
      }
    }
  }
  return m;
}

static void free_image(image *m) {
  free(m->pixels);
  free(m->indices);
}

// MARK: Nearest colors

static palette_point random_point(int spread) {
  const int center[4] = {
      -1024 + (int)below(2048), -384 + (int)below(1024), -896 + (int)below(2048), -512 + (int)below(1024)};
  int axes[4];
  for (int k = 0; k < 4; k++) {
    axes[k] = center[k] * spread / 8 + (int)below(5) - 2;
  }
  return palette_point_within(axes);
}

static uint32_t find(palette_nearest *nearest, palette_point point) {
  uint32_t key;
  ccodecs_palette_nearest_find(nearest, &point, 1, &key);
  return key;
}

static void check_nearest(palette_nearest *nearest) {
  palette_point points[256];
  const uint32_t count = 1 + below(256);
  const int spread = (int)below(9);
  for (uint32_t i = 0; i < count; i++) {
    points[i] = random_point(spread);
  }
  ccodecs_palette_nearest_set(nearest, points, count);
  uint32_t gaps[256];
  ccodecs_palette_nearest_gaps(nearest, gaps);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t gap = UINT32_MAX >> 8;
    for (uint32_t k = 0; k < count; k++) {
      const uint32_t distance = palette_squared_distance(points[i], points[k]);
      gap = k != i && distance < gap ? distance : gap;
    }
    expect(gaps[i] == gap, "the distance to the next color is found");
  }
  for (int i = 0; i < 300; i++) {
    const palette_point point = random_point(below(2) == 0 ? spread : 8);
    uint32_t minimum = UINT32_MAX;
    for (uint32_t k = 0; k < count; k++) {
      const uint32_t key = palette_squared_distance(point, points[k]) << 8 | k;
      minimum = key < minimum ? key : minimum;
    }
    expect(find(nearest, point) == minimum, "the nearest color is found");
    expect(
        ccodecs_palette_nearest_of(nearest->groups, (count + 7) / 8, point) == minimum,
        "the code for any processor finds it");
  }
}

/// Every point of space has the same nearest color when there is no room for more lists.
static void check_full(palette_nearest *nearest) {
  palette_point points[256];
  for (int i = 0; i < 256; i++) {
    points[i] = random_point(1);
  }
  ccodecs_palette_nearest_set(nearest, points, 256);
  for (int i = 0; i < 20000; i++) {
    const palette_point point = random_point(8);
    expect(
        find(nearest, point) == ccodecs_palette_nearest_of(nearest->groups, 32, point),
        "without room for lists, the nearest color is found");
  }
}

/// All colors are within the range of the cells; the extremes are in the corners of RGB.
static void check_range(const palette_space *space) {
  for (int corner = 0; corner < 16; corner++) {
    const uint8_t color[4] = {corner & 1 ? 255 : 0, corner & 2 ? 255 : 0, corner & 4 ? 255 : 0, corner & 8 ? 255 : 0};
    const palette_point point = ccodecs_palette_space_point(space, color);
    const int axes[4] = {point.axes[0], point.axes[1], point.axes[2], point.axes[3]};
    expect(palette_squared_distance(point, palette_point_within(axes)) == 0, "a color is within the range");
  }
}

static void check_colors(const palette_space *space) {
  for (int i = 0; i < 200; i++) {
    const uint8_t color[4] = {(uint8_t)below(256), (uint8_t)below(256), (uint8_t)below(256), 255};
    uint8_t back[4];
    const palette_point point = ccodecs_palette_space_point(space, color);
    ccodecs_palette_space_color(point, back);
    // A level of green is 8 units of lightness.
    expect(
        palette_squared_distance(point, ccodecs_palette_space_point(space, back)) <= 64 && back[3] == 255,
        "a color survives the color space");
  }
}

// MARK: Palettes

static uint32_t distinct_colors(const image *m, ccodecs_palette_transparency transparency) {
  uint32_t colors[257], count = 0;
  for (size_t i = 0; i < (size_t)m->width * m->height && count < 257; i++) {
    const uint32_t key = palette_represented(
        palette_read_pixel(m->pixels + i * m->channels, m->channels), transparency != CCODECS_PALETTE_ALPHA);
    uint32_t k = 0;
    while (k < count && colors[k] != key) {
      k++;
    }
    if (k == count) {
      colors[count++] = key;
    }
  }
  return count;
}

/// Replaces another palette of a mapper, and checks the error of the new one, and of the other one with more colors.
static void check_error(ccodecs_palette_histogram *histogram, const ccodecs_palette *palette, uint32_t width) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  const ccodecs_palette other = {.count = 1, .transparent = -1, .colors = {{1, 2, 3, 255}}};
  ccodecs_palette_mapper *mapper;
  if (ccodecs_palette_mapper_create(&other, width, &budget, &mapper) != CCODECS_OK) {
    expect(false, "there is memory");
    return;
  }
  const double before = ccodecs_palette_mapper_error(mapper, histogram, INFINITY);
  ccodecs_palette_mapper_set(mapper, palette);
  const double error = ccodecs_palette_mapper_error(mapper, histogram, INFINITY);
  const double limit = error * below(3) / 2, minimum = ccodecs_palette_mapper_error(mapper, histogram, limit);
  expect(
      error > limit ? minimum >= limit && minimum <= error : minimum == error, "an error is measured up to a maximum");
  expect(error >= 0 && before >= 0 && (!palette->is_exact || error == 0), "an exact palette has no error");
  digest_bytes(&error, sizeof error);
  ccodecs_palette grown = other;
  const uint32_t maximum = 2 + below(255);
  const ccodecs_status status = ccodecs_palette_extend(histogram, maximum, 100, &grown);
  expect(status == CCODECS_OK || status == CCODECS_NO_MEMORY, "a palette can have more colors");
  expect(grown.count <= maximum && memcmp(grown.colors[0], other.colors[0], 4) == 0, "earlier colors stay");
  ccodecs_palette_mapper_set(mapper, &grown);
  expect(ccodecs_palette_mapper_error(mapper, histogram, INFINITY) <= before, "more colors have no larger error");
  digest_bytes(&grown, sizeof grown);
  ccodecs_palette_mapper_destroy(mapper);
}

static bool build(
    const image *m, ccodecs_palette_transparency transparency, uint32_t max_colors, ccodecs_budget *budget,
    ccodecs_palette *palette) {
  ccodecs_palette_histogram *histogram;
  if (ccodecs_palette_histogram_create(transparency, budget, &histogram) != CCODECS_OK) {
    return false;
  }
  for (uint32_t y = 0; y < m->height; y++) {
    ccodecs_palette_histogram_add(histogram, m->pixels + (size_t)y * m->width * m->channels, m->channels, m->width);
  }
  const bool is_built = ccodecs_palette_build(histogram, max_colors, palette) == CCODECS_OK;
  if (is_built) {
    check_error(histogram, palette, m->width);
  }
  ccodecs_palette_histogram_destroy(histogram);
  return is_built;
}

static bool map(const image *m, const ccodecs_palette *palette, ccodecs_budget *budget) {
  ccodecs_palette_mapper *mapper;
  if (ccodecs_palette_mapper_create(palette, m->width, budget, &mapper) != CCODECS_OK) {
    return false;
  }
  for (uint32_t y = 0; y < m->height; y++) {
    const size_t offset = (size_t)y * m->width;
    ccodecs_palette_mapper_map(
        mapper, m->pixels + offset * m->channels, m->channels, m->width, NULL, m->indices + offset);
  }
  ccodecs_palette_mapper_destroy(mapper);
  return true;
}

static void check_pixels(const image *m, const ccodecs_palette *palette) {
  for (size_t i = 0; i < (size_t)m->width * m->height; i++) {
    const uint8_t *pixel = m->pixels + i * m->channels;
    const uint8_t alpha = m->channels == 4 ? pixel[3] : 255;
    const bool is_transparent = alpha < (palette->is_binary ? 128 : 1);
    expect(m->indices[i] < palette->count, "an index is one of the palette");
    const uint8_t *color = palette->colors[m->indices[i]];
    expect(!palette->is_binary || (color[3] == 0) == is_transparent, "a pixel is transparent if that of the image is");
    if (palette->is_exact && !is_transparent) {
      const bool is_gray = m->channels == 1;
      expect(
          color[0] == pixel[0] && color[1] == pixel[is_gray ? 0 : 1] && color[2] == pixel[is_gray ? 0 : 2] &&
              color[3] == (palette->is_binary ? 255 : alpha),
          "an exact palette reproduces pixels");
    }
    expect(!palette->is_exact || (color[3] == 0) == is_transparent, "an exact palette reproduces transparency");
  }
}

static void check_palette(const ccodecs_palette *palette, uint32_t max_colors) {
  expect(palette->count >= 1 && palette->count <= max_colors, "the number of colors is within the limit");
  for (uint32_t i = 0; i < palette->count; i++) {
    const uint8_t *color = palette->colors[i];
    expect((color[3] == 255) == (i >= palette->opaque_first), "opaque colors come last");
    expect((int32_t)i == palette->transparent || color[3] > 0, "only the transparent color is transparent");
    expect(!palette->is_binary || color[3] == 0 || color[3] == 255, "alpha is binary");
  }
  expect(palette->transparent <= 0, "the transparent color is the first");
}

/// Maps a second frame, of which some pixels change.
static void check_next_frame(image *m, const ccodecs_palette *palette) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  ccodecs_palette_mapper *mapper;
  const size_t row_bytes = (size_t)m->width * m->channels;
  uint8_t *before = malloc(row_bytes), *kept = malloc(m->width);
  if (ccodecs_palette_mapper_create(palette, m->width, &budget, &mapper) != CCODECS_OK) {
    expect(false, "there is memory");
    return;
  }
  for (uint32_t y = 0; y < m->height; y++) {
    uint8_t *row = m->pixels + y * row_bytes, *indices = m->indices + (size_t)y * m->width;
    memcpy(before, row, row_bytes);
    memcpy(kept, indices, m->width);
    const uint32_t changes = below(20);
    for (uint32_t x = 0; x < m->width; x++) {
      row[(size_t)x * m->channels] += below(40) < changes ? (uint8_t)(1 + below(9)) : 0;
    }
    const uint8_t tolerance = (uint8_t)below(3);
    const ccodecs_palette_previous previous = {before, indices, tolerance};
    ccodecs_palette_mapper_map(mapper, row, m->channels, m->width, &previous, indices);
    for (uint32_t x = 0; x < m->width; x++) {
      const int difference = row[(size_t)x * m->channels] - before[(size_t)x * m->channels];
      expect(abs(difference) > tolerance || indices[x] == kept[x], "a pixel that does not change keeps its index");
    }
  }
  digest_bytes(m->indices, (size_t)m->width * m->height);
  ccodecs_palette_mapper_destroy(mapper);
  free(before);
  free(kept);
}

/// Maps a frame of which some pixels change as ccodecs_palette_mapper_map does if the palette has all of its colors,
/// and refuses the first row with another one.
static void check_exact(const image *m) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  const size_t row_bytes = (size_t)m->width * m->channels;
  ccodecs_palette palette;
  ccodecs_palette_mapper *mapper;
  uint8_t *before = malloc(row_bytes), *kept = calloc(m->width, 1), *expected = malloc(m->width);
  if (!build(m, CCODECS_PALETTE_RESERVED, 256, &budget, &palette) ||
      ccodecs_palette_mapper_create(&palette, m->width, &budget, &mapper) != CCODECS_OK) {
    expect(false, "there is memory");
    return;
  }
  for (uint32_t y = 0; y < m->height; y++) {
    uint8_t *row = m->pixels + y * row_bytes, *indices = m->indices + (size_t)y * m->width;
    const uint32_t changes = below(20);
    for (size_t i = 0; i < row_bytes; i++) {
      before[i] = row[i] ^ (below(20) < changes ? 1 : 0);
    }
    const ccodecs_palette_previous previous = {before, kept, 0}, *used = below(4) == 0 ? NULL : &previous;
    const bool is_mapped = ccodecs_palette_mapper_map_exact(mapper, row, m->channels, m->width, used, indices);
    expect(is_mapped == palette.is_exact, "a row is mapped if the palette has its colors");
    ccodecs_palette_mapper_map(mapper, row, m->channels, m->width, used, expected);
    expect(!is_mapped || memcmp(indices, expected, m->width) == 0, "exact colors are mapped as others are");
    const size_t place = below(m->width) * (size_t)m->channels;
    row[place] ^= 0x55;
    uint8_t rgba[4];
    palette_split_key(palette_represented(palette_read_pixel(row + place, m->channels), true), rgba);
    bool has_color = rgba[3] == 0;
    for (uint32_t i = 0; i < palette.count; i++) {
      has_color = has_color || memcmp(palette.colors[i], rgba, 4) == 0;
    }
    const bool is_kept = used != NULL && memcmp(row + place, before + place, m->channels) == 0;
    expect(
        ccodecs_palette_mapper_map_exact(mapper, row, m->channels, m->width, used, expected) ==
            (palette.is_exact && (has_color || is_kept)),
        "a row with another color is refused");
    row[place] ^= 0x55;
  }
  ccodecs_palette_mapper_destroy(mapper);
  free(before);
  free(kept);
  free(expected);
}

/// Repeats everything with less memory than it needs.
static void check_memory(const image *m, const ccodecs_palette *palette, ccodecs_palette_transparency transparency) {
  ccodecs_palette other;
  ccodecs_budget budget = {.limit = below(CCODECS_PALETTE_HISTOGRAM_BYTES + CCODECS_PALETTE_BUILD_BYTES)};
  const bool is_built = build(m, transparency, 2 + below(255), &budget, &other);
  expect(is_built || budget.wanted > budget.limit, "only a lack of memory fails");
  expect(budget.used == 0, "all memory of building is released");
  budget.limit = below(CCODECS_PALETTE_MAPPER_BYTES + CCODECS_PALETTE_MAPPER_PIXEL_BYTES * m->width);
  const bool is_mapped = map(m, palette, &budget);
  expect(is_mapped || budget.wanted > budget.limit, "only a lack of memory fails mapping");
  expect(budget.used == 0, "all memory of mapping is released");
}

static void check_image(void) {
  image m = random_image();
  const ccodecs_palette_transparency transparency = (ccodecs_palette_transparency)below(3);
  const uint32_t max_colors = below(3) == 0 ? 256 : 2 + below(255);
  ccodecs_budget budget = {.limit = SIZE_MAX};
  ccodecs_palette palette;
  expect(build(&m, transparency, max_colors, &budget, &palette), "a palette is built");
  expect(
      budget.peak <= (size_t)CCODECS_PALETTE_HISTOGRAM_BYTES + CCODECS_PALETTE_BUILD_BYTES,
      "building stays below its documented memory");
  budget.peak = budget.used;
  expect(map(&m, &palette, &budget), "pixels are mapped");
  expect(
      budget.peak <= CCODECS_PALETTE_MAPPER_BYTES + (size_t)CCODECS_PALETTE_MAPPER_PIXEL_BYTES * m.width,
      "mapping stays below its documented memory");
  expect(budget.used == 0, "all memory is released");
  check_palette(&palette, max_colors);
  const uint32_t reserved = transparency == CCODECS_PALETTE_RESERVED ? 1 : 0;
  if (distinct_colors(&m, transparency) + reserved <= max_colors) {
    expect(palette.is_exact, "few colors are exact");
  }
  check_pixels(&m, &palette);
  digest_bytes(&palette, sizeof palette);
  digest_bytes(m.indices, (size_t)m.width * m.height);
  check_memory(&m, &palette, transparency);
  if (map(&m, &palette, &budget)) { // check_memory may have left half of the indices
    check_next_frame(&m, &palette);
  }
  check_exact(&m);
  free_image(&m);
}

/// Colors whose keys share slots must not make counting slow: the work is counted in bits that were dropped.
static void check_collisions(void) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  ccodecs_palette_histogram *histogram;
  if (ccodecs_palette_histogram_create(CCODECS_PALETTE_ALPHA, &budget, &histogram) != CCODECS_OK) {
    expect(false, "there is memory");
    return;
  }
  for (uint32_t color = 0; color < 1u << 24; color++) {
    const uint32_t key = color | 0xff000000u;
    const uint8_t rgba[4] = {(uint8_t)key, (uint8_t)(key >> 8), (uint8_t)(key >> 16), 255};
    if (((key ^ key >> 15) * 0x9e3779b1u >> 16) < 64) {
      ccodecs_palette_histogram_add(histogram, rgba, 4, 1);
    }
  }
  expect(histogram->dropped_bits > 0 && histogram->bin_count < 16384, "colors that share slots are merged");
  ccodecs_palette_histogram_destroy(histogram);
}

int main(int argc, char **argv) {
  const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  static palette_nearest nearest;
  static palette_space space;
  ccodecs_palette_space_fill(&space);
  check_range(&space);
  check_full(&nearest);
  check_collisions();
  for (; round_number < rounds && defects == 0; round_number++) {
    check_nearest(&nearest);
    check_colors(&space);
    check_image();
  }
  if (defects > 0) {
    printf("%" PRIu64 " defects\n", defects);
    return 1;
  }
  printf("%" PRIu64 " palettes, digest %016" PRIx64 "\n", rounds, digest);
  return 0;
}

// libFuzzer target: palettes of arbitrary frames, with the promises of palette.h.
//
// The first bytes are the options, the others are the pixels of frames of the same size. seeds.py writes seeds.

#include "palette/palette.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 8, MAX_FRAMES = 6 };

typedef struct options {
  uint32_t max_colors;
  uint32_t channels;
  ccodecs_palette_transparency transparency;
  uint32_t width;
  uint32_t frame_count; ///< That the pixels are divided into.
  uint8_t tolerance;
  bool is_rebuilt; ///< A palette for each frame, of the frames so far.
  size_t budget_bytes;
} options;

static void check(bool holds, const char *promise) {
  if (!holds) {
    fprintf(stderr, "broken promise: %s\n", promise);
    abort();
  }
}

static options read_options(const uint8_t *bytes) {
  return (options){
      .max_colors = 2 + bytes[0] % 255u,
      .channels = (uint32_t[]){1, 3, 4}[bytes[1] % 3],
      .transparency = (ccodecs_palette_transparency)(bytes[2] % 3),
      .width = 1 + bytes[3],
      .frame_count = 1 + bytes[4] % (uint32_t)MAX_FRAMES,
      .tolerance = bytes[5] % 8,
      .is_rebuilt = (bytes[6] & 1) != 0,
      .budget_bytes = bytes[7] < 128 ? (size_t)bytes[7] << 16 : SIZE_MAX, // rarely too little
  };
}

/// Copies a row so that a sanitizer detects reads beyond it.
static uint8_t *copied(const uint8_t *bytes, size_t count) {
  uint8_t *copy = malloc(count);
  check(copy != NULL, "memory for a row");
  memcpy(copy, bytes, count);
  return copy;
}

static bool is_transparent(const uint8_t *pixel, uint32_t channels) {
  return channels == 4 && pixel[3] < 128;
}

/// Maps a frame over the indices of the previous one, whose pixels are `before`, or NULL.
static void map_frame(
    ccodecs_palette_mapper *mapper, const options *o, const ccodecs_palette *palette, const uint8_t *pixels,
    const uint8_t *before, uint8_t *indices, size_t row_count) {
  const size_t row_bytes = (size_t)o->width * o->channels;
  ccodecs_palette_mapper_begin(mapper);
  for (size_t y = 0; y < row_count; y++) {
    uint8_t *row = copied(pixels + y * row_bytes, row_bytes), *kept = copied(indices + y * o->width, o->width);
    uint8_t *mapped = malloc(o->width);
    const ccodecs_palette_previous previous = {before + (before == NULL ? 0 : y * row_bytes), kept, o->tolerance};
    ccodecs_palette_mapper_map(mapper, row, o->channels, o->width, before == NULL ? NULL : &previous, mapped);
    for (uint32_t x = 0; x < o->width; x++) {
      const uint8_t *pixel = row + (size_t)x * o->channels;
      check(mapped[x] < palette->count, "an index is one of the palette");
      const bool is_same = before != NULL && memcmp(pixel, previous.pixels + (size_t)x * o->channels, o->channels) == 0;
      check(!is_same || mapped[x] == kept[x], "a pixel that does not change keeps its index");
      const bool is_mapped_transparent = palette->colors[mapped[x]][3] == 0;
      if (palette->is_binary && before == NULL && palette->count > 1) {
        check(
            is_mapped_transparent == (palette->transparent >= 0 && is_transparent(pixel, o->channels)),
            "a pixel is transparent if that of the image is");
      }
    }
    memcpy(indices + y * o->width, mapped, o->width);
    free(row);
    free(kept);
    free(mapped);
  }
}

static void check_palette(const ccodecs_palette *palette, uint32_t max_colors) {
  check(palette->count >= 1 && palette->count <= max_colors, "the number of colors is within the limit");
  check(palette->opaque_first <= palette->count && palette->transparent <= 0, "colors are sorted by alpha");
  for (uint32_t i = 0; i < palette->count; i++) {
    check((palette->colors[i][3] == 255) == (i >= palette->opaque_first), "opaque colors come last");
  }
}

/// Counts, builds and maps. A failure is a lack of memory.
static void run(const options *o, ccodecs_budget *budget, const uint8_t *pixels, size_t row_count, uint8_t *indices) {
  const size_t frame_bytes = (size_t)o->width * o->channels * row_count;
  ccodecs_palette_histogram *histogram;
  if (ccodecs_palette_histogram_create(o->transparency, budget, &histogram) != CCODECS_OK) {
    return;
  }
  for (uint32_t frame = 0; frame < o->frame_count; frame++) {
    ccodecs_palette_histogram_add(
        histogram, pixels + frame * frame_bytes, o->channels, (uint32_t)(o->width * row_count));
    ccodecs_palette palette;
    if ((!o->is_rebuilt && frame + 1 < o->frame_count) ||
        ccodecs_palette_build(histogram, o->max_colors, &palette) != CCODECS_OK) {
      continue;
    }
    check_palette(&palette, o->max_colors);
    ccodecs_palette_mapper *mapper;
    if (ccodecs_palette_mapper_create(&palette, o->width, budget, &mapper) != CCODECS_OK) {
      continue;
    }
    const double error = ccodecs_palette_mapper_error(mapper, histogram, INFINITY);
    check(error >= 0 && (!palette.is_exact || error == 0), "an exact palette has no error");
    for (uint32_t i = 0; i < o->frame_count; i++) {
      const uint8_t *frame_pixels = pixels + i * frame_bytes;
      map_frame(mapper, o, &palette, frame_pixels, i == 0 ? NULL : frame_pixels - frame_bytes, indices, row_count);
    }
    ccodecs_palette_mapper_destroy(mapper);
  }
  ccodecs_palette_histogram_destroy(histogram);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  if (count < HEADER_BYTES) {
    return 0;
  }
  const options o = read_options(bytes);
  const size_t row_bytes = (size_t)o.width * o.channels;
  const size_t row_count = (count - HEADER_BYTES) / o.frame_count / row_bytes;
  if (row_count == 0) {
    return 0;
  }
  ccodecs_budget budget = {.limit = o.budget_bytes};
  uint8_t *indices = calloc(row_count, o.width);
  check(indices != NULL, "memory for indices");
  run(&o, &budget, bytes + HEADER_BYTES, row_count, indices);
  check(budget.used == 0, "everything is released");
  free(indices);
  return 0;
}

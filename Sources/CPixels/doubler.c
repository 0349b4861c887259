// Doubles planes of chroma as libjpeg does, in integers: three parts of the nearer sample and one of the other, where
// rounding goes up and down in turn.

#include "kernels.h"

#include <string.h>

/// The number of rows in the ring: both that an output row needs, and others that are pushed meanwhile.
enum { RING_ROWS = 16 };

struct cpixels_doubler {
  cpixels_doubler_options options;
  bool is_copied; ///< Samples are repeated, because there are too few to mix.
  uint8_t *ring;
  uint16_t *sums; ///< Three parts of a row and one of the other one.
  uint32_t pushed;
  uint32_t given;
};

static bool is_valid(const cpixels_doubler_options *options) {
  const uint32_t across = options->doubles_columns ? 2 : 1;
  const uint32_t down = options->doubles_rows ? 2 : 1;
  const uint32_t limit = 1u << 26;
  return options->width >= 1 && options->height >= 1 && options->width <= limit && options->height <= limit &&
         options->source_width == (options->width + across - 1) / across &&
         options->source_height == (options->height + down - 1) / down;
}

static void place(cpixels_arena *arena, cpixels_doubler *d) {
  d->ring = cpixels_arena_take(arena, RING_ROWS, d->options.source_width);
  d->sums = cpixels_arena_take(arena, d->options.source_width, sizeof *d->sums);
}

bool cpixels_doubler_measure(const cpixels_doubler_options *options, size_t *byte_count) {
  if (!is_valid(options)) {
    return false;
  }
  cpixels_doubler measured = {.options = *options};
  cpixels_arena arena = {0};
  cpixels_arena_take(&arena, 1, sizeof measured);
  place(&arena, &measured);
  *byte_count = arena.used;
  return !arena.overflowed;
}

cpixels_doubler *cpixels_doubler_init(const cpixels_doubler_options *options, void *memory) {
  if (!is_valid(options)) {
    return NULL;
  }
  cpixels_arena arena = {.base = memory};
  cpixels_doubler *d = cpixels_arena_take(&arena, 1, sizeof *d);
  *d = (cpixels_doubler){.options = *options, .is_copied = options->doubles_columns && options->source_width <= 2};
  place(&arena, d);
  return d;
}

/// Returns the source row that is nearer to a destination row.
static uint32_t near_row(const cpixels_doubler *d, uint32_t row) {
  return d->options.doubles_rows ? row / 2 : row;
}

/// Returns the other source row that a destination row needs.
static uint32_t far_row(const cpixels_doubler *d, uint32_t row) {
  const uint32_t near = near_row(d, row);
  if (!d->options.doubles_rows || d->is_copied) {
    return near;
  }
  if (row % 2 == 0) {
    return near == 0 ? 0 : near - 1;
  }
  return near + 1 < d->options.source_height ? near + 1 : near;
}

static const uint8_t *ring_row(const cpixels_doubler *d, uint32_t row) {
  return d->ring + (size_t)(row % RING_ROWS) * d->options.source_width;
}

/// Doubles a row of sums. `even` and `odd` are added at even and odd columns before the shift, which rounds them.
CPIXELS_INLINE void double_columns(
    const uint16_t *restrict sums, uint32_t count, const uint32_t shift, uint16_t even, uint16_t odd, uint32_t width,
    uint8_t *restrict row) {
  const uint32_t last = count - 1;
  row[0] = (uint8_t)((sums[0] * 4u + even) >> shift);
  for (uint32_t i = 0; i < last; i++) { // vectorized by the compiler
    const uint16_t left = (uint16_t)(sums[i] * 3 + sums[i + 1] + odd);
    const uint16_t right = (uint16_t)(sums[i + 1] * 3 + sums[i] + even);
    row[2 * i + 1] = (uint8_t)(left >> shift);
    row[2 * i + 2] = (uint8_t)(right >> shift);
  }
  if (2 * last + 1 < width) {
    row[2 * last + 1] = (uint8_t)((sums[last] * 4u + odd) >> shift);
  }
}

static void write_row(const cpixels_doubler *d, uint32_t at, uint8_t *row) {
  const cpixels_doubler_options *options = &d->options;
  const uint8_t *near = ring_row(d, near_row(d, at));
  const uint8_t *far = ring_row(d, far_row(d, at));
  const uint32_t count = options->source_width;
  if (d->is_copied) {
    for (uint32_t x = 0; x < options->width; x++) {
      row[x] = near[x / 2];
    }
  } else if (!options->doubles_rows && !options->doubles_columns) {
    memcpy(row, near, count);
  } else if (!options->doubles_columns) {
    for (uint32_t i = 0; i < count; i++) {
      row[i] = (uint8_t)((near[i] * 3u + far[i] + (at % 2 == 0 ? 1u : 2u)) >> 2);
    }
  } else if (!options->doubles_rows) {
    for (uint32_t i = 0; i < count; i++) {
      d->sums[i] = near[i];
    }
    double_columns(d->sums, count, 2, 1, 2, options->width, row);
  } else {
    for (uint32_t i = 0; i < count; i++) {
      d->sums[i] = (uint16_t)(near[i] * 3u + far[i]);
    }
    double_columns(d->sums, count, 4, 8, 7, options->width, row);
  }
}

size_t cpixels_doubler_push(cpixels_doubler *d, const uint8_t *rows, size_t row_stride, size_t row_count) {
  for (size_t i = 0; i < row_count; i++) {
    if (d->pushed == d->options.source_height || d->given == d->options.height) {
      return row_count;
    }
    const uint32_t near = near_row(d, d->given);
    const uint32_t far = far_row(d, d->given);
    if (d->pushed - (near < far ? near : far) >= RING_ROWS) {
      return i;
    }
    memcpy(
        d->ring + (size_t)(d->pushed % RING_ROWS) * d->options.source_width, rows + i * row_stride,
        d->options.source_width);
    d->pushed++;
  }
  return row_count;
}

size_t cpixels_doubler_read(cpixels_doubler *d, uint8_t *rows, size_t row_stride, size_t capacity) {
  size_t count = 0;
  for (; count < capacity && d->given < d->options.height; count++, d->given++) {
    const uint32_t near = near_row(d, d->given);
    const uint32_t far = far_row(d, d->given);
    if ((near > far ? near : far) >= d->pushed) {
      break;
    }
    write_row(d, d->given, rows + count * row_stride);
  }
  return count;
}

void cpixels_doubler_reset(cpixels_doubler *d) {
  d->pushed = 0;
  d->given = 0;
}

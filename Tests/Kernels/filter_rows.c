// Compares PNG filters that are applied to a row at once, and the choice among them, with one filter after the other.

#include "check.h"
#include "png/png_encoder.h"

enum { MAX_COUNT = 400, MAX_PIXEL = 8 };

static uint8_t rows[2][MAX_PIXEL + MAX_COUNT];
static uint8_t expected[PNG_FILTER_COUNT * (MAX_COUNT + 1) + GUARD], candidates[sizeof expected];

/// Returns the sum of the magnitudes of bytes.
static uint64_t magnitude(const uint8_t *bytes, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    sum += bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
  }
  return sum;
}

/// Applies each filter by itself. Returns the best one.
static ccodecs_png_filter filter_each(png_encoder e) {
  ccodecs_png_filter best = CCODECS_PNG_FILTER_NONE;
  uint64_t minimum = UINT64_MAX;
  e.candidates = expected;
  for (ccodecs_png_filter way = CCODECS_PNG_FILTER_NONE; way < PNG_FILTER_COUNT; way++) {
    e.filter = way;
    const uint64_t sum = magnitude(ccodecs_png_filter_row(&e) + 1, e.row_bytes);
    best = sum < minimum ? way : best;
    minimum = sum < minimum ? sum : minimum;
  }
  return best;
}

static void check_row(size_t pixel_bytes, size_t count) {
  const uint32_t levels = 1 + next_random() % 256;
  for (size_t r = 0; r < 2; r++) {
    fill(rows[r] + MAX_PIXEL, MAX_COUNT);
    for (size_t i = 0; levels < 128 && i < count; i++) {
      rows[r][MAX_PIXEL + i] %= levels; // similar bytes trigger the ties of the Paeth filter
    }
  }
  png_encoder e = {
      .row_bytes = count,
      .pixel_bytes = pixel_bytes,
      .filter = CCODECS_PNG_FILTER_ADAPTIVE,
      .above = rows[0] + MAX_PIXEL,
      .current = rows[1] + MAX_PIXEL,
      .candidates = candidates,
  };
  if (memcmp(e.above, e.current, count) == 0) { // not filtered
    return;
  }
  const ccodecs_png_filter best = filter_each(e);
  const uint8_t *chosen = ccodecs_png_filter_row(&e);
  report("the best filter", chosen == candidates + best * (count + 1) && chosen[0] == (uint8_t)best);
  for (uint32_t way = 0; way < PNG_FILTER_COUNT; way++) {
    candidates[way * (count + 1)] = (uint8_t)way;
  }
  report("filters", memcmp(expected, candidates, sizeof expected) == 0);
}

void check_filter_rows(void) {
  for (size_t pixel_bytes = 1; pixel_bytes <= MAX_PIXEL; pixel_bytes++) {
    for (size_t i = 0; i < 20; i++) {
      memset(expected, 0, sizeof expected);
      memset(candidates, 0, sizeof candidates);
      check_row(pixel_bytes, 1 + next_random() % (i % 2 == 0 ? MAX_COUNT : 40));
    }
  }
}

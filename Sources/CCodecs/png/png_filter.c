// PNG row filters, applied before compression.
//
// The scalar versions; png_filter_lanes.h applies all filters in one pass.
//
// Sources: PNG specification (third edition), sections 9 and 12.7.

#include "png_encoder.h"

#include <cinstructions.h>

static uint8_t paeth(int left, int up, int corner) {
  const int to_left = up - corner;
  const int to_up = left - corner;
  const int distance_left = to_left < 0 ? -to_left : to_left;
  const int distance_up = to_up < 0 ? -to_up : to_up;
  const int to_corner = to_left + to_up;
  const int distance_corner = to_corner < 0 ? -to_corner : to_corner;
  const int nearest = distance_up < distance_left ? distance_up : distance_left;
  const int of_two = distance_up < distance_left ? up : left;
  return (uint8_t)(distance_corner < nearest ? corner : of_two);
}

/// Applies one filter to a row. `row` and `above` must be preceded by zeros.
static void filter(
    ccodecs_png_filter way, const uint8_t *row, const uint8_t *above, size_t step, size_t count,
    uint8_t *restrict out) {
  const uint8_t *restrict left = row - step;
  const uint8_t *restrict corner = above - step;
  switch (way) {
  case CCODECS_PNG_FILTER_SUB:
    for (size_t i = 0; i < count; i++) {
      out[i] = (uint8_t)(row[i] - left[i]);
    }
    return;
  case CCODECS_PNG_FILTER_UP:
    for (size_t i = 0; i < count; i++) {
      out[i] = (uint8_t)(row[i] - above[i]);
    }
    return;
  case CCODECS_PNG_FILTER_AVERAGE:
    for (size_t i = 0; i < count; i++) {
      out[i] = (uint8_t)(row[i] - (left[i] + above[i]) / 2);
    }
    return;
  case CCODECS_PNG_FILTER_PAETH:
    for (size_t i = 0; i < count; i++) {
      out[i] = (uint8_t)(row[i] - paeth(left[i], above[i], corner[i]));
    }
    return;
  case CCODECS_PNG_FILTER_NONE:
  case CCODECS_PNG_FILTER_ADAPTIVE: // resolved by the caller
    memcpy(out, row, count);
  }
}

static bool all_are_zero(const uint8_t *bytes, size_t count) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

/// Sets a candidate to the result of the filter UP, or NONE if the row is zero, for a row that equals the one above.
/// No filter that is tried later has a smaller sum, and those tried earlier have one above 0, so that the choice is the
/// same as if all were tried. A constant image, which any format stores in a few bytes, takes a fourth of the time.
static const uint8_t *repeated_row(png_encoder *e) {
  const bool is_zero = all_are_zero(e->current, e->row_bytes);
  const ccodecs_png_filter way = is_zero ? CCODECS_PNG_FILTER_NONE : CCODECS_PNG_FILTER_UP;
  uint8_t *candidate = e->candidates + way * (e->row_bytes + 1);
  memset(candidate, 0, e->row_bytes + 1);
  candidate[0] = (uint8_t)way;
  return candidate;
}

typedef void (*filter_all)(const png_filter_row *row, uint64_t sums[PNG_FILTER_COUNT]);

/// Returns the version of all filters for this processor.
static filter_all best_filter_all(void) {
#if defined(__x86_64__)
  if (cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2")) {
    return ccodecs_png_filter_avx2;
  }
#endif
  return ccodecs_png_filter_base;
}

/// Applies each filter to `current`. Returns the first candidate with the smallest sum.
static const uint8_t *best_candidate(png_encoder *e) {
  const size_t stride = e->row_bytes + 1;
  ccodecs_png_filter best = CCODECS_PNG_FILTER_NONE;
  uint64_t sums[PNG_FILTER_COUNT];
  const png_filter_row row = {e->current, e->above, e->pixel_bytes, e->row_bytes, e->candidates + 1, stride};
  best_filter_all()(&row, sums);
  for (ccodecs_png_filter way = CCODECS_PNG_FILTER_SUB; way < PNG_FILTER_COUNT; way++) {
    best = sums[way] < sums[best] ? way : best;
  }
  e->candidates[best * stride] = (uint8_t)best;
  return e->candidates + best * stride;
}

const uint8_t *ccodecs_png_filter_row(png_encoder *e) {
  if (e->filter == CCODECS_PNG_FILTER_ADAPTIVE) {
    const bool is_repeated = memcmp(e->current, e->above, e->row_bytes) == 0;
    return is_repeated ? repeated_row(e) : best_candidate(e);
  }
  uint8_t *candidate = e->candidates + e->filter * (e->row_bytes + 1);
  candidate[0] = (uint8_t)e->filter;
  filter(e->filter, e->current, e->above, e->pixel_bytes, e->row_bytes, candidate + 1);
  return candidate;
}

// The streaming resampler: its state and control flow. resize_axis.c computes the weights; resize_scalar.c and its
// vector versions do the arithmetic on samples.

#include "kernels.h"

#include <string.h>

/// The number of pairs in the ring beyond those that one output row needs, so that several rows can be pushed at once.
static const uint32_t ring_slack = 4;

struct cpixels_resizer {
  cpixels_resizer_options options;
  const cpixels_resize_kernels *kernels;
  cpixels_axis horizontal;
  cpixels_axis vertical;
  cpixels_light *light; ///< NULL unless samples are resampled in linear light.
  uint32_t lane_count;  ///< The number of floating-point samples per pixel: 1 or 4.
  size_t column_count;  ///< The row length of an intermediate plane in samples, a multiple of CPIXELS_COLUMN_MULTIPLE.
  size_t source_row_size;
  size_t source_stride; ///< The stride between the planes of a source row.
  size_t ring_pair_size;
  uint32_t ring_pair_count;
  uint8_t *ring;       ///< [ring_pair_count] Pairs, plane by plane; with floats, row by row.
  const void **window; ///< The pairs or rows under the kernel.
  void *pending;       ///< The first row of a pair whose second row has not arrived yet.
  void *source_planes; ///< Two source rows, as planes or as floats; NULL if rows are used as they are.
  void *output_planes; ///< One destination row before its planes are joined; NULL if not needed.
  uint32_t pushed;     ///< The number of source rows consumed.
  uint32_t given;      ///< The number of destination rows read, or left out above them.
  uint32_t end;        ///< The destination row before which reading ends.
};

/// Returns whether samples are resampled in fixed point; others are converted to floats.
static bool is_fixed(const cpixels_resizer *r) {
  return r->options.sample == CPIXELS_SAMPLE_U8 && !r->options.in_linear_light;
}

static cpixels_light_pixels light_pixels(const cpixels_resizer *r) {
  return (cpixels_light_pixels){
      .channels = r->options.channels,
      .is_16bit = r->options.sample == CPIXELS_SAMPLE_U16,
      .has_alpha = r->options.has_alpha};
}

// MARK: Memory

static const cpixels_resize_kernels *kernels_of(cpixels_isa isa) {
  switch (cpixels_isa_resolve(isa)) {
#if defined(__x86_64__)
  case CPIXELS_ISA_AVX2:
    return &cpixels_resize_avx2;
  case CPIXELS_ISA_AVX512:
    return &cpixels_resize_avx512;
#elif defined(__aarch64__)
  case CPIXELS_ISA_NEON:
    return &cpixels_resize_neon;
#endif
  default:
    return &cpixels_resize_scalar;
  }
}

static void place_fixed(cpixels_arena *arena, cpixels_resizer *r) {
  const size_t channels = r->options.channels;
  const cpixels_axis_options *horizontal = &r->options.horizontal;
  cpixels_axis_place(arena, horizontal, cpixels_axis_choose(horizontal, r->kernels), r->kernels, true, &r->horizontal);
  cpixels_axis_place(arena, &r->options.vertical, CPIXELS_LAYOUT_PAIRS, r->kernels, true, &r->vertical);
  r->source_row_size = horizontal->source_count * channels;
  r->source_stride = cpixels_round_up(horizontal->source_count, 64);
  r->ring_pair_size = channels * r->column_count * 2 * sizeof(int16_t);
  if (channels > 1) {
    r->source_planes = cpixels_arena_take(arena, 2 * channels, r->source_stride);
    r->output_planes = cpixels_arena_take(arena, channels, r->column_count);
  }
}

static void place_float(cpixels_arena *arena, cpixels_resizer *r) {
  const cpixels_axis_options *horizontal = &r->options.horizontal;
  const cpixels_axis_options *vertical = &r->options.vertical;
  const bool is_copy = cpixels_axis_choose(horizontal, &cpixels_resize_scalar) == CPIXELS_LAYOUT_COPY;
  cpixels_axis_place(
      arena, horizontal, is_copy ? CPIXELS_LAYOUT_COPY : CPIXELS_LAYOUT_PLAIN, r->kernels, false, &r->horizontal);
  cpixels_axis_place(arena, vertical, CPIXELS_LAYOUT_PLAIN, r->kernels, false, &r->vertical);
  r->lane_count = r->options.channels == 1 ? 1 : 4;
  const size_t sample_size = r->options.sample == CPIXELS_SAMPLE_U16 ? sizeof(uint16_t) : 1;
  r->source_row_size = (size_t)horizontal->source_count * r->options.channels * sample_size;
  r->source_stride = ((size_t)horizontal->source_count + r->horizontal.window) * r->lane_count;
  r->ring_pair_size = 2 * r->column_count * r->lane_count * sizeof(float);
  r->source_planes = cpixels_arena_take(arena, 2 * r->source_stride, sizeof(float));
  if (r->options.in_linear_light) {
    r->light = cpixels_arena_take(arena, 1, sizeof *r->light);
    r->output_planes = cpixels_arena_take(arena, r->column_count * r->lane_count, sizeof(float));
  } else if (r->options.channels == 3) {
    r->output_planes = cpixels_arena_take(arena, r->column_count * r->lane_count, sizeof(uint16_t));
  }
}

/// Allocates all memory except init's scratch. `r->options` and `r->kernels` must be set.
static void place(cpixels_arena *arena, cpixels_resizer *r) {
  r->column_count = cpixels_round_up(r->options.horizontal.destination_count, CPIXELS_COLUMN_MULTIPLE);
  if (is_fixed(r)) {
    place_fixed(arena, r);
  } else {
    place_float(arena, r);
  }
  r->pending = cpixels_arena_take(arena, r->source_row_size, 1);
  r->window = cpixels_arena_take(arena, (size_t)r->vertical.tap_count + 1, sizeof(void *));
  r->ring_pair_count = r->vertical.tap_count / 2 + 1 + ring_slack;
  r->ring = cpixels_arena_take(arena, r->ring_pair_count, r->ring_pair_size);
}

static bool options_are_valid(const cpixels_resizer_options *options) {
  return cpixels_axis_is_valid(&options->horizontal) && cpixels_axis_is_valid(&options->vertical) &&
         (options->channels == 1 || options->channels == 3 || options->channels == 4) &&
         (!options->has_alpha || (options->in_linear_light && options->channels == 4)) &&
         (options->sample == CPIXELS_SAMPLE_U8 || options->sample == CPIXELS_SAMPLE_U16);
}

bool cpixels_resizer_measure(const cpixels_resizer_options *options, size_t *byte_count) {
  if (!options_are_valid(options)) {
    return false;
  }
  cpixels_resizer measured = {.options = *options, .kernels = kernels_of(options->isa)};
  cpixels_arena arena = {0};
  cpixels_arena_take(&arena, 1, sizeof measured);
  place(&arena, &measured);
  cpixels_arena_take_weights(&arena, measured.horizontal.window, measured.vertical.window);
  *byte_count = arena.used;
  return !arena.overflowed;
}

/// Fills an axis with weights: those of `known` if it is the same.
static void fill(const cpixels_axis *known, double *scratch, cpixels_axis *axis) {
  if (known == NULL || !cpixels_axis_copy(known, axis)) {
    cpixels_axis_fill(&axis->options, scratch, axis);
  }
}

cpixels_resizer *cpixels_resizer_init(
    const cpixels_resizer_options *options, const cpixels_resizer *known, void *memory) {
  if (!options_are_valid(options) || !cpixels_isa_is_available(options->isa)) {
    return NULL;
  }
  cpixels_arena arena = {.base = memory};
  cpixels_resizer *r = cpixels_arena_take(&arena, 1, sizeof *r);
  memset(r, 0, sizeof *r);
  r->options = *options;
  r->end = options->vertical.destination_count;
  r->kernels = kernels_of(options->isa);
  place(&arena, r);
  double *scratch = cpixels_arena_take_weights(&arena, r->horizontal.window, r->vertical.window);
  fill(known == NULL ? NULL : &known->horizontal, scratch, &r->horizontal);
  fill(known == NULL ? NULL : &known->vertical, scratch, &r->vertical);
  if (!is_fixed(r)) {
    memset(r->source_planes, 0, 2 * r->source_stride * sizeof(float)); // windows read beyond the rows
  }
  if (r->light != NULL) {
    cpixels_light_fill(r->options.sample == CPIXELS_SAMPLE_U16, r->light);
  }
  return r;
}

// MARK: Rows in

static uint8_t *ring_pair(const cpixels_resizer *r, uint32_t pair) {
  return r->ring + (size_t)(pair % r->ring_pair_count) * r->ring_pair_size;
}

static void push_pair_fixed(cpixels_resizer *r, const uint8_t *a, const uint8_t *b, int16_t *pairs) {
  const uint32_t channels = r->options.channels;
  if (channels == 1) {
    r->kernels->horizontal_u8(&r->horizontal, a, b, pairs);
    return;
  }
  uint8_t *planes_a = r->source_planes;
  uint8_t *planes_b = planes_a + channels * r->source_stride;
  r->kernels->split(a, r->horizontal.source_count, channels, planes_a, r->source_stride);
  r->kernels->split(b, r->horizontal.source_count, channels, planes_b, r->source_stride);
  for (uint32_t c = 0; c < channels; c++) {
    const size_t plane = c * r->source_stride;
    r->kernels->horizontal_u8(&r->horizontal, planes_a + plane, planes_b + plane, pairs + c * r->column_count * 2);
  }
}

/// Converts samples to floats, and three channels to four.
static void widen_row(const cpixels_resizer *r, const void *samples, float *lanes) {
  const size_t count = r->horizontal.source_count;
  if (r->light != NULL) {
    cpixels_linearize(r->light, r->kernels, light_pixels(r), samples, count, lanes);
    return;
  }
  const uint16_t *row = samples;
  if (r->options.channels != 3) {
    r->kernels->widen_u16(row, count * r->lane_count, lanes);
    return;
  }
  for (size_t i = 0; i < count; i++) {
    lanes[4 * i] = row[3 * i];
    lanes[4 * i + 1] = row[3 * i + 1];
    lanes[4 * i + 2] = row[3 * i + 2];
  }
}

static void push_pair_float(cpixels_resizer *r, const void *a, const void *b, float *pair) {
  float *lanes_a = r->source_planes;
  float *lanes_b = lanes_a + r->source_stride;
  widen_row(r, a, lanes_a);
  widen_row(r, b, lanes_b);
  r->kernels->horizontal_float(
      &r->horizontal, r->lane_count, lanes_a, lanes_b, pair, pair + r->column_count * r->lane_count);
}

static void push_pair(cpixels_resizer *r, uint32_t pair, const void *a, const void *b) {
  void *destination = ring_pair(r, pair);
  if (is_fixed(r)) {
    push_pair_fixed(r, a, b, destination);
  } else {
    push_pair_float(r, a, b, destination);
  }
}

/// Consumes one or two rows, which either no output row needs or for which the ring has room.
static size_t push_some(cpixels_resizer *r, const uint8_t *row, size_t row_stride, size_t row_count, bool is_needed) {
  const uint32_t pair = r->pushed / 2;
  const bool is_second = r->pushed % 2 == 1;
  const bool is_last = r->pushed + 1 == r->vertical.source_count;
  const size_t taken = is_second || is_last || row_count == 1 ? 1 : 2;
  r->pushed += (uint32_t)taken;
  if (!is_needed) {
    return taken;
  }
  if (is_second) {
    push_pair(r, pair, r->pending, row);
  } else if (is_last) {
    push_pair(r, pair, row, row);
  } else if (taken == 2) {
    push_pair(r, pair, row, row + row_stride);
  } else {
    memcpy(r->pending, row, r->source_row_size);
  }
  return taken;
}

size_t cpixels_resizer_push(cpixels_resizer *r, const void *rows, size_t row_stride, size_t row_count) {
  const uint8_t *first = rows;
  size_t taken = 0;
  while (taken < row_count) {
    if (r->given == r->end || r->pushed == r->vertical.source_count) {
      return row_count;
    }
    const uint32_t pair = r->pushed / 2;
    const uint32_t oldest = r->vertical.first[r->given] / 2;
    if (pair >= oldest + r->ring_pair_count) {
      return taken;
    }
    taken += push_some(r, first + taken * row_stride, row_stride, row_count - taken, pair >= oldest);
  }
  return taken;
}

// MARK: Rows out

/// Writes the next output row if the pairs under its kernel have arrived.
static bool read_row_fixed(cpixels_resizer *r, uint8_t *destination) {
  const uint32_t first_pair = r->vertical.first[r->given] / 2;
  const int16_t *weights = r->vertical.fixed_weights + (size_t)r->given * r->vertical.window;
  uint32_t pair_count = r->vertical.window / 2;
  while (weights[2 * pair_count - 2] == 0 && weights[2 * pair_count - 1] == 0) {
    pair_count--;
  }
  const bool is_complete = r->pushed == r->vertical.source_count;
  if (first_pair + pair_count > (r->pushed + is_complete) / 2) {
    return false;
  }
  for (uint32_t p = 0; p < pair_count; p++) {
    r->window[p] = ring_pair(r, first_pair + p);
  }
  const int16_t *const *pairs = (const int16_t *const *)r->window;
  const uint32_t channels = r->options.channels;
  const uint32_t width = r->horizontal.destination_count;
  if (channels == 1) {
    r->kernels->vertical_u8(pairs, weights, pair_count, width, destination);
  } else {
    r->kernels->vertical_u8(pairs, weights, pair_count, channels * r->column_count, r->output_planes);
    r->kernels->join(r->output_planes, r->column_count, width, channels, destination);
  }
  return true;
}

static bool read_row_float(cpixels_resizer *r, void *row) {
  const uint32_t first = r->vertical.first[r->given];
  const uint32_t row_count = r->vertical.tap_count;
  const bool is_complete = r->pushed == r->vertical.source_count;
  if (first + row_count > (is_complete ? r->pushed : r->pushed / 2 * 2)) {
    return false;
  }
  for (uint32_t t = 0; t < row_count; t++) {
    const float *pair = (const float *)(const void *)ring_pair(r, (first + t) / 2);
    r->window[t] = pair + (first + t) % 2 * r->column_count * r->lane_count;
  }
  const float *const *rows = (const float *const *)r->window;
  const float *weights = r->vertical.float_weights + (size_t)r->given * r->vertical.window;
  const size_t width = r->horizontal.destination_count;
  if (r->light != NULL) {
    float *light = r->output_planes;
    r->kernels->vertical_float(rows, weights, row_count, width * r->lane_count, light);
    cpixels_delinearize(r->light, light_pixels(r), light, width, row);
    return true;
  }
  uint16_t *destination = row;
  if (r->options.channels != 3) {
    r->kernels->vertical_u16(rows, weights, row_count, width * r->lane_count, destination);
    return true;
  }
  uint16_t *lanes = r->output_planes;
  r->kernels->vertical_u16(rows, weights, row_count, width * r->lane_count, lanes);
  for (size_t i = 0; i < width; i++, lanes += 4, destination += 3) {
    destination[0] = lanes[0];
    destination[1] = lanes[1];
    destination[2] = lanes[2];
  }
  return true;
}

size_t cpixels_resizer_read(cpixels_resizer *r, void *rows, size_t row_stride, size_t capacity) {
  uint8_t *destination = rows;
  size_t count = 0;
  for (; count < capacity && r->given < r->end; count++, destination += row_stride) {
    if (!(is_fixed(r) ? read_row_fixed(r, destination) : read_row_float(r, destination))) {
      break;
    }
    r->given++;
  }
  return count;
}

void cpixels_resizer_reset(cpixels_resizer *r) {
  r->pushed = 0;
  r->given = 0;
  r->end = r->vertical.destination_count;
}

void cpixels_resizer_keep(cpixels_resizer *r, uint32_t *above, uint32_t *below) {
  const cpixels_axis *axis = &r->vertical;
  while (r->given < r->end && axis->first[r->given] + axis->window <= *above) {
    r->given++;
  }
  while (r->end > r->given && axis->first[r->end - 1] >= axis->source_count - *below) {
    r->end--;
  }
  *above = r->given;
  *below = axis->destination_count - r->end;
}

size_t cpixels_resizer_skip(cpixels_resizer *r, size_t row_count) {
  if (r->given == r->end) {
    return row_count;
  }
  const uint32_t needed = r->vertical.first[r->given] / 2 * 2;
  const uint32_t unneeded = needed > r->pushed ? needed - r->pushed : 0;
  const size_t skipped = unneeded < row_count ? unneeded : row_count;
  r->pushed += (uint32_t)skipped;
  return skipped;
}

// The streaming resampler: weights, ring, and the order of things. The arithmetic is in resize_scalar.c and its
// vector siblings.

#include "kernels.h"

#include <math.h>
#include <string.h>

static const uint32_t largest_count = 1u << 26;
/// Rows that the ring holds beyond what one output row needs, so that rows can be pushed several at a time.
static const uint32_t ring_slack = 8;
static const double pi = 3.14159265358979323846;

struct cpixels_resizer {
  cpixels_resizer_options options;
  const cpixels_resize_kernels *kernels;
  cpixels_axis horizontal;
  cpixels_axis vertical;
  size_t row_sample_count;  ///< Samples of an intermediate and of a destination row.
  size_t intermediate_size; ///< Bytes of an intermediate sample.
  size_t source_row_bytes;
  uint8_t *source_row;      ///< A padded copy of the row that is being resampled.
  uint8_t *ring;            ///< [ring_rows][row_sample_count] intermediate samples.
  const void **rows;        ///< [vertical.tap_count] rows under the kernel.
  uint32_t ring_rows;
  uint32_t pushed;          ///< Source rows taken so far.
  uint32_t given;           ///< Destination rows read so far.
};

static double kernel_radius(cpixels_kernel kernel) {
  return kernel == CPIXELS_KERNEL_TRIANGLE ? 1 : 3;
}

static double kernel_value(cpixels_kernel kernel, double x) {
  x = fabs(x);
  if (x >= kernel_radius(kernel)) {
    return 0;
  }
  if (kernel == CPIXELS_KERNEL_TRIANGLE) {
    return 1 - x;
  }
  if (x < 1e-8) {
    return 1;
  }
  const double a = pi * x;
  return 3 * sin(a) * sin(a / 3) / (a * a);
}

static bool is_identity(const cpixels_axis_options *axis) {
  return axis->ratio == 1 && axis->offset == 0 && axis->source_count == axis->destination_count;
}

static bool axis_is_valid(const cpixels_axis_options *axis) {
  return axis->source_count >= 1 && axis->source_count <= largest_count && axis->destination_count >= 1 &&
         axis->destination_count <= largest_count && axis->ratio > 0 && axis->ratio <= largest_count &&
         isfinite(axis->offset) && fabs(axis->offset) <= largest_count &&
         (axis->kernel == CPIXELS_KERNEL_LANCZOS3 || axis->kernel == CPIXELS_KERNEL_TRIANGLE);
}

static uint32_t tap_count(const cpixels_axis_options *axis) {
  if (is_identity(axis)) {
    return 1;
  }
  const double stretch = axis->ratio > 1 ? axis->ratio : 1;
  const double count = ceil(2 * kernel_radius(axis->kernel) * stretch) + 1;
  return count < axis->source_count ? (uint32_t)count : axis->source_count;
}

static uint32_t round_up(uint32_t value, uint32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The weights of one destination sample over a window of `taps` source samples that begins at the returned one.
/// Taps outside the source go to its edge samples. `weights` sums to 1.
static uint32_t make_weights(
    const cpixels_axis_options *axis, uint32_t destination, uint32_t taps, double *weights) {
  memset(weights, 0, taps * sizeof *weights);
  if (is_identity(axis)) {
    weights[0] = 1;
    return destination;
  }
  const double stretch = axis->ratio > 1 ? axis->ratio : 1;
  const double radius = kernel_radius(axis->kernel) * stretch;
  const double centre = (destination + 0.5) * axis->ratio + axis->offset;
  const int64_t last_source = (int64_t)axis->source_count - 1;
  const int64_t left = (int64_t)ceil(centre - radius - 0.5);
  const int64_t right = (int64_t)floor(centre + radius - 0.5);
  int64_t first = left < 0 ? 0 : left;
  if (first > (int64_t)axis->source_count - taps) {
    first = (int64_t)axis->source_count - taps;
  }
  double sum = 0;
  for (int64_t s = left; s <= right; s++) {
    const double weight = kernel_value(axis->kernel, ((double)s + 0.5 - centre) / stretch);
    const int64_t inside = s < 0 ? 0 : s > last_source ? last_source : s;
    int64_t tap = inside - first;
    // A sample just outside the window can only be one whose weight rounding made tiny.
    tap = tap < 0 ? 0 : tap >= taps ? taps - 1 : tap;
    weights[tap] += weight;
    sum += weight;
  }
  for (uint32_t t = 0; t < taps; t++) {
    weights[t] /= sum;
  }
  return (uint32_t)first;
}

/// Rounds weights to Q14 so that they still sum to exactly 1: what rounding lost goes to the largest.
static void make_fixed(const double *weights, uint32_t taps, int16_t *fixed) {
  int32_t rest = 1 << CPIXELS_WEIGHT_BITS;
  uint32_t largest = 0;
  for (uint32_t t = 0; t < taps; t++) {
    fixed[t] = (int16_t)lrint(weights[t] * (1 << CPIXELS_WEIGHT_BITS));
    rest -= fixed[t];
    if (weights[t] > weights[largest]) {
      largest = t;
    }
  }
  fixed[largest] = (int16_t)(fixed[largest] + rest);
}

// MARK: Memory

/// Hands out parts of one block; with no block it only measures.
typedef struct arena {
  uint8_t *base;
  size_t used;
  bool overflowed;
} arena;

static void *take(arena *arena, size_t count, size_t size) {
  size_t bytes;
  size_t end;
  if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, (size_t)63, &bytes) ||
      __builtin_add_overflow(arena->used, bytes & ~(size_t)63, &end)) {
    arena->overflowed = true;
    return NULL;
  }
  void *part = arena->base == NULL ? NULL : arena->base + arena->used;
  arena->used = end;
  return part;
}

static void place_axis(arena *arena, const cpixels_axis_options *options, bool is_fixed, cpixels_axis *axis) {
  axis->source_count = options->source_count;
  axis->destination_count = options->destination_count;
  axis->tap_count = tap_count(options);
  axis->tap_stride = round_up(axis->tap_count, CPIXELS_TAP_MULTIPLE);
  const size_t weights = (size_t)axis->destination_count * axis->tap_stride;
  axis->first = take(arena, axis->destination_count, sizeof(uint32_t));
  axis->fixed_weights = is_fixed ? take(arena, weights, sizeof(int16_t)) : NULL;
  axis->float_weights = is_fixed ? NULL : take(arena, weights, sizeof(float));
}

static void place(arena *arena, cpixels_resizer *r) {
  const bool is_fixed = r->options.sample == CPIXELS_SAMPLE_U8;
  const size_t sample_size = is_fixed ? 1 : 2;
  place_axis(arena, &r->options.horizontal, is_fixed, &r->horizontal);
  place_axis(arena, &r->options.vertical, is_fixed, &r->vertical);
  r->row_sample_count = (size_t)r->horizontal.destination_count * r->options.channels;
  r->intermediate_size = is_fixed ? sizeof(int16_t) : sizeof(float);
  r->source_row_bytes = (size_t)r->horizontal.source_count * r->options.channels * sample_size;
  // Vector kernels read whole groups of taps, which may reach past the last sample.
  const size_t padding = ((size_t)r->horizontal.tap_stride * r->options.channels + CPIXELS_ROW_PADDING) * sample_size;
  r->source_row = take(arena, r->source_row_bytes + padding, 1);
  r->rows = take(arena, r->vertical.tap_count, sizeof(void *));
  r->ring_rows = r->vertical.tap_count + ring_slack;
  size_t ring_row_bytes;
  if (__builtin_mul_overflow(r->row_sample_count, r->intermediate_size, &ring_row_bytes)) {
    arena->overflowed = true;
    return;
  }
  r->ring = take(arena, r->ring_rows, ring_row_bytes);
}

static bool options_are_valid(const cpixels_resizer_options *options) {
  return axis_is_valid(&options->horizontal) && axis_is_valid(&options->vertical) &&
         (options->channels == 1 || options->channels == 3 || options->channels == 4) &&
         (options->sample == CPIXELS_SAMPLE_U8 || options->sample == CPIXELS_SAMPLE_U16);
}

bool cpixels_resizer_measure(const cpixels_resizer_options *options, size_t *byte_count) {
  if (!options_are_valid(options)) {
    return false;
  }
  cpixels_resizer measured = {.options = *options};
  arena arena = {0};
  take(&arena, 1, sizeof(cpixels_resizer));
  place(&arena, &measured);
  // The weights of one destination sample, in which init computes.
  const uint32_t taps =
      measured.horizontal.tap_count > measured.vertical.tap_count ? measured.horizontal.tap_count
                                                                  : measured.vertical.tap_count;
  take(&arena, taps, sizeof(double));
  *byte_count = arena.used;
  return !arena.overflowed;
}

static void fill_axis(const cpixels_axis_options *options, cpixels_axis *axis, double *weights) {
  for (uint32_t d = 0; d < axis->destination_count; d++) {
    axis->first[d] = make_weights(options, d, axis->tap_count, weights);
    const size_t at = (size_t)d * axis->tap_stride;
    if (axis->fixed_weights != NULL) {
      memset(axis->fixed_weights + at, 0, axis->tap_stride * sizeof(int16_t));
      make_fixed(weights, axis->tap_count, axis->fixed_weights + at);
    } else {
      memset(axis->float_weights + at, 0, axis->tap_stride * sizeof(float));
      for (uint32_t t = 0; t < axis->tap_count; t++) {
        axis->float_weights[at + t] = (float)weights[t];
      }
    }
  }
}

cpixels_resizer *cpixels_resizer_init(const cpixels_resizer_options *options, void *memory) {
  const cpixels_isa isa = cpixels_isa_resolve(options->isa);
  if (!options_are_valid(options) || isa == CPIXELS_ISA_BEST) {
    return NULL;
  }
  arena arena = {.base = memory};
  cpixels_resizer *r = take(&arena, 1, sizeof *r);
  memset(r, 0, sizeof *r);
  r->options = *options;
  place(&arena, r);
  const uint32_t taps =
      r->horizontal.tap_count > r->vertical.tap_count ? r->horizontal.tap_count : r->vertical.tap_count;
  double *weights = take(&arena, taps, sizeof *weights);
  r->kernels = &cpixels_resize_scalar;
#if defined(__x86_64__)
  if (isa == CPIXELS_ISA_AVX2) {
    r->kernels = &cpixels_resize_avx2;
  }
#endif
  fill_axis(&options->horizontal, &r->horizontal, weights);
  fill_axis(&options->vertical, &r->vertical, weights);
  memset(r->source_row, 0, (size_t)((uint8_t *)r->rows - r->source_row));
  return r;
}

// MARK: Rows

static void *ring_row(const cpixels_resizer *r, uint32_t row) {
  return r->ring + (size_t)(row % r->ring_rows) * r->row_sample_count * r->intermediate_size;
}

static void push_row(cpixels_resizer *r, const void *row) {
  memcpy(r->source_row, row, r->source_row_bytes);
  void *destination = ring_row(r, r->pushed);
  if (r->options.sample == CPIXELS_SAMPLE_U8) {
    r->kernels->horizontal_u8(&r->horizontal, r->options.channels, r->source_row, destination);
  } else {
    r->kernels->horizontal_u16(
        &r->horizontal, r->options.channels, (const uint16_t *)(const void *)r->source_row, destination);
  }
}

size_t cpixels_resizer_push(cpixels_resizer *r, const void *rows, size_t row_stride, size_t row_count) {
  const uint8_t *next = rows;
  for (size_t taken = 0; taken < row_count; taken++, next += row_stride) {
    if (r->given == r->vertical.destination_count || r->pushed == r->vertical.source_count) {
      return row_count;
    }
    const uint32_t oldest_needed = r->vertical.first[r->given];
    if (r->pushed >= oldest_needed) {
      if (r->pushed - oldest_needed >= r->ring_rows) {
        return taken;
      }
      push_row(r, next);
    }
    r->pushed++;
  }
  return row_count;
}

size_t cpixels_resizer_read(cpixels_resizer *r, void *rows, size_t row_stride, size_t capacity) {
  uint8_t *destination = rows;
  size_t count = 0;
  for (; count < capacity && r->given < r->vertical.destination_count; count++, destination += row_stride) {
    const uint32_t first = r->vertical.first[r->given];
    const uint32_t taps = r->vertical.tap_count;
    if (r->pushed < first + taps) {
      break;
    }
    for (uint32_t t = 0; t < taps; t++) {
      r->rows[t] = ring_row(r, first + t);
    }
    const size_t at = (size_t)r->given * r->vertical.tap_stride;
    if (r->options.sample == CPIXELS_SAMPLE_U8) {
      r->kernels->vertical_u8(
          (const int16_t *const *)r->rows, r->vertical.fixed_weights + at, taps, r->row_sample_count, destination);
    } else {
      r->kernels->vertical_u16(
          (const float *const *)r->rows, r->vertical.float_weights + at, taps, r->row_sample_count,
          (uint16_t *)(void *)destination);
    }
    r->given++;
  }
  return count;
}

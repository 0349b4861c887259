// The exact resampler: the arithmetic of Pillow, in integers, so that every instruction set gives the same samples.

#include "kernels.h"

#include <math.h>
#include <string.h>

enum {
  WEIGHT_BITS = 22,
  /// The rows in the ring beyond those that one output row needs, so that several can be pushed at once.
  RING_SLACK = 16,
  /// The number of samples that are summed side by side.
  BLOCK = 64,
};

/// Four samples of a pixel.
typedef int32_t lanes __attribute__((vector_size(16)));

/// The taps of each destination sample.
typedef struct exact_axis {
  bool is_copied;   ///< Destination samples are source samples.
  uint32_t window;  ///< The number of weights stored for each destination sample.
  uint32_t *first;  ///< [destination_count] The first source sample.
  uint32_t *count;  ///< [destination_count] The number of source samples.
  int32_t *weights; ///< [destination_count][window]
} exact_axis;

struct cpixels_exact {
  cpixels_resizer_options options;
  exact_axis horizontal;
  exact_axis vertical;
  size_t row_size; ///< The size of a row in the ring.
  uint32_t ring_count;
  uint8_t *ring;          ///< Rows after the horizontal pass, or source rows if it comes last.
  uint8_t *joined;        ///< A row of the source's width after the vertical pass; NULL if that comes last.
  lanes *pixels;          ///< A source row, one pixel per vector; NULL for one channel.
  uint8_t *premultiplied; ///< A source row; NULL without alpha.
  uint32_t pushed;        ///< The number of source rows consumed.
  uint32_t given;         ///< The number of destination rows read.
};

// MARK: Weights

static bool is_copied(const cpixels_axis_options *axis) {
  return axis->ratio == 1 && axis->offset == 0 && axis->source_count == axis->destination_count;
}

static double support_of(const cpixels_axis_options *axis) {
  const double radius = axis->kernel == CPIXELS_KERNEL_MEAN || axis->kernel == CPIXELS_KERNEL_BOX
                            ? 0.5
                            : cpixels_kernel_radius(axis->kernel);
  return axis->ratio > 1 ? radius * axis->ratio : radius;
}

static void place(cpixels_arena *arena, const cpixels_axis_options *options, exact_axis *axis) {
  axis->is_copied = is_copied(options);
  axis->window = axis->is_copied || options->kernel == CPIXELS_KERNEL_NEAREST
                     ? 1
                     : (uint32_t)fmin(ceil(support_of(options)) * 2 + 1, options->source_count);
  axis->first = cpixels_arena_take(arena, options->destination_count, sizeof *axis->first);
  axis->count = cpixels_arena_take(arena, options->destination_count, sizeof *axis->count);
  axis->weights = cpixels_arena_take(arena, (size_t)options->destination_count * axis->window, sizeof *axis->weights);
}

static int64_t clamped(double value, int64_t high) {
  return value < 0 ? 0 : value > (double)high ? high : (int64_t)value;
}

static void fill_taps(const cpixels_axis_options *options, exact_axis *axis, double *scratch, uint32_t destination) {
  const double scale = options->ratio > 1 ? options->ratio : 1;
  const double support = support_of(options);
  const double center = options->offset + (destination + 0.5) * options->ratio;
  const int64_t first = clamped(center - support + 0.5, (int64_t)options->source_count - 1);
  int64_t end = clamped(center + support + 0.5, options->source_count);
  end = end > first + axis->window ? first + axis->window : end <= first ? first + 1 : end;
  double sum = 0;
  for (int64_t s = first; s < end; s++) {
    const double weight = cpixels_kernel_value(options->kernel, ((double)s - center + 0.5) * (1 / scale));
    scratch[s - first] = weight;
    sum += weight;
  }
  int32_t *weights = axis->weights + (size_t)destination * axis->window;
  for (int64_t i = 0; i < end - first; i++) {
    const double weight = sum != 0 ? scratch[i] / sum : scratch[i];
    weights[i] = (int32_t)((weight < 0 ? -0.5 : 0.5) + weight * (1 << WEIGHT_BITS));
  }
  axis->first[destination] = (uint32_t)first;
  axis->count[destination] = (uint32_t)(end - first);
}

/// Reverses the taps of the displayed axis, and their order.
static void reverse(const cpixels_axis_options *options, exact_axis *axis) {
  const uint32_t count = options->destination_count;
  for (uint32_t d = 0; d < count; d++) {
    int32_t *weights = axis->weights + (size_t)d * axis->window;
    for (uint32_t i = 0, j = axis->count[d] - 1; i < j; i++, j--) {
      const int32_t weight = weights[i];
      weights[i] = weights[j];
      weights[j] = weight;
    }
    axis->first[d] = options->source_count - axis->first[d] - axis->count[d];
  }
  for (uint32_t d = 0; d < count / 2; d++) {
    const uint32_t other = count - 1 - d;
    const uint32_t place[] = {axis->first[d], axis->count[d]};
    axis->first[d] = axis->first[other];
    axis->count[d] = axis->count[other];
    axis->first[other] = place[0];
    axis->count[other] = place[1];
    int32_t *one = axis->weights + (size_t)d * axis->window;
    int32_t *two = axis->weights + (size_t)other * axis->window;
    for (uint32_t i = 0; i < axis->window; i++) {
      const int32_t weight = one[i];
      one[i] = two[i];
      two[i] = weight;
    }
  }
}

static void fill(const cpixels_axis_options *stored, exact_axis *axis, double *scratch) {
  const cpixels_axis_options shown = cpixels_axis_displayed(stored);
  const cpixels_axis_options *options = &shown;
  double position = options->offset + options->ratio * 0.5;
  for (uint32_t d = 0; d < options->destination_count; d++, position += options->ratio) {
    if (axis->is_copied || options->kernel == CPIXELS_KERNEL_NEAREST) {
      axis->first[d] = axis->is_copied ? d : (uint32_t)clamped(floor(position), (int64_t)options->source_count - 1);
      axis->count[d] = 1;
      axis->weights[d] = 1 << WEIGHT_BITS;
    } else {
      fill_taps(options, axis, scratch, d);
    }
  }
  if (options->is_reversed && !axis->is_copied) {
    reverse(options, axis);
  }
}

// MARK: Memory

/// Allocates all memory except init's scratch. The options must be set.
static void place_all(cpixels_arena *arena, cpixels_exact *e) {
  const cpixels_resizer_options *options = &e->options;
  place(arena, &options->horizontal, &e->horizontal);
  place(arena, &options->vertical, &e->vertical);
  const size_t width = options->horizontal.source_count;
  const size_t columns = options->columns_first ? width : options->horizontal.destination_count;
  e->row_size = columns * options->channels;
  e->ring_count = e->vertical.window + RING_SLACK;
  e->ring = cpixels_arena_take(arena, e->ring_count, e->row_size);
  e->joined = options->columns_first ? cpixels_arena_take(arena, 1, e->row_size) : NULL;
  e->pixels = options->channels > 1 ? cpixels_arena_take(arena, width, sizeof *e->pixels) : NULL;
  // The nearest sample is taken as it is.
  const bool mixes = options->horizontal.kernel != CPIXELS_KERNEL_NEAREST;
  e->premultiplied = options->channels == 4 && mixes ? cpixels_arena_take(arena, width, 4) : NULL;
}

static bool is_valid(const cpixels_resizer_options *options) {
  const cpixels_axis_options *axes[] = {&options->horizontal, &options->vertical};
  for (size_t i = 0; i < 2; i++) {
    if (!cpixels_axis_is_valid(axes[i]) || axes[i]->emphasis != 0 ||
        axes[i]->kernel == CPIXELS_KERNEL_DOUBLED_LANCZOS3) {
      return false;
    }
  }
  return (options->channels == 1 || options->channels == 3 || options->channels == 4) &&
         options->sample == CPIXELS_SAMPLE_U8;
}

bool cpixels_exact_measure(const cpixels_resizer_options *options, size_t *byte_count) {
  if (!is_valid(options)) {
    return false;
  }
  cpixels_exact measured = {.options = *options};
  cpixels_arena arena = {0};
  cpixels_arena_take(&arena, 1, sizeof measured);
  place_all(&arena, &measured);
  cpixels_arena_take_weights(&arena, measured.horizontal.window, measured.vertical.window);
  *byte_count = arena.used;
  return !arena.overflowed;
}

cpixels_exact *cpixels_exact_init(const cpixels_resizer_options *options, void *memory) {
  if (!is_valid(options) || !cpixels_isa_is_available(options->isa)) {
    return NULL;
  }
  cpixels_arena arena = {.base = memory};
  cpixels_exact *e = cpixels_arena_take(&arena, 1, sizeof *e);
  memset(e, 0, sizeof *e);
  e->options = *options;
  place_all(&arena, e);
  double *scratch = cpixels_arena_take_weights(&arena, e->horizontal.window, e->vertical.window);
  fill(&options->horizontal, &e->horizontal, scratch);
  fill(&options->vertical, &e->vertical, scratch);
  return e;
}

// MARK: Samples

CPIXELS_INLINE uint8_t rounded(int32_t sum) {
  const int32_t value = sum >> WEIGHT_BITS;
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

enum { HALF = 1 << (WEIGHT_BITS - 1) };

CPIXELS_INLINE void filter_gray(const exact_axis *axis, uint32_t count, const uint8_t *source, uint8_t *destination) {
  for (uint32_t d = 0; d < count; d++) {
    const int32_t *weights = axis->weights + (size_t)d * axis->window;
    const uint8_t *samples = source + axis->first[d];
    int32_t sum = HALF;
    for (uint32_t t = 0; t < axis->count[d]; t++) {
      sum += samples[t] * weights[t];
    }
    destination[d] = rounded(sum);
  }
}

CPIXELS_INLINE void filter_pixels(
    const exact_axis *axis, uint32_t count, uint32_t channels, const lanes *source, uint8_t *destination) {
  for (uint32_t d = 0; d < count; d++, destination += channels) {
    const int32_t *weights = axis->weights + (size_t)d * axis->window;
    const lanes *samples = source + axis->first[d];
    lanes sum = {HALF, HALF, HALF, HALF};
    for (uint32_t t = 0; t < axis->count[d]; t++) {
      sum += samples[t] * weights[t];
    }
    for (uint32_t c = 0; c < channels; c++) {
      destination[c] = rounded(sum[c]);
    }
  }
}

CPIXELS_INLINE void filter_rows(const cpixels_exact *e, uint32_t destination_row, uint8_t *destination) {
  const exact_axis *axis = &e->vertical;
  const int32_t *weights = axis->weights + (size_t)destination_row * axis->window;
  const uint32_t first = axis->first[destination_row];
  for (size_t start = 0; start < e->row_size; start += BLOCK) {
    const size_t count = e->row_size - start < BLOCK ? e->row_size - start : BLOCK;
    int32_t sums[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
      sums[i] = HALF;
    }
    for (uint32_t t = 0; t < axis->count[destination_row]; t++) {
      const uint8_t *row = e->ring + (first + t) % e->ring_count * e->row_size + start;
      for (size_t i = 0; i < count; i++) {
        sums[i] += row[i] * weights[t];
      }
    }
    for (size_t i = 0; i < count; i++) {
      destination[start + i] = rounded(sums[i]);
    }
  }
}

CPIXELS_INLINE void filter_columns(const cpixels_exact *e, const uint8_t *source, uint8_t *destination) {
  const uint32_t count = e->options.horizontal.destination_count;
  if (e->pixels == NULL) {
    filter_gray(&e->horizontal, count, source, destination);
  } else if (e->options.channels == 3) {
    filter_pixels(&e->horizontal, count, 3, e->pixels, destination);
  } else {
    filter_pixels(&e->horizontal, count, 4, e->pixels, destination);
  }
}

CPIXELS_AVX2 static void filter_columns_avx2(const cpixels_exact *e, const uint8_t *source, uint8_t *destination) {
  filter_columns(e, source, destination);
}

CPIXELS_AVX2 static void filter_rows_avx2(const cpixels_exact *e, uint32_t destination_row, uint8_t *destination) {
  filter_rows(e, destination_row, destination);
}

// MARK: Alpha

static void unpremultiply(uint8_t *pixels, size_t count) {
  for (size_t i = 0; i < count; i++, pixels += 4) {
    const uint32_t alpha = pixels[3];
    for (uint32_t c = 0; alpha != 0 && alpha != 255 && c < 3; c++) {
      const uint32_t color = 255 * pixels[c] / alpha;
      pixels[c] = (uint8_t)(color > 255 ? 255 : color);
    }
  }
}

// MARK: Rows

/// Resamples a row of the source's width.
static void resample_columns(cpixels_exact *e, const uint8_t *row, uint8_t *destination) {
  const size_t width = e->options.horizontal.source_count;
  const uint32_t channels = e->options.channels;
  if (e->horizontal.is_copied) {
    memcpy(destination, row, width * channels);
    return;
  }
  for (size_t x = 0; e->pixels != NULL && x < width; x++) {
    const uint8_t *pixel = row + x * channels;
    e->pixels[x] = (lanes){pixel[0], pixel[1], pixel[2], channels == 4 ? pixel[3] : 0};
  }
  CPIXELS_VECTORIZED(filter_columns, e->options.isa)(e, row, destination);
}

/// Puts a source row into the ring.
static void push_row(cpixels_exact *e, const uint8_t *row) {
  if (e->premultiplied != NULL) {
    cpixels_premultiply_8bit(row, e->premultiplied, e->options.horizontal.source_count);
    row = e->premultiplied;
  }
  uint8_t *destination = e->ring + e->pushed % e->ring_count * e->row_size;
  if (e->joined != NULL) {
    memcpy(destination, row, e->row_size);
  } else {
    resample_columns(e, row, destination);
  }
}

size_t cpixels_exact_push(cpixels_exact *e, const uint8_t *rows, size_t row_stride, size_t row_count) {
  const cpixels_axis_options *vertical = &e->options.vertical;
  for (size_t i = 0; i < row_count; i++) {
    if (e->given == vertical->destination_count || e->pushed == vertical->source_count) {
      return row_count;
    }
    // Rows above the first one that is needed are not kept.
    const uint32_t needed = e->vertical.first[e->given];
    if (e->pushed >= needed && e->pushed - needed >= e->ring_count) {
      return i;
    }
    if (e->pushed >= needed) {
      push_row(e, rows + i * row_stride);
    }
    e->pushed++;
  }
  return row_count;
}

size_t cpixels_exact_read(cpixels_exact *e, uint8_t *rows, size_t row_stride, size_t capacity) {
  size_t count = 0;
  for (; count < capacity && e->given < e->options.vertical.destination_count; count++) {
    const uint32_t first = e->vertical.first[e->given];
    if (e->pushed < first + e->vertical.count[e->given]) {
      break;
    }
    uint8_t *row = rows + count * row_stride;
    uint8_t *destination = e->joined != NULL ? e->joined : row;
    if (e->vertical.is_copied) {
      memcpy(destination, e->ring + first % e->ring_count * e->row_size, e->row_size);
    } else {
      CPIXELS_VECTORIZED(filter_rows, e->options.isa)(e, e->given, destination);
    }
    if (e->joined != NULL) {
      resample_columns(e, e->joined, row);
    }
    if (e->premultiplied != NULL) {
      unpremultiply(row, e->options.horizontal.destination_count);
    }
    e->given++;
  }
  return count;
}

void cpixels_exact_reset(cpixels_exact *e) {
  e->pushed = 0;
  e->given = 0;
}

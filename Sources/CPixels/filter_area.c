// Area filters. Rows are widened (and premultiplied) as they are pushed. Rings store the rows that a window still
// needs: the filtered rows in 16 bits and, if the result is mixed with the image, the image's own rows.
//
//   BLUR, SHARPEN: row -> wide -> horizontal taps -> ring -> vertical taps -> filtered row -> blend -> row
//   PIXELATE:      row -> wide -> sums of columns -> means of blocks        -> filtered row -> blend -> rows

#include "filter_kernels.h"

#include <math.h>
#include <string.h>

/// The number of rows that can be pushed before one must be read.
enum { RING_SLACK = 16 };

enum { LARGEST_SIDE = 1 << 20, LARGEST_BLOCK = 256 };

struct cpixels_area_filter {
  cpixels_area_options options;
  const cpixels_filter_kernels *kernels;
  uint32_t reach;      ///< The number of pixels that a window extends to each side.
  bool buffers_source; ///< Whether the result is mixed with the image's own rows.
  int32_t gain;        ///< Q14.
  int32_t threshold;   ///< Q6.
  size_t sample_count; ///< The number of samples in a row.
  size_t column_count; ///< sample_count rounded up to CPIXELS_AREA_MULTIPLE.
  uint32_t pushed;     ///< The number of rows consumed.
  uint32_t written;    ///< The number of rows returned.
  int16_t *wide;       ///< [column_count + twice the reach] The row that was pushed.
  int16_t *filtered;   ///< [column_count]
  int16_t *ring;       ///< [ring_row_count][column_count] BLUR, SHARPEN.
  uint32_t ring_row_count;
  uint8_t *source; ///< [source_row_count][sample_count]
  uint32_t source_row_count;
  uint16_t *premultiplied; ///< [sample_count] With alpha, except SHARPEN.
  cpixels_taps taps;
  int16_t *weights;
  uint32_t *sums;     ///< [column_count] PIXELATE.
  uint32_t block_end; ///< PIXELATE: the row at which the current blocks end.
};

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// MARK: Set-up

static bool lies_between(double value, double low, double high) {
  return value >= low && value <= high; // false for NaN
}

static bool options_are_valid(const cpixels_area_options *o) {
  if (o->width < 1 || o->width > LARGEST_SIDE || o->height < 1 || o->height > LARGEST_SIDE ||
      (o->channels != 3 && o->channels != 4)) {
    return false;
  }
  switch (o->kind) {
  case CPIXELS_AREA_BLUR:
    return lies_between(o->radius, 0.01, 100) && lies_between(o->amount, 0, 1);
  case CPIXELS_AREA_SHARPEN:
    return lies_between(o->radius, 0.01, 100) && lies_between(o->amount, 0, 5) && lies_between(o->threshold, 0, 1);
  case CPIXELS_AREA_PIXELATE:
    return lies_between(o->amount, 0, 1) && o->block >= 1 && o->block <= LARGEST_BLOCK && o->first_width >= 1 &&
           o->first_width <= o->block && o->first_height >= 1 && o->first_height <= o->block;
  default:
    return false;
  }
}

static bool is_blurring(const cpixels_area_filter *f) {
  return f->options.kind != CPIXELS_AREA_PIXELATE;
}

/// Allocates all memory, and computes everything that depends on the options alone.
static void place(cpixels_arena *arena, cpixels_area_filter *f) {
  const cpixels_area_options *o = &f->options;
  const bool is_sharpening = o->kind == CPIXELS_AREA_SHARPEN;
  const double unit = 1 << CPIXELS_GAIN_BITS;
  f->gain = (int32_t)lround(o->amount * (is_sharpening ? unit : -unit));
  f->threshold = is_sharpening ? (int32_t)lround(o->threshold * CPIXELS_AREA_WHITE) : 0;
  f->buffers_source = is_sharpening || f->gain != -(1 << CPIXELS_GAIN_BITS);
  f->reach = is_blurring(f) ? (uint32_t)ceil(3 * o->radius) : 0;
  f->sample_count = (size_t)o->width * o->channels;
  const size_t multiple = CPIXELS_AREA_MULTIPLE;
  f->column_count = (f->sample_count + multiple - 1) / multiple * multiple;

  f->wide = cpixels_arena_take(arena, f->column_count + 2 * (size_t)f->reach * o->channels, sizeof(int16_t));
  f->filtered = cpixels_arena_take(arena, f->column_count, sizeof(int16_t));
  if (is_blurring(f)) {
    const uint32_t tap_count = (f->reach + 2) / 2 * 2; // the middle tap and one side, rounded up to an even number
    f->taps.count = tap_count;
    f->taps.before = cpixels_arena_take(arena, tap_count, sizeof(void *));
    f->taps.after = cpixels_arena_take(arena, tap_count, sizeof(void *));
    f->weights = cpixels_arena_take(arena, tap_count, sizeof(int16_t));
    f->ring_row_count = smaller(2 * f->reach + 1 + RING_SLACK, o->height);
    f->ring = cpixels_arena_take(arena, f->ring_row_count, f->column_count * sizeof(int16_t));
    f->source_row_count = smaller(f->reach + 1 + RING_SLACK, o->height);
  } else {
    f->sums = cpixels_arena_take(arena, f->column_count, sizeof(uint32_t));
    f->source_row_count = smaller(o->block, o->height);
  }
  // If the result is not mixed, kernels may be given any row, because its weight is 0.
  f->source_row_count = f->buffers_source ? f->source_row_count : 1;
  f->source = cpixels_arena_take(arena, f->source_row_count, f->sample_count);
  if (o->channels == 4 && !is_sharpening) {
    f->premultiplied = cpixels_arena_take(arena, f->sample_count, sizeof(uint16_t));
  }
}

/// Computes the weights of a Gaussian with the maximum number of bits that they and their sums allow. It rounds the
/// sums of the outer weights instead of the weights, so that the error of wide kernels does not accumulate.
static void fill_weights(cpixels_area_filter *f) {
  const double spread = 1 / (2 * f->options.radius * f->options.radius);
  double sum = 1;
  for (uint32_t t = 1; t <= f->reach; t++) {
    sum += 2 * exp(-(double)t * t * spread);
  }
  uint32_t bits = 17;
  while (bits > 15 && (ldexp(1 / sum, (int)bits - 1) > 32767 || ldexp(exp(-spread) / sum, (int)bits) > 32767)) {
    bits--;
  }
  int32_t outer = 0;
  double exact = 0;
  for (uint32_t t = f->reach; t >= 1; t--) {
    exact += exp(-(double)t * t * spread) / sum;
    const int32_t next = (int32_t)lround(ldexp(exact, (int)bits));
    f->weights[t] = (int16_t)(next - outer);
    outer = next;
  }
  f->weights[0] = (int16_t)((1 << (bits - 1)) - outer); // half of the middle weight, which is counted twice
  for (uint32_t t = f->reach + 1; t < f->taps.count; t++) {
    f->weights[t] = 0;
  }
  f->taps.weights = f->weights;
  f->taps.bits = bits;
}

bool cpixels_area_measure(const cpixels_area_options *options, size_t *byte_count) {
  if (!options_are_valid(options)) {
    return false;
  }
  cpixels_area_filter measured = {.options = *options};
  cpixels_arena arena = {0};
  cpixels_arena_take(&arena, 1, sizeof measured);
  place(&arena, &measured);
  *byte_count = arena.used;
  return !arena.overflowed;
}

cpixels_area_filter *cpixels_area_init(const cpixels_area_options *options, void *memory) {
  if (!options_are_valid(options) || !cpixels_isa_is_available(options->isa)) {
    return NULL;
  }
  cpixels_arena arena = {.base = memory};
  cpixels_area_filter *f = cpixels_arena_take(&arena, 1, sizeof *f);
  memset(f, 0, sizeof *f);
  f->options = *options;
  f->kernels = cpixels_filter_kernels_of(options->isa);
  place(&arena, f);
  // Kernels read whole vectors, so the memory after a row's samples must be initialized.
  memset(f->wide, 0, (f->column_count + 2 * (size_t)f->reach * options->channels) * sizeof *f->wide);
  memset(f->source, 0, f->sample_count);
  if (is_blurring(f)) {
    fill_weights(f);
  }
  cpixels_area_reset(f);
  return f;
}

void cpixels_area_reset(cpixels_area_filter *f) {
  f->pushed = 0;
  f->written = 0;
  if (!is_blurring(f)) {
    memset(f->sums, 0, f->column_count * sizeof *f->sums);
    f->block_end = smaller(f->options.first_height, f->options.height);
  }
}

// MARK: Rows in

static int16_t *ring_row(const cpixels_area_filter *f, uint32_t row) {
  return f->ring + (size_t)(row % f->ring_row_count) * f->column_count;
}

static uint8_t *source_row(const cpixels_area_filter *f, uint32_t row) {
  return f->source + (size_t)(row % f->source_row_count) * f->sample_count;
}

static void widen_row(const cpixels_area_filter *f, const uint8_t *row, int16_t *wide) {
  if (f->options.channels == 4) {
    f->kernels->premultiply(row, f->options.width, wide);
  } else {
    f->kernels->widen(row, f->sample_count, wide);
  }
}

/// Interleaved samples of a channel are as far apart as a pixel has channels, so the taps of a row are the row itself,
/// shifted.
static void blur_row(cpixels_area_filter *f, const uint8_t *row) {
  const size_t channels = f->options.channels;
  int16_t *first = f->wide + f->reach * channels;
  int16_t *last = first + f->sample_count - channels;
  widen_row(f, row, first);
  for (uint32_t t = 1; t <= f->reach; t++) {
    memcpy(first - t * channels, first, channels * sizeof *first);
    memcpy(last + t * channels, last, channels * sizeof *last);
  }
  for (uint32_t t = 0; t < f->taps.count; t++) {
    const size_t distance = t <= f->reach ? t * channels : 0;
    f->taps.before[t] = first - distance;
    f->taps.after[t] = first + distance;
  }
  f->kernels->convolve(&f->taps, f->column_count, ring_row(f, f->pushed));
}

/// Computes the means of a row of blocks after all their rows have arrived.
static void finish_blocks(cpixels_area_filter *f) {
  const cpixels_area_options *o = &f->options;
  const uint32_t first_row = f->written;
  const uint32_t row_count = f->block_end - first_row;
  uint32_t left = 0;
  uint32_t right = smaller(o->first_width, o->width);
  while (left < o->width) {
    const uint32_t pixel_count = (right - left) * row_count;
    for (uint32_t c = 0; c < o->channels; c++) {
      uint32_t sum = pixel_count / 2;
      for (uint32_t x = left; x < right; x++) {
        sum += f->sums[x * o->channels + c];
      }
      f->filtered[left * o->channels + c] = (int16_t)(sum / pixel_count);
    }
    for (uint32_t x = left + 1; x < right; x++) {
      memcpy(
          f->filtered + (size_t)x * o->channels, f->filtered + (size_t)left * o->channels,
          o->channels * sizeof(int16_t));
    }
    left = right;
    right = smaller(right + o->block, o->width);
  }
  memset(f->sums, 0, f->column_count * sizeof *f->sums);
}

static bool has_room(const cpixels_area_filter *f) {
  if (!is_blurring(f)) {
    return f->pushed < f->block_end;
  }
  const uint32_t oldest = f->written > f->reach ? f->written - f->reach : 0;
  return f->pushed - oldest < f->ring_row_count && (!f->buffers_source || f->pushed - f->written < f->source_row_count);
}

size_t cpixels_area_push(cpixels_area_filter *f, const uint8_t *rows, size_t row_stride, size_t row_count) {
  for (size_t taken = 0; taken < row_count; taken++, rows += row_stride) {
    if (f->pushed == f->options.height) {
      return row_count;
    }
    if (!has_room(f)) {
      return taken;
    }
    if (f->buffers_source) {
      memcpy(source_row(f, f->pushed), rows, f->sample_count);
    }
    if (is_blurring(f)) {
      blur_row(f, rows);
    } else {
      widen_row(f, rows, f->wide);
      f->kernels->accumulate(f->wide, f->sample_count, f->sums);
    }
    f->pushed++;
    if (!is_blurring(f) && f->pushed == f->block_end) {
      finish_blocks(f);
    }
  }
  return row_count;
}

// MARK: Rows out

static bool is_ready(const cpixels_area_filter *f) {
  if (f->written == f->options.height) {
    return false;
  }
  return is_blurring(f) ? f->pushed > smaller(f->written + f->reach, f->options.height - 1) : f->pushed == f->block_end;
}

/// Rows beyond the edges repeat the edge rows.
static void blur_column(cpixels_area_filter *f) {
  const uint32_t y = f->written;
  for (uint32_t t = 0; t < f->taps.count; t++) {
    const uint32_t distance = t <= f->reach ? t : 0;
    f->taps.before[t] = ring_row(f, y > distance ? y - distance : 0);
    f->taps.after[t] = ring_row(f, smaller(y + distance, f->options.height - 1));
  }
  f->kernels->convolve(&f->taps, f->column_count, f->filtered);
}

static void blend_row(const cpixels_area_filter *f, uint8_t *row) {
  const uint8_t *source = source_row(f, f->written);
  if (f->options.channels == 3) {
    f->kernels->blend(source, f->filtered, f->sample_count, f->gain, f->threshold, row);
  } else if (f->options.kind == CPIXELS_AREA_SHARPEN) {
    f->kernels->blend_over_alpha(source, f->filtered, f->options.width, f->gain, f->threshold, row);
  } else {
    f->kernels->blend_premultiplied(source, f->filtered, f->options.width, f->gain, f->premultiplied);
    cpixels_unpremultiply(f->premultiplied, row, f->options.width, f->options.isa);
  }
}

size_t cpixels_area_read(cpixels_area_filter *f, uint8_t *rows, size_t row_stride, size_t capacity) {
  size_t count = 0;
  for (; count < capacity && is_ready(f); count++, rows += row_stride) {
    if (is_blurring(f)) {
      blur_column(f);
    }
    blend_row(f, rows);
    f->written++;
    if (!is_blurring(f) && f->written == f->block_end) {
      f->block_end = smaller(f->block_end + f->options.block, f->options.height);
    }
  }
  return count;
}

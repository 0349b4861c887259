// Raw results: the elements of a tensor, without a header. Interleaved rows leave as they arrive. Planes are buffered,
// and the first of them leaves in large parts as its rows arrive.

#include "../formats.h"
#include "raw_rows.h"

#include <math.h>
#include <string.h>

/// The number of pixels that are converted at once: a multiple of RAW_PERIOD, whose samples stay in the L1 cache.
enum { BLOCK = 10 * RAW_PERIOD };

/// The size of the parts in which the first plane leaves: that of a caller's chunks, which would otherwise grow part by
/// part.
enum { PART_BYTES = 64 << 10 };

typedef struct raw_encoder {
  ccodecs_encoder base;
  const raw_kernels *kernels;
  size_t element_bytes;
  uint32_t channel_count;  ///< Of the result.
  bool is_planar;          ///< The result has several planes, and is one block from the beginning.
  uint64_t row_count;      ///< Rows that were written.
  raw_scaling scalings[3]; ///< Of each plane, or in [0] of interleaved pixels.
} raw_encoder;

// MARK: Sizes

static uint32_t channel_count_of(const ccodecs_raw_options *options) {
  return options->channels == CCODECS_RAW_GRAY ? 1 : 3;
}

static uint64_t row_bytes_of(const ccodecs_encode_options *options) {
  return (uint64_t)options->width * channel_count_of(&options->raw) * raw_element_bytes(options->raw.element);
}

static bool has_planes(const ccodecs_encode_options *options) {
  return options->raw.is_planar && options->raw.channels != CCODECS_RAW_GRAY;
}

static uint64_t max_bytes(const ccodecs_encode_options *options) {
  return row_bytes_of(options) * options->height;
}

static uint64_t estimate(const ccodecs_encode_options *options) {
  // While the queue of rows grows, the old and the new block exist.
  const uint64_t queue = 2 * 16 * row_bytes_of(options);
  return sizeof(raw_encoder) + (has_planes(options) ? max_bytes(options) : queue);
}

bool ccodecs_raw_options_are_valid(const ccodecs_raw_options *options) {
  bool is_valid = (unsigned)options->element <= CCODECS_RAW_F32 && (unsigned)options->channels <= CCODECS_RAW_GRAY;
  for (int c = 0; c < 3; c++) {
    is_valid = is_valid && isfinite(options->scales[c]) && isfinite(options->offsets[c]);
  }
  return is_valid;
}

// MARK: Rows

static uint8_t gray_of(const uint8_t *rgb) {
  return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

/// Writes the samples of interleaved pixels in the result's order.
static void arrange(const raw_encoder *e, const uint8_t *source, size_t count, uint8_t *samples) {
  const bool is_gray = e->base.options.pixels == CCODECS_PIXELS_GRAY8;
  if (e->channel_count == 1) {
    for (size_t i = 0; i < count; i++) {
      samples[i] = is_gray ? source[i] : gray_of(source + 3 * i);
    }
  } else if (is_gray) {
    for (size_t i = 0; i < count; i++) {
      memset(samples + 3 * i, source[i], 3);
    }
  } else if (e->base.options.raw.channels == CCODECS_RAW_BGR) {
    for (size_t i = 0; i < 3 * count; i += 3) {
      samples[i] = source[i + 2];
      samples[i + 1] = source[i + 1];
      samples[i + 2] = source[i];
    }
  } else {
    memcpy(samples, source, 3 * count);
  }
}

/// Converts pixels of at most a block to interleaved elements.
static void write_interleaved(const raw_encoder *e, const uint8_t *source, size_t count, uint8_t *output) {
  if (e->element_bytes == 1) {
    arrange(e, source, count, output);
    return;
  }
  uint8_t samples[3 * BLOCK];
  arrange(e, source, count, samples);
  e->kernels->convert(samples, count * e->channel_count, &e->scalings[0], e->base.options.raw.element, output);
}

/// Converts pixels of at most a block to one part of each plane.
static void write_planes(const raw_encoder *e, const uint8_t *source, size_t count, uint8_t *const outputs[3]) {
  uint8_t samples[3][BLOCK];
  const uint8_t *planes[3] = {samples[0], samples[1], samples[2]};
  if (e->base.options.pixels == CCODECS_PIXELS_GRAY8) {
    planes[0] = planes[1] = planes[2] = source;
  } else {
    const bool is_reversed = e->base.options.raw.channels == CCODECS_RAW_BGR;
    e->kernels->split(source, count, samples[is_reversed ? 2 : 0], samples[1], samples[is_reversed ? 0 : 2]);
  }
  for (uint32_t c = 0; c < 3; c++) {
    if (e->element_bytes == 1) {
      memcpy(outputs[c], planes[c], count);
    } else {
      e->kernels->convert(planes[c], count, &e->scalings[c], e->base.options.raw.element, outputs[c]);
    }
  }
}

static void write_row(raw_encoder *e, const uint8_t *source) {
  const ccodecs_encode_options *options = &e->base.options;
  const size_t source_bytes = options->pixels == CCODECS_PIXELS_GRAY8 ? 1 : 3;
  const size_t width = options->width;
  const size_t plane_row = width * e->element_bytes;
  uint8_t *output = e->is_planar ? e->base.output.block + e->row_count * plane_row
                                 : ccodecs_bytes_start(&e->base.output) + e->base.output.count;
  const size_t plane = plane_row * options->height;
  for (size_t x = 0; x < width; x += BLOCK) {
    const size_t count = width - x < BLOCK ? width - x : BLOCK;
    const uint8_t *pixels = source + x * source_bytes;
    if (e->is_planar) {
      uint8_t *first = output + x * e->element_bytes;
      write_planes(e, pixels, count, (uint8_t *const[3]){first, first + plane, first + 2 * plane});
    } else {
      write_interleaved(e, pixels, count, output + x * e->element_bytes * e->channel_count);
    }
  }
  e->row_count++;
  if (e->is_planar) {
    e->base.output.count = e->row_count * plane_row / PART_BYTES * PART_BYTES;
  } else {
    e->base.output.count += plane_row * e->channel_count;
  }
}

// MARK: Methods

static ccodecs_status write(ccodecs_encoder *encoder, const ccodecs_rows *rows) {
  raw_encoder *e = (raw_encoder *)encoder;
  const size_t row_bytes = (size_t)row_bytes_of(&encoder->options);
  if (!e->is_planar && !ccodecs_bytes_reserve(&encoder->output, row_bytes * rows->row_counts[0], encoder->budget)) {
    return CCODECS_NO_MEMORY;
  }
  for (uint32_t y = 0; y < rows->row_counts[0]; y++) {
    write_row(e, rows->planes[0] + y * rows->row_strides[0]);
  }
  return CCODECS_OK;
}

static ccodecs_status finish(ccodecs_encoder *encoder) {
  if (((raw_encoder *)encoder)->is_planar) {
    encoder->output.count = (size_t)max_bytes(&encoder->options);
  }
  return CCODECS_OK;
}

/// Sets the scale and the offset of each sample.
static void set_scalings(raw_encoder *e) {
  const ccodecs_raw_options *options = &e->base.options.raw;
  for (uint32_t plane = 0; plane < 3; plane++) {
    for (uint32_t i = 0; i < RAW_PERIOD; i++) {
      const uint32_t channel = e->is_planar ? plane : i % e->channel_count;
      e->scalings[plane].scales[i] = options->scales[channel];
      e->scalings[plane].offsets[i] = options->offsets[channel];
    }
  }
}

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  raw_encoder *e = (raw_encoder *)encoder;
  e->kernels = ccodecs_raw_kernels();
  e->element_bytes = raw_element_bytes(options->raw.element);
  e->channel_count = channel_count_of(&options->raw);
  e->is_planar = has_planes(options);
  set_scalings(e);
  if (e->is_planar) {
    const uint64_t count = max_bytes(options);
    if (count > SIZE_MAX || !ccodecs_bytes_reserve(&e->base.output, (size_t)count, budget)) {
      return false;
    }
    // What is read stays where it is, as of a spooled result.
    e->base.is_spooling = e->base.is_spool_ready = true;
  }
  return true;
}

const ccodecs_encoder_methods ccodecs_raw_encoder = {
    .byte_count = sizeof(raw_encoder),
    .create = create,
    .estimate = estimate,
    .max_bytes = max_bytes,
    .write = write,
    .finish = finish};

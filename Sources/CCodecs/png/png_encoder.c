// Streaming PNG encoder.
//
// Sources: PNG specification (third edition), sections 5, 9 and 12.7.

#include "png_encoder.h"
#include "../formats.h"
#include "png_animation.h"
#include "png_chunk.h"
#include "png_indexed_animation.h"

enum {
  CHUNK_BYTES = 64 << 10, ///< Maximum size of an IDAT chunk.
  BLOCK_BYTES = 64 << 10, ///< Of what a compressor holds back until it writes a block: 65,536 literals of ISA-L.
};

/// Size in bytes of the zeros before a row, which represent the pixel to its left: that of the largest pixel.
static const size_t margin = 8;

// MARK: Chunks

static ccodecs_status no_room(png_encoder *e) {
  return ccodecs_encoder_fail(&e->base, CCODECS_NO_MEMORY, "no room for compressed bytes");
}

ccodecs_status ccodecs_png_write_chunk(png_encoder *e, const char *type, const uint8_t *body, size_t count) {
  const bool has_room = ccodecs_png_append_chunk(&e->base.output, type, body, count, e->base.budget);
  return has_room ? CCODECS_OK : no_room(e);
}

ccodecs_status ccodecs_png_write_beginning(png_encoder *e, uint8_t depth, bool is_indexed) {
  static const uint8_t color_types[] = {
      [CCODECS_PIXELS_GRAY8] = 0,  [CCODECS_PIXELS_RGB8] = 2,  [CCODECS_PIXELS_RGBA8] = 6,
      [CCODECS_PIXELS_GRAY16] = 0, [CCODECS_PIXELS_RGB16] = 2, [CCODECS_PIXELS_RGBA16] = 6};
  const ccodecs_encode_options *options = &e->base.options;
  uint8_t header[PNG_IHDR_BYTES] = {
      [8] = depth, [9] = is_indexed ? 3 : color_types[options->pixels], [12] = options->png.is_interlaced};
  ccodecs_put_be32(header, options->width);
  ccodecs_put_be32(header + 4, options->height);
  if (!ccodecs_bytes_append(&e->base.output, ccodecs_png_signature, sizeof ccodecs_png_signature, e->base.budget)) {
    return no_room(e);
  }
  const ccodecs_status status = ccodecs_png_write_chunk(e, "IHDR", header, sizeof header);
  const bool has_room =
      ccodecs_bytes_append(&e->base.output, ccodecs_bytes_start(&e->metadata), e->metadata.count, e->base.budget);
  return status != CCODECS_OK || has_room ? status : no_room(e);
}

// MARK: Deflate

/// Writes the current IDAT or fdAT chunk, unless it is empty.
static ccodecs_status flush_chunk(png_encoder *e) {
  const size_t count = e->chunk_count;
  e->chunk_count = 0;
  if (count == 0 || !e->base.options.has_frames || e->is_first) {
    return count == 0 ? CCODECS_OK : ccodecs_png_write_chunk(e, "IDAT", e->chunk, count);
  }
  uint8_t *body = e->chunk - PNG_SEQUENCE_BYTES;
  ccodecs_put_be32(body, e->sequence++);
  return ccodecs_png_write_chunk(e, "fdAT", body, PNG_SEQUENCE_BYTES + count);
}

static ccodecs_status compress_bytes(png_encoder *e, const uint8_t *bytes, size_t count, bool is_last) {
  ccodecs_input input = {.bytes = bytes, .count = count, .is_last = is_last};
  bool has_more = count > 0 || is_last;
  while (has_more) {
    size_t produced;
    has_more = ccodecs_png_compressor_run(
        e->compressor, &input, e->chunk + e->chunk_count, CHUNK_BYTES - e->chunk_count, &produced);
    e->chunk_count += produced;
    if (e->chunk_count == CHUNK_BYTES) {
      CCODECS_TRY(flush_chunk(e));
    }
  }
  return CCODECS_OK;
}

// MARK: Methods

void ccodecs_png_begin_pass(png_encoder *e, size_t row_bytes) {
  e->row_bytes = row_bytes;
  e->above = e->rows + margin;
  e->current = e->above + row_bytes + margin;
  memset(e->rows, 0, 2 * (margin + row_bytes));
}

ccodecs_status ccodecs_png_write_row(png_encoder *e) {
  const uint8_t *filtered = ccodecs_png_filter_row(e);
  uint8_t *above = e->above;
  e->above = e->current;
  e->current = above;
  return compress_bytes(e, filtered, e->row_bytes + 1, false);
}

ccodecs_status ccodecs_png_end_pass(png_encoder *e) {
  const ccodecs_status status = compress_bytes(e, e->current, 0, true);
  return status == CCODECS_OK ? flush_chunk(e) : status;
}

ccodecs_status ccodecs_png_restart(png_encoder *e) {
  return ccodecs_png_compressor_restart(e->compressor) ? CCODECS_OK : CCODECS_UNSUPPORTED;
}

void ccodecs_png_copy_row(const png_encoder *e, const uint8_t *row, uint8_t *copy) {
  if (!ccodecs_encoder_is_deep(&e->base.options)) {
    memcpy(copy, row, e->row_bytes);
    return;
  }
  const uint16_t *samples = (const uint16_t *)(const void *)row;
  for (size_t i = 0; i < e->row_bytes / 2; i++) {
    copy[2 * i] = (uint8_t)(samples[i] >> 8);
    copy[2 * i + 1] = (uint8_t)samples[i];
  }
}

static ccodecs_status write_rows(ccodecs_encoder *base, const ccodecs_rows *rows) {
  png_encoder *e = (png_encoder *)base;
  if (base->options.has_frames) {
    ccodecs_canvases_write(&e->canvases, rows);
    return CCODECS_OK;
  }
  if (e->buffered != NULL) {
    ccodecs_png_buffer_rows(e, rows);
    return CCODECS_OK;
  }
  for (uint32_t i = 0; i < rows->row_counts[0]; i++) {
    ccodecs_png_copy_row(e, rows->planes[0] + i * rows->row_strides[0], e->current);
    CCODECS_TRY(ccodecs_png_write_row(e));
  }
  return CCODECS_OK;
}

/// Ends the image data; writes all of it if the image is buffered.
static ccodecs_status end_data(png_encoder *e) {
  if (e->has_ended) {
    return CCODECS_OK;
  }
  e->has_ended = true;
  const ccodecs_status status = e->buffered != NULL ? ccodecs_png_write_buffered(e) : CCODECS_OK;
  return status == CCODECS_OK ? ccodecs_png_end_pass(e) : status;
}

/// Appends eXIf, which may precede or follow the image data (PNG specification, third edition, section 5.6).
static ccodecs_status append_exif(ccodecs_encoder *base, const uint8_t *exif, size_t count) {
  png_encoder *e = (png_encoder *)base;
  if (base->options.has_frames) { // the beginning is not written yet
    return ccodecs_png_append_chunk(&e->metadata, "eXIf", exif, count, base->budget) ? CCODECS_OK : no_room(e);
  }
  const ccodecs_status status = end_data(e);
  return status == CCODECS_OK ? ccodecs_png_write_chunk(e, "eXIf", exif, count) : status;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  png_encoder *e = (png_encoder *)base;
  if (base->options.has_frames) {
    return ccodecs_png_finish_animation(e);
  }
  const ccodecs_status status = end_data(e);
  return status == CCODECS_OK ? ccodecs_png_write_chunk(e, "IEND", NULL, 0) : status;
}

static ccodecs_status begin_frame(ccodecs_encoder *base) {
  ((png_encoder *)base)->canvases.written = 0;
  return CCODECS_OK;
}

static ccodecs_status end_frame(ccodecs_encoder *base) {
  return base->options.has_frames ? ccodecs_png_end_frame((png_encoder *)base) : CCODECS_OK;
}

static void destroy(ccodecs_encoder *base) {
  png_encoder *e = (png_encoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_png_compressor_destroy(e->compressor, budget);
  ccodecs_free(budget, e->rows);
  ccodecs_free(budget, e->candidates);
  ccodecs_free(budget, e->chunk == NULL ? NULL : e->chunk - PNG_SEQUENCE_BYTES);
  ccodecs_canvases_destroy(&e->canvases, budget);
  ccodecs_palette_histogram_destroy(e->histogram);
  ccodecs_palette_mapper_destroy(e->mapper);
  ccodecs_free(budget, e->indices);
  ccodecs_png_free_buffered(e);
  ccodecs_bytes_free(&e->metadata, budget);
}

bool ccodecs_png_options_are_valid(const ccodecs_png_options *options) {
  const uint16_t palette = options->palette_count;
  return options->compression_level <= 9 && options->filter <= CCODECS_PNG_FILTER_ADAPTIVE &&
         (palette == 0 || (palette >= 2 && palette <= 256));
}

/// Animations are not interlaced, and have a palette only with alpha.
static bool takes(const ccodecs_encode_options *options) {
  const bool is_indexed = options->png.palette_count > 0;
  if (ccodecs_encoder_is_deep(options)) {
    return !options->has_frames && !is_indexed;
  }
  // The frames of an animation with a palette are decoded once more, which adds alpha.
  return !options->has_frames ||
         (!options->png.is_interlaced && (!is_indexed || options->pixels == CCODECS_PIXELS_RGBA8));
}

/// Returns an upper bound of `bytes` after compression, if they are bounded without it. Level 0 of ISA-L has fixed
/// codes of at most 11 bits, with which noise grows.
static uint64_t grown(const ccodecs_encode_options *options, uint64_t bytes) {
  return options->png.compression_level > 0 ? bytes : bytes + bytes / 8 * 3;
}

uint64_t ccodecs_png_max_bytes(const ccodecs_encode_options *options, uint32_t pixel_bytes) {
  return grown(options, ccodecs_encoder_max_stored_bytes(options, pixel_bytes));
}

uint64_t ccodecs_png_encoder_max_bytes(const ccodecs_encode_options *options) {
  const bool is_indexed = options->png.palette_count > 0;
  return ccodecs_png_max_bytes(options, is_indexed ? 1 : ccodecs_encoder_pixel_bytes(options));
}

/// Returns an upper bound of the bytes for output of 16 rows, and of a block of the compressor, that do not compress.
/// The memory for them grows by half.
static uint64_t max_waiting_bytes(const ccodecs_encode_options *options, uint64_t row) {
  const uint64_t whole = ccodecs_png_encoder_max_bytes(options);
  const uint64_t maximum = grown(options, 16 * row) + BLOCK_BYTES;
  const uint64_t bytes = maximum < whole ? maximum : whole;
  return bytes <= CHUNK_BYTES ? 0 : bytes * 5 / 2;
}

uint64_t ccodecs_png_encoder_estimate(const ccodecs_encode_options *options) {
  const uint64_t row = (uint64_t)options->width * ccodecs_encoder_pixel_bytes(options) + 16;
  const uint64_t compressor = ccodecs_png_compressor_estimate(options->png.compression_level);
  return sizeof(png_encoder) + compressor + ccodecs_png_metadata_estimate(&options->metadata) +
         (2 + PNG_FILTER_COUNT) * row + 4 * CHUNK_BYTES + max_waiting_bytes(options, row) +
         (options->has_frames ? ccodecs_png_animation_estimate(options) : ccodecs_png_buffered_estimate(options));
}

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  png_encoder *e = (png_encoder *)encoder;
  e->pixel_bytes = ccodecs_encoder_pixel_bytes(options);
  e->filter = options->png.filter;
  const size_t row_bytes = options->width * e->pixel_bytes;
  e->rows = ccodecs_allocate(budget, 2 * (margin + row_bytes));
  e->candidates = ccodecs_allocate(budget, PNG_FILTER_COUNT * (row_bytes + 1));
  uint8_t *chunk = ccodecs_allocate(budget, PNG_SEQUENCE_BYTES + CHUNK_BYTES);
  e->chunk = chunk == NULL ? NULL : chunk + PNG_SEQUENCE_BYTES;
  e->compressor =
      ccodecs_png_compressor_create(options->png.compression_level, e->filter != CCODECS_PNG_FILTER_NONE, budget);
  if (e->rows != NULL && e->candidates != NULL && e->chunk != NULL && e->compressor != NULL &&
      ccodecs_png_append_metadata(&options->metadata, &e->metadata, budget)) {
    // A buffered image is written once its palette is known.
    const bool is_buffered = options->png.is_interlaced || options->png.palette_count > 0;
    const bool has_begun = options->has_frames ? ccodecs_png_begin_animation(e)
                           : is_buffered       ? ccodecs_png_hold(e)
                                         : ccodecs_png_write_beginning(e, ccodecs_png_depth(e), false) == CCODECS_OK;
    if (has_begun) {
      ccodecs_png_begin_pass(e, row_bytes);
      return true;
    }
  }
  return false;
}

const ccodecs_encoder_methods ccodecs_png_encoder = {
    .byte_count = sizeof(png_encoder),
    .create = create,
    .estimate = ccodecs_png_encoder_estimate,
    .max_bytes = ccodecs_png_encoder_max_bytes,
    .takes = takes,
    .begin_frame = begin_frame,
    .write = write_rows,
    .end_frame = end_frame,
    .append_exif = append_exif,
    .finish = finish,
    .destroy = destroy,
};

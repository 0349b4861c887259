// Animations with a palette, which serves all frames, so that it is known only after the last one.
//
// The encoder first writes an animation without a palette, and counts the colors that change. At its end, it decodes
// what it has spooled, and another encoder maps the frames to the palette. Both results are spooled, so that the memory
// does not grow with the number of frames.

#include "png_indexed_animation.h"

#include "../formats.h"

enum { WINDOW_BYTES = 16 << 10 };

/// The memory of a decoder in addition to its canvas and rows: its inflater, and chunks.
static const uint64_t decoder_bytes = 512 << 10;

uint64_t ccodecs_png_indexed_estimate(const ccodecs_encode_options *options) {
  ccodecs_encode_options plain = *options;
  plain.png.palette_count = 0;
  const uint64_t pixels = (uint64_t)options->width * options->height;
  const uint64_t decoder = 4 * pixels + (uint64_t)options->width * 64 + decoder_bytes;
  return ccodecs_png_encoder_estimate(&plain) + ccodecs_png_palette_estimate(options) +
         CCODECS_PALETTE_HISTOGRAM_BYTES + pixels + decoder + WINDOW_BYTES + 8 * 128;
}

bool ccodecs_png_begin_counting(png_encoder *e) {
  return ccodecs_palette_histogram_create(CCODECS_PALETTE_ALPHA, e->base.budget, &e->histogram) == CCODECS_OK;
}

void ccodecs_png_count_colors(png_encoder *e, ccodecs_rectangle part) {
  const size_t size = e->canvases.pixel_bytes;
  for (uint32_t y = part.top; y < part.top + part.height; y++) {
    const uint8_t *row = e->canvases.current + y * e->canvases.row_bytes + part.left * size;
    ccodecs_palette_histogram_add(e->histogram, row, (uint32_t)size, part.width);
  }
}

void ccodecs_png_map_row(png_encoder *e, const uint8_t *row, uint32_t y, ccodecs_rectangle part) {
  uint8_t *indices = e->indices + (size_t)y * e->base.options.width + part.left;
  const size_t offset = y * e->canvases.row_bytes + part.left * e->canvases.pixel_bytes;
  const ccodecs_palette_previous previous = {.pixels = e->canvases.previous + offset, .indices = indices};
  const bool has_previous = e->base.stored_frames > 0 || e->base.has_pending;
  ccodecs_palette_mapper_map(
      e->mapper, row, (uint32_t)e->canvases.pixel_bytes, part.width, has_previous ? &previous : NULL, indices);
  memcpy(e->current, indices, part.width);
}

/// Creates the encoder of the frames with a palette. Returns NULL if the budget is exhausted.
static png_encoder *create_indexed(png_encoder *e) {
  ccodecs_encode_options options = e->base.options;
  options.png.palette_count = 0;
  options.png.filter = CCODECS_PNG_FILTER_NONE;
  options.metadata = (ccodecs_metadata){0};
  png_encoder *indexed = (png_encoder *)ccodecs_encoder_allocate(&ccodecs_png_encoder, &options, e->base.budget);
  if (indexed == NULL) {
    return NULL;
  }
  indexed->metadata = e->metadata; // its chunks
  e->metadata = (ccodecs_bytes){0};
  indexed->indices = ccodecs_allocate(e->base.budget, (size_t)options.width * options.height);
  ccodecs_status status = indexed->indices == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
  const uint32_t colors = e->base.options.png.palette_count;
  status = status == CCODECS_OK ? ccodecs_palette_build(e->histogram, colors, &indexed->palette) : status;
  status = status == CCODECS_OK
               ? ccodecs_palette_mapper_create(&indexed->palette, options.width, e->base.budget, &indexed->mapper)
               : status;
  if (status != CCODECS_OK) {
    ccodecs_encoder_destroy(&indexed->base);
    return NULL;
  }
  return indexed;
}

/// Reads the header of what was spooled, and selects all frames. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or a failure.
static ccodecs_status begin_decoding(ccodecs_decoder *decoder, ccodecs_input *input) {
  const ccodecs_decode_options options = {.scale_eighths = 8};
  ccodecs_layout layout;
  ccodecs_status status = ccodecs_decoder_read_header(decoder, input);
  if (status == CCODECS_OK && ccodecs_decoder_header(decoder)->has_frames) {
    status = ccodecs_decoder_select_frames(decoder, 0, 0);
  }
  return status == CCODECS_OK ? ccodecs_decoder_start(decoder, &options, &layout) : status;
}

/// Decodes the bytes of a window, and encodes their rows. Returns CCODECS_NEEDS_INPUT, CCODECS_DONE or a failure.
static ccodecs_status pass_rows(ccodecs_decoder *decoder, png_encoder *indexed, ccodecs_input *input) {
  while (true) {
    ccodecs_rows rows;
    const ccodecs_status event = ccodecs_decoder_read_rows(decoder, input, &rows);
    ccodecs_status status = CCODECS_OK;
    if (event == CCODECS_ROWS_READY) {
      if (!indexed->base.is_in_frame) {
        status = ccodecs_encoder_begin_frame(&indexed->base, ccodecs_decoder_frame(decoder));
      }
      status = status == CCODECS_OK ? ccodecs_encoder_write(&indexed->base, &rows) : status;
    } else if (event == CCODECS_FRAME_DONE) {
      status = ccodecs_encoder_end_frame(&indexed->base);
    } else {
      return event;
    }
    CCODECS_TRY(status);
  }
}

/// Decodes what was spooled and encodes it with the palette. Returns CCODECS_DONE or a failure.
static ccodecs_status pass_frames(png_encoder *e, ccodecs_decoder *decoder, png_encoder *indexed, uint8_t *window) {
  const ccodecs_interrupt *interrupt = &e->base.interrupt;
  bool has_begun = false;
  ccodecs_status status = CCODECS_NEEDS_INPUT;
  while (status == CCODECS_NEEDS_INPUT) {
    if (interrupt->may_continue != NULL && !interrupt->may_continue(interrupt->owner)) {
      return ccodecs_encoder_fail(&e->base, CCODECS_INTERRUPTED, "encoding was interrupted");
    }
    const size_t count = ccodecs_encoder_read(&e->base, window, WINDOW_BYTES);
    ccodecs_input input = {.bytes = window, .count = count, .is_last = count == 0};
    if (!has_begun) {
      status = begin_decoding(decoder, &input);
      has_begun = status == CCODECS_OK;
    }
    status = has_begun ? pass_rows(decoder, indexed, &input) : status;
  }
  return status;
}

/// Replaces the result by that of another encoder.
static void take_result(png_encoder *e, png_encoder *indexed) {
  ccodecs_spool_destroy(&e->base.spool, e->base.budget);
  ccodecs_bytes_free(&e->base.output, e->base.budget);
  e->base.spool = indexed->base.spool;
  e->base.output = indexed->base.output;
  e->base.stored_frames = indexed->base.stored_frames;
  indexed->base.spool = (ccodecs_spool){0};
  indexed->base.output = (ccodecs_bytes){0};
  ccodecs_encoder_rewind(&e->base);
}

ccodecs_status ccodecs_png_index_animation(png_encoder *e) {
  const ccodecs_limits limits = {0};
  png_encoder *indexed = create_indexed(e);
  ccodecs_palette_histogram_destroy(e->histogram);
  e->histogram = NULL;
  if (indexed != NULL && e->base.is_animation) {
    ccodecs_encoder_keep_animation(&indexed->base);
  }
  ccodecs_decoder *decoder =
      ccodecs_decoder_allocate(&ccodecs_png_decoder, CCODECS_FORMAT_PNG, &limits, e->base.budget);
  uint8_t *window = ccodecs_allocate(e->base.budget, WINDOW_BYTES);
  ccodecs_status status = CCODECS_NO_MEMORY;
  if (indexed != NULL && decoder != NULL && window != NULL) {
    status = pass_frames(e, decoder, indexed, window);
    status = status == CCODECS_DONE ? ccodecs_encoder_finish(&indexed->base) : status;
  }
  if (status == CCODECS_OK) {
    take_result(e, indexed);
  }
  ccodecs_free(e->base.budget, window);
  ccodecs_decoder_destroy(decoder);
  if (indexed != NULL) {
    ccodecs_encoder_destroy(&indexed->base);
  }
  return status;
}

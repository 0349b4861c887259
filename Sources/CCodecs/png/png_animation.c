// Encoding of animations (APNG): of each frame, the rectangle that changed.
//
// Source: PNG specification (third edition), sections 11.3.6 (acTL, fcTL, fdAT) and 4.9.

#include "png_animation.h"

#include "../formats.h"
#include "png_chunk.h"
#include "png_indexed_animation.h"

/// The maximum of a frame's duration and of its divisor.
static const uint32_t max_units = UINT16_MAX;

bool ccodecs_png_begin_animation(png_encoder *e) {
  ccodecs_encoder_begin_spool(&e->base);
  const bool has_palette = e->base.options.png.palette_count > 0;
  return ccodecs_canvases_create(&e->canvases, &e->base) && (!has_palette || ccodecs_png_begin_counting(e));
}

uint64_t ccodecs_png_animation_estimate(const ccodecs_encode_options *options) {
  // The compressed bytes of one frame wait for the next one in a growing block.
  return ccodecs_animation_estimate(options) +
         ccodecs_png_max_bytes(options, ccodecs_encoder_channels(options)) * 5 / 2 +
         (options->png.palette_count > 0 ? ccodecs_png_indexed_estimate(options) : 0);
}

/// Compresses a part of a canvas, as IDAT chunks for the first frame and as fdAT chunks for others.
static ccodecs_status compress_part(png_encoder *e, const uint8_t *canvas, ccodecs_rectangle part) {
  e->pending_sequence = e->sequence++;
  e->pending_part = part;
  e->is_first = e->base.stored_frames == 0;
  ccodecs_status status = ccodecs_png_restart(e);
  const bool is_indexed = e->mapper != NULL;
  ccodecs_png_begin_pass(e, is_indexed ? part.width : part.width * e->pixel_bytes);
  if (is_indexed) {
    ccodecs_palette_mapper_begin(e->mapper);
  }
  const uint8_t *row = canvas + part.top * e->canvases.row_bytes + part.left * e->pixel_bytes;
  for (uint32_t y = 0; y < part.height && status == CCODECS_OK; y++, row += e->canvases.row_bytes) {
    if (is_indexed) {
      ccodecs_png_map_row(e, row, part.top + y, part);
    } else {
      memcpy(e->current, row, e->row_bytes);
    }
    status = ccodecs_png_write_row(e);
  }
  return status == CCODECS_OK ? ccodecs_png_end_pass(e) : status;
}

/// Fills the fcTL chunk of the pending frame, shown for `duration` units.
static void fill_control(const png_encoder *e, uint32_t duration, uint8_t control[PNG_CONTROL_BYTES]) {
  memset(control, 0, PNG_CONTROL_BYTES); // nothing is disposed of, and pixels replace those below
  ccodecs_put_be32(control, e->pending_sequence);
  ccodecs_put_be32(control + 4, e->pending_part.width);
  ccodecs_put_be32(control + 8, e->pending_part.height);
  ccodecs_put_be32(control + 12, e->pending_part.left);
  ccodecs_put_be32(control + 16, e->pending_part.top);
  control[20] = (uint8_t)(duration >> 8);
  control[21] = (uint8_t)duration;
  control[22] = (uint8_t)(e->base.pending.duration_divisor >> 8);
  control[23] = (uint8_t)e->base.pending.duration_divisor;
}

/// Spools the compressed frame in the output, and before it its fcTL chunk. That of the first frame is kept: it is
/// written if there is another frame.
static ccodecs_status spool_pending(png_encoder *e, uint32_t duration) {
  ccodecs_bytes *output = &e->base.output;
  uint8_t control[PNG_CONTROL_BYTES];
  fill_control(e, duration, control);
  ccodecs_status status = CCODECS_OK;
  if (e->base.stored_frames == 0) {
    memcpy(e->first_control, control, PNG_CONTROL_BYTES);
  } else {
    ccodecs_bytes chunk = {0};
    status = ccodecs_png_append_chunk(&chunk, "fcTL", control, PNG_CONTROL_BYTES, e->base.budget)
                 ? ccodecs_encoder_spool(&e->base, ccodecs_bytes_start(&chunk), chunk.count)
                 : CCODECS_NO_MEMORY;
    ccodecs_bytes_free(&chunk, e->base.budget);
  }
  e->base.stored_frames++;
  status = status == CCODECS_OK ? ccodecs_encoder_spool(&e->base, ccodecs_bytes_start(output), output->count) : status;
  ccodecs_bytes_take(output, output->count);
  return status;
}

/// Expresses the duration of the pending frame in fewer units where that is exact.
static void reduce_duration(ccodecs_frame *frame) {
  while ((frame->duration > max_units || frame->duration_divisor > max_units) && frame->duration_divisor >= 10 &&
         frame->duration % 10 == 0 && frame->duration_divisor % 10 == 0) {
    frame->duration /= 10;
    frame->duration_divisor /= 10;
  }
}

/// Spools the pending frame. If it lasts longer than the format can specify, it is followed by frames of one pixel of
/// the same color. `canvas` is the pending frame.
static ccodecs_status flush_pending(png_encoder *e, const uint8_t *canvas) {
  if (!e->base.has_pending) {
    return CCODECS_OK;
  }
  e->base.has_pending = false;
  reduce_duration(&e->base.pending);
  uint32_t left = e->base.pending.duration;
  ccodecs_status status = CCODECS_OK;
  do {
    const uint32_t duration = left < max_units ? left : max_units;
    left -= duration;
    status = spool_pending(e, duration);
    if (status == CCODECS_OK && left > 0) {
      status = compress_part(e, canvas, (ccodecs_rectangle){.width = 1, .height = 1});
    }
  } while (status == CCODECS_OK && left > 0);
  return status;
}

ccodecs_status ccodecs_png_end_frame(png_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const bool is_first = !e->base.has_pending;
  const bool is_key = is_first || ccodecs_canvases_need_key(&e->canvases);
  ccodecs_rectangle part = {.width = options->width, .height = options->height};
  if (!is_first) {
    const ccodecs_rectangle changes = ccodecs_canvases_changes(&e->canvases, options);
    if (changes.width == 0 && ccodecs_encoder_extend_frame(&e->base, &e->base.frame)) {
      return CCODECS_OK;
    }
    if (!is_key) {
      part = changes;
      part.width = part.width > 0 ? part.width : 1;
      part.height = part.height > 0 ? part.height : 1;
    }
  }
  if (e->histogram != NULL) {
    ccodecs_png_count_colors(e, part);
  }
  ccodecs_status status = flush_pending(e, e->canvases.previous);
  status = status == CCODECS_OK ? compress_part(e, e->canvases.current, part) : status;
  e->base.pending = e->base.frame;
  e->base.has_pending = true;
  ccodecs_canvases_advance(&e->canvases, is_key);
  return status;
}

ccodecs_status ccodecs_png_finish_animation(png_encoder *e) {
  if (!e->base.is_animation) {
    e->base.pending.duration = 0; // a still image has none
  }
  ccodecs_status status = flush_pending(e, e->canvases.previous);
  uint8_t end[PNG_CHUNK_HEADER_BYTES + PNG_CRC_BYTES] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xAE, 0x42, 0x60, 0x82};
  status = status == CCODECS_OK ? ccodecs_encoder_spool(&e->base, end, sizeof end) : status;
  const bool is_indexed = e->mapper != NULL;
  status = status == CCODECS_OK ? ccodecs_png_write_beginning(e, 8, is_indexed) : status;
  status = status == CCODECS_OK && is_indexed ? ccodecs_png_write_colors(e, &e->palette) : status;
  if (status == CCODECS_OK && e->base.is_animation) {
    uint8_t animation[8];
    ccodecs_put_be32(animation, e->base.stored_frames);
    ccodecs_put_be32(animation + 4, e->base.frame.play_count);
    status = ccodecs_png_write_chunk(e, "acTL", animation, sizeof animation);
    status = status == CCODECS_OK ? ccodecs_png_write_chunk(e, "fcTL", e->first_control, PNG_CONTROL_BYTES) : status;
  }
  status = status == CCODECS_OK ? ccodecs_encoder_end_spool(&e->base) : status;
  ccodecs_canvases_destroy(&e->canvases, e->base.budget);
  return status == CCODECS_OK && e->histogram != NULL ? ccodecs_png_index_animation(e) : status;
}

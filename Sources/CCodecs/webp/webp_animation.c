// Encoding of animated WebP: frames by libwebp, each the rectangle that changed, and chunks of our own.
//
// Source: WebP Container Specification, "Animation".

#include "webp_encoder.h"
#include "webp_kept.h"

#include <string.h>

enum {
  FRAME_BYTES = 16, ///< The beginning of an ANMF chunk's body, before the frame's image.
  ANIMATION_BYTES = 6,
  FLAG_NO_BLENDING = 2,
};

/// The maximum of a frame's duration in milliseconds.
static const uint32_t max_milliseconds = 0xFFFFFF;

uint64_t ccodecs_webp_animation_estimate(const ccodecs_encode_options *options) {
  return ccodecs_animation_estimate(options);
}

/// Compresses a part of a canvas, which becomes the output. `is_blended` leaves out what the frame before it shows.
static ccodecs_status compress_part(webp_encoder *e, const uint8_t *canvas, ccodecs_rectangle part, bool is_blended) {
  e->pending_part = part;
  e->is_pending_blended = is_blended;
  e->image.use_argb = 1; // a lossy encoding converts the image
  e->image.width = (int)part.width;
  e->image.height = (int)part.height;
  if (!WebPPictureAlloc(&e->image)) {
    return CCODECS_NO_MEMORY;
  }
  const size_t stride = e->canvases.row_bytes;
  ccodecs_webp_import(e, canvas + part.top * stride + part.left * e->canvases.pixel_bytes, stride, 0, part.height);
  if (is_blended) {
    ccodecs_webp_keep(e, part);
  }
  return ccodecs_webp_compress(e);
}

/// Finds the chunks of the pending frame's image in the output. Returns their number of bytes, and 0 if there are none.
static size_t find_image(const webp_encoder *e, const uint8_t **image) {
  const uint8_t *file = ccodecs_bytes_start(&e->base.output);
  const size_t count = e->base.output.count;
  size_t at = RIFF_HEADER_BYTES;
  if (ccodecs_riff_has_chunk(count, at) && ccodecs_riff_is_type(file + at, "VP8X")) {
    at += CHUNK_HEADER_BYTES + EXTENSION_BYTES;
  }
  *image = file + at;
  return at < count ? count - at : 0;
}

/// Spools the compressed frame in the output, shown for `milliseconds`.
static ccodecs_status spool_pending(webp_encoder *e, uint32_t milliseconds) {
  const uint8_t *image;
  const size_t count = find_image(e, &image);
  uint8_t head[CHUNK_HEADER_BYTES + FRAME_BYTES] = {0};
  ccodecs_riff_put_chunk(head, "ANMF", (uint32_t)(FRAME_BYTES + count));
  uint8_t *body = head + CHUNK_HEADER_BYTES;
  ccodecs_put_le24(body, e->pending_part.left / 2);
  ccodecs_put_le24(body + 3, e->pending_part.top / 2);
  ccodecs_put_le24(body + 6, e->pending_part.width - 1);
  ccodecs_put_le24(body + 9, e->pending_part.height - 1);
  ccodecs_put_le24(body + 12, milliseconds);
  body[15] = e->is_pending_blended ? 0 : FLAG_NO_BLENDING; // and nothing is disposed of
  e->base.stored_frames++;
  ccodecs_status status = ccodecs_encoder_spool(&e->base, head, sizeof head);
  status = status == CCODECS_OK ? ccodecs_encoder_spool(&e->base, image, count) : status;
  ccodecs_bytes_take(&e->base.output, e->base.output.count);
  return status;
}

/// Spools the pending frame. If it lasts longer than the format can specify, it is followed by frames of one pixel of
/// the same color. `canvas` is the pending frame.
static ccodecs_status flush_pending(webp_encoder *e, const uint8_t *canvas) {
  if (!e->base.has_pending) {
    return CCODECS_OK;
  }
  e->base.has_pending = false;
  uint64_t left = ccodecs_frame_delay(&e->base.pending, 1000, &e->excess);
  ccodecs_status status = CCODECS_OK;
  do {
    const uint32_t milliseconds = left < max_milliseconds ? (uint32_t)left : max_milliseconds;
    left -= milliseconds;
    status = spool_pending(e, milliseconds);
    if (status == CCODECS_OK && left > 0) {
      status = compress_part(e, canvas, (ccodecs_rectangle){.width = 1, .height = 1}, false);
    }
  } while (status == CCODECS_OK && left > 0);
  return status;
}

/// Extends a rectangle to the left and upward to even coordinates, as the format stores half of them.
static ccodecs_rectangle even_part(ccodecs_rectangle part) {
  part.width = part.width > 0 ? part.width + (part.left & 1) : 1;
  part.height = part.height > 0 ? part.height + (part.top & 1) : 1;
  part.left &= ~1u;
  part.top &= ~1u;
  return part;
}

ccodecs_status ccodecs_webp_end_frame(webp_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  ccodecs_rectangle part = {.width = options->width, .height = options->height};
  const bool is_first = !e->base.has_pending;
  const bool is_key = is_first || ccodecs_canvases_need_key(&e->canvases);
  if (is_first) {
    part = even_part(ccodecs_webp_visible(e));
  } else {
    const ccodecs_rectangle changes = ccodecs_webp_changes(e);
    if (changes.width == 0 && ccodecs_encoder_extend_frame(&e->base, &e->base.frame)) {
      return CCODECS_OK;
    }
    part = is_key ? part : even_part(changes);
  }
  ccodecs_status status = flush_pending(e, e->canvases.previous);
  const bool is_blended = !is_key && ccodecs_webp_can_keep(e, part);
  status = status == CCODECS_OK ? compress_part(e, e->canvases.current, part, is_blended) : status;
  e->base.pending = e->base.frame;
  e->base.has_pending = true;
  ccodecs_canvases_advance(&e->canvases, is_key);
  return status;
}

/// Writes the chunks that precede the frames to the output.
static ccodecs_status write_beginning(webp_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  uint8_t file[RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES + EXTENSION_BYTES];
  uint8_t animation[CHUNK_HEADER_BYTES + ANIMATION_BYTES] = {0};
  const uint64_t byte_count = sizeof file + e->before.count + sizeof animation + e->base.spool.count;
  if (byte_count > UINT32_MAX) {
    return ccodecs_encoder_fail(&e->base, CCODECS_LIMIT, "the animation has more bytes than a WebP can have");
  }
  const uint8_t alpha = options->pixels == CCODECS_PIXELS_RGBA8 ? FLAG_ALPHA : 0;
  ccodecs_riff_put_header(file, (uint32_t)byte_count);
  ccodecs_webp_put_extension(
      file + RIFF_HEADER_BYTES, FLAG_ANIMATION | alpha | e->flags, options->width, options->height);
  ccodecs_riff_put_chunk(animation, "ANIM", ANIMATION_BYTES);
  const uint32_t plays = e->base.frame.play_count;
  ccodecs_put_le16(animation + CHUNK_HEADER_BYTES + 4, plays < UINT16_MAX ? plays : UINT16_MAX);
  const bool has_room =
      ccodecs_bytes_append(&e->base.output, file, sizeof file, e->base.budget) &&
      ccodecs_bytes_append(&e->base.output, ccodecs_bytes_start(&e->before), e->before.count, e->base.budget) &&
      ccodecs_bytes_append(&e->base.output, animation, sizeof animation, e->base.budget);
  return has_room ? CCODECS_OK : CCODECS_NO_MEMORY;
}

/// Makes the output the file of the only frame, which may have only its visible part.
static ccodecs_status finish_still(webp_encoder *e) {
  const ccodecs_rectangle whole = {.width = e->base.options.width, .height = e->base.options.height};
  ccodecs_status status = CCODECS_OK;
  if (e->pending_part.width < whole.width || e->pending_part.height < whole.height) {
    ccodecs_bytes_take(&e->base.output, e->base.output.count);
    status = compress_part(e, e->canvases.previous, whole, false);
  }
  return status == CCODECS_OK ? ccodecs_encoder_end_spool(&e->base) : status;
}

ccodecs_status ccodecs_webp_finish_animation(webp_encoder *e) {
  if (!e->base.is_animation) {
    return finish_still(e);
  }
  ccodecs_status status = flush_pending(e, e->canvases.previous);
  status = status == CCODECS_OK && e->after.count > 0
               ? ccodecs_encoder_spool(&e->base, ccodecs_bytes_start(&e->after), e->after.count)
               : status;
  status = status == CCODECS_OK ? write_beginning(e) : status;
  return status == CCODECS_OK ? ccodecs_encoder_end_spool(&e->base) : status;
}

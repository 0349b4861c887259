// Composition of the frames of an animated WebP, which libwebp decodes one by one from the buffered file.
//
// Every frame is returned as the whole canvas. The pixels that are blended are those of libwebp's own animation
// decoder.
//
// Source: WebP Container Specification, "Animation".

#include "webp_decoder.h"

#include <string.h>

enum { FRAME_BYTES = 16, FLAG_CLEARED = 1, FLAG_NO_BLENDING = 2 };

void ccodecs_webp_describe_frames(webp_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const uint8_t *file = ccodecs_bytes_start(&d->file);
  uint32_t size;
  const uint8_t *animation = ccodecs_riff_find(file, d->file.count, RIFF_HEADER_BYTES, "ANIM", &size);
  header->frame_count = ccodecs_webp_count_frames(file, d->file.count);
  header->warnings |= header->frame_count > 1 ? CCODECS_WARNING_FIRST_FRAME : 0;
  header->has_frames = header->frame_count > 1;
  header->play_count = animation != NULL && size >= 6 ? ccodecs_le16(animation + 4) : 1;
  d->frame_at = RIFF_HEADER_BYTES;
}

ccodecs_status ccodecs_webp_select_frames(ccodecs_decoder *base, int64_t first, uint32_t count) {
  const uint32_t all = base->header.frame_count;
  const int64_t index = first < 0 ? first + all : first;
  if (index < 0 || (index >= all && index > 0)) {
    base->first_frame = (uint32_t)(first < 0 ? -first : first);
    return ccodecs_decoder_lack_frame(base);
  }
  base->first_frame = (uint32_t)index;
  const bool is_all = index == 0 && (count == 0 || count >= all);
  base->header.warnings &= ~(uint32_t)CCODECS_WARNING_FIRST_FRAME;
  base->header.warnings |= is_all ? 0u : CCODECS_WARNING_FIRST_FRAME;
  return CCODECS_OK;
}

uint64_t ccodecs_webp_frames_estimate(const webp_decoder *d) {
  const bool is_first = d->base.first_frame == 0 && d->base.selected_frames == 1;
  const uint64_t blended = is_first ? 0 : (uint64_t)d->base.header.width * d->base.header.height * 4 + 128;
  return blended + d->file_bytes + 1024; // and what the block of the file's bytes grows by
}

/// The chunks of a frame's image, which libwebp decodes without a RIFF header.
typedef struct frame_chunks {
  const uint8_t *bytes;
  size_t count;
} frame_chunks;

/// Returns whether the first chunk is one of an image: libwebp would also accept a file, or data without a chunk.
static bool is_image(frame_chunks image) {
  return ccodecs_riff_is_type(image.bytes, "VP8 ") || ccodecs_riff_is_type(image.bytes, "VP8L") ||
         ccodecs_riff_is_type(image.bytes, "ALPH");
}

/// Decodes a frame's image to `pixels`.
static ccodecs_status decode_image(webp_decoder *d, frame_chunks image, uint8_t *pixels, size_t bytes, size_t stride) {
  const ccodecs_frame *frame = &d->base.frame;
  WebPBitstreamFeatures features;
  const VP8StatusCode found = WebPGetFeatures(image.bytes, image.count, &features);
  if (found != VP8_STATUS_OK) {
    return ccodecs_webp_fail(d, found);
  }
  const bool is_right = (uint32_t)features.width == frame->width && (uint32_t)features.height == frame->height;
  return is_right && WebPDecodeRGBAInto(image.bytes, image.count, pixels, bytes, (int)stride) != NULL
             ? CCODECS_OK
             : ccodecs_webp_fail(d, VP8_STATUS_BITSTREAM_ERROR);
}

/// Blends a pixel with another, as libwebp does.
static void blend(const uint8_t *over, uint8_t *under) {
  const uint32_t alpha = over[3];
  const uint32_t below = under[3] * (256 - alpha) >> 8;
  const uint32_t sum = alpha + below;
  const uint32_t scale = (1u << 24) / sum;
  for (int c = 0; c < 3; c++) {
    under[c] = (uint8_t)((over[c] * alpha + under[c] * below) * scale >> 24);
  }
  under[3] = (uint8_t)sum;
}

static void blend_frame(webp_decoder *d, const uint8_t *pixels) {
  const ccodecs_frame *frame = &d->base.frame;
  for (uint32_t y = 0; y < frame->height; y++) {
    uint8_t *row = d->canvas + (frame->top + y) * d->row_bytes + (size_t)frame->left * 4;
    for (uint32_t x = 0; x < frame->width; x++, pixels += 4, row += 4) {
      if (pixels[3] == 255) {
        memcpy(row, pixels, 4);
      } else if (pixels[3] > 0) {
        blend(pixels, row);
      }
    }
  }
}

/// Decodes a frame onto the canvas.
static ccodecs_status draw(webp_decoder *d, frame_chunks image, bool is_blended) {
  const ccodecs_frame *frame = &d->base.frame;
  const size_t canvas_bytes = d->row_bytes * d->base.header.height;
  const size_t offset = frame->top * d->row_bytes + (size_t)frame->left * 4;
  if (!is_blended) {
    return decode_image(d, image, d->canvas + offset, canvas_bytes - offset, d->row_bytes);
  }
  const size_t stride = (size_t)frame->width * 4;
  uint8_t *pixels = ccodecs_allocate(d->base.budget, stride * frame->height);
  if (pixels == NULL) {
    return CCODECS_NO_MEMORY;
  }
  const ccodecs_status status = decode_image(d, image, pixels, stride * frame->height, stride);
  if (status == CCODECS_OK) {
    blend_frame(d, pixels);
  }
  ccodecs_free(d->base.budget, pixels);
  return status;
}

/// Composes the next frame of the file on the canvas.
static ccodecs_status compose_frame(webp_decoder *d) {
  const uint8_t *file_bytes = ccodecs_bytes_start(&d->file);
  uint32_t size;
  const uint8_t *body = ccodecs_riff_find(file_bytes, d->file.count, d->frame_at, "ANMF", &size);
  if (body == NULL || size < FRAME_BYTES + CHUNK_HEADER_BYTES) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the WebP animation has no frame");
  }
  d->frame_at = (size_t)(body - file_bytes) + size + (size & 1);
  d->base.frame = (ccodecs_frame){
      .left = 2 * ccodecs_le24(body),
      .top = 2 * ccodecs_le24(body + 3),
      .width = ccodecs_le24(body + 6) + 1,
      .height = ccodecs_le24(body + 9) + 1,
      .duration = ccodecs_le24(body + 12),
      .duration_divisor = 1000,
      .play_count = d->base.header.play_count,
  };
  const ccodecs_frame *frame = &d->base.frame;
  if (frame->left + frame->width > d->base.header.width || frame->top + frame->height > d->base.header.height) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, "%s frame lies outside the animation", d->frame_index == 0 ? "the first" : "a");
  }
  // There is nothing below the first frame.
  const bool is_blended = (body[15] & FLAG_NO_BLENDING) == 0 && d->base.counted_frames > 0;
  d->is_cleared = (body[15] & FLAG_CLEARED) != 0;
  const ccodecs_status status = ccodecs_decoder_count_frame(&d->base, (uint64_t)frame->width * frame->height);
  const frame_chunks image = {.bytes = body + FRAME_BYTES, .count = size - FRAME_BYTES};
  if (status == CCODECS_OK && !is_image(image)) {
    return ccodecs_webp_fail(d, VP8_STATUS_BITSTREAM_ERROR);
  }
  return status == CCODECS_OK ? draw(d, image, is_blended) : status;
}

/// Prepares the canvas for the next frame.
static void dispose(webp_decoder *d) {
  const ccodecs_frame *frame = &d->base.frame;
  for (uint32_t y = 0; d->is_cleared && y < frame->height; y++) {
    memset(d->canvas + (frame->top + y) * d->row_bytes + (size_t)frame->left * 4, 0, (size_t)frame->width * 4);
  }
  d->frame_index++;
}

ccodecs_status ccodecs_webp_next_frame(webp_decoder *d) {
  if (d->base.counted_frames == 0) {
    memset(d->canvas, 0, d->row_bytes * d->base.header.height);
  }
  ccodecs_status status = compose_frame(d);
  while (status == CCODECS_OK && d->frame_index < d->base.first_frame) {
    dispose(d);
    status = compose_frame(d);
  }
  d->decoded = d->base.header.height;
  d->is_complete = true;
  return status;
}

ccodecs_status ccodecs_webp_end_frame_rows(webp_decoder *d) {
  const uint64_t end = (uint64_t)d->base.first_frame + d->base.selected_frames;
  const bool is_end = d->base.selected_frames > 0 && (uint64_t)d->frame_index + 1 >= end;
  if (is_end || d->frame_index + 1 >= d->base.header.frame_count) {
    return CCODECS_DONE;
  }
  dispose(d);
  d->is_complete = false;
  d->decoded = 0;
  d->given = 0;
  d->planes[0].given = 0;
  return CCODECS_FRAME_DONE;
}

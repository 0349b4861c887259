// Composition of the frames of an animated WebP, which libwebp decodes one by one.
//
// The chunks are read as they arrive, and only those of the frame that is decoded are buffered. The whole file is
// buffered if metadata may follow the frames, if its chunks do not have the usual order, or if
// ccodecs_decoder_buffer_input asks for it. Either way, `file` contains the bytes from the chunk at `file_at` on, as
// far as they are buffered, and the rest is in the input.
//
// Every frame is returned as the whole canvas. The pixels that are blended are those of libwebp's own animation
// decoder.
//
// Source: WebP Container Specification, "Animation".

#include "webp_decoder.h"

#include <string.h>

enum { FRAME_BYTES = 16, FLAG_CLEARED = 1, FLAG_NO_BLENDING = 2 };

/// The offset of a frame's first part in its chunk.
static const size_t first_part_at = CHUNK_HEADER_BYTES + FRAME_BYTES;

/// Returns the maximum number of bytes of a frame: more than any encoder needs for the pixels of the canvas.
static uint64_t max_frame_bytes(const webp_decoder *d) {
  return (uint64_t)d->base.header.width * d->base.header.height * 5 + 65536;
}

// MARK: Header

bool ccodecs_webp_has_frames(webp_decoder *d) {
  while (ccodecs_riff_has_chunk(d->file.count, d->survey_at)) {
    const uint8_t *chunk = ccodecs_bytes_start(&d->file) + d->survey_at;
    const uint32_t size = ccodecs_riff_body_bytes(chunk);
    const bool is_frame = ccodecs_riff_is_type(chunk, "ANMF");
    const bool is_regular = d->has_parameters && (d->has_profile || (d->flags & FLAG_PROFILE) == 0);
    if (is_frame && !is_regular) {
      d->base.header.buffers_input = d->base.must_buffer_input = true;
      return false;
    }
    if (is_frame && d->has_first_frame && size + d->survey_at + CHUNK_HEADER_BYTES <= d->file_bytes) {
      return true;
    }
    d->has_first_frame = d->has_first_frame || is_frame;
    d->has_profile = d->has_profile || ccodecs_riff_is_type(chunk, "ICCP");
    d->has_parameters = d->has_parameters || ccodecs_riff_is_type(chunk, "ANIM");
    d->survey_at += (size_t)ccodecs_riff_chunk_bytes(size);
  }
  return d->file.count >= d->file_bytes;
}

void ccodecs_webp_describe_frames(webp_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const uint8_t *file = ccodecs_bytes_start(&d->file);
  uint32_t size;
  const uint8_t *animation = ccodecs_riff_find(file, d->file.count, RIFF_HEADER_BYTES, "ANIM", &size);
  header->can_buffer_input = d->file.count < d->file_bytes;
  header->buffers_input = !header->can_buffer_input;
  header->frame_count = header->can_buffer_input ? 0 : ccodecs_webp_count_frames(file, d->file.count);
  header->has_frames = header->can_buffer_input || header->frame_count > 1;
  header->warnings |= header->has_frames ? CCODECS_WARNING_FIRST_FRAME : 0;
  header->play_count = animation != NULL && size >= 6 ? ccodecs_le16(animation + 4) : 1;
}

ccodecs_status ccodecs_webp_select_frames(ccodecs_decoder *base, int64_t first, uint32_t count) {
  const bool is_counted = !base->header.can_buffer_input;
  const uint32_t all = base->header.frame_count;
  if (!is_counted && first < 0) {
    return ccodecs_decoder_fail(
        base, CCODECS_UNSUPPORTED, "the frames of a WebP are counted at its end; count from the first one");
  }
  // The first one is accepted even if there is none.
  CCODECS_TRY(ccodecs_decoder_choose_frame(base, first, !is_counted ? INT64_MAX : all == 0 && first == 0 ? 1 : all));
  const bool is_all = base->first_frame == 0 && (count == 0 || (is_counted && count >= all));
  base->header.warnings &= ~(uint32_t)CCODECS_WARNING_FIRST_FRAME;
  base->header.warnings |= is_all ? 0u : CCODECS_WARNING_FIRST_FRAME;
  return CCODECS_OK;
}

uint64_t ccodecs_webp_frames_estimate(const webp_decoder *d) {
  const bool is_first = d->base.first_frame == 0 && d->base.selected_frames == 1;
  const uint64_t blended = is_first ? 0 : (uint64_t)d->base.header.width * d->base.header.height * 4 + 128;
  if (!d->base.header.can_buffer_input) {
    return blended + d->file_bytes + 1024; // and what the block of the file's bytes grows by
  }
  const uint64_t maximum = max_frame_bytes(d);
  return blended + (is_first ? 0 : d->file_bytes < maximum ? d->file_bytes : maximum) + 1024;
}

// MARK: Chunks

/// Records that the file ends before `d` has all of its frames.
static ccodecs_status wait_or_fail(webp_decoder *d, const ccodecs_input *input) {
  return input->is_last ? ccodecs_webp_fail(d, VP8_STATUS_NOT_ENOUGH_DATA) : CCODECS_NEEDS_INPUT;
}

/// Buffers bytes until there are `count`. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status collect(webp_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_bytes_gather(&d->file, input, count, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for a frame of the WebP");
  }
  return d->file.count >= count ? CCODECS_OK : wait_or_fail(d, input);
}

/// Passes the chunk at `file_at`, whose header is available. Its bytes are skipped later.
static void pass_chunk(webp_decoder *d) {
  const uint64_t size = ccodecs_riff_chunk_bytes(ccodecs_riff_body_bytes(ccodecs_bytes_start(&d->file)));
  const uint64_t left = d->file_bytes - d->file_at;
  d->skipped_bytes = size < left ? size : left;
  d->file_at += d->skipped_bytes;
  d->part_at = first_part_at;
}

/// Skips the bytes of chunks that were passed. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status skip_passed(webp_decoder *d, ccodecs_input *input) {
  const size_t buffered = d->skipped_bytes < d->file.count ? (size_t)d->skipped_bytes : d->file.count;
  ccodecs_bytes_take(&d->file, buffered);
  d->skipped_bytes -= buffered;
  return ccodecs_input_skip(input, &d->skipped_bytes) ? CCODECS_OK : wait_or_fail(d, input);
}

/// Finds the chunk of the next frame, whose header is then available, or sets *is_end. Returns CCODECS_OK,
/// CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status find_frame(webp_decoder *d, ccodecs_input *input, bool *is_end) {
  while (true) {
    const ccodecs_status status = skip_passed(d, input);
    const uint64_t left = d->file_bytes < d->file_at ? 0 : d->file_bytes - d->file_at;
    *is_end = left < CHUNK_HEADER_BYTES;
    if (status != CCODECS_OK || *is_end) {
      return status;
    }
    CCODECS_TRY(collect(d, input, CHUNK_HEADER_BYTES));
    const uint8_t *chunk = ccodecs_bytes_start(&d->file);
    *is_end = ccodecs_riff_body_bytes(chunk) > left - CHUNK_HEADER_BYTES;
    if (*is_end || ccodecs_riff_is_type(chunk, "ANMF")) {
      return CCODECS_OK;
    }
    pass_chunk(d);
  }
}

/// Makes room for `count` bytes of a frame. The block of the frame before is freed first.
static bool make_room(webp_decoder *d, size_t count) {
  ccodecs_bytes *file = &d->file;
  if (file->capacity >= count) {
    return file->count >= count || ccodecs_bytes_reserve(file, count - file->count, d->base.budget);
  }
  uint8_t header[CHUNK_HEADER_BYTES];
  ccodecs_bytes smaller = *file;
  if (file->count <= sizeof header) {
    memcpy(header, ccodecs_bytes_start(file), file->count);
    ccodecs_free(d->base.budget, file->block);
    smaller = (ccodecs_bytes){.block = header, .count = file->count};
  }
  *file = (ccodecs_bytes){0};
  const bool has_room = ccodecs_bytes_reserve(file, count, d->base.budget) &&
                        ccodecs_bytes_append(file, ccodecs_bytes_start(&smaller), smaller.count, d->base.budget);
  if (smaller.block != header) {
    ccodecs_free(d->base.budget, smaller.block);
  }
  return has_room;
}

// MARK: Composition

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

/// Buffers the frame at `file_at` up to the end of its image. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status collect_frame(webp_decoder *d, ccodecs_input *input, frame_chunks *image) {
  const uint64_t end = CHUNK_HEADER_BYTES + (uint64_t)ccodecs_riff_body_bytes(ccodecs_bytes_start(&d->file));
  const uint64_t maximum = max_frame_bytes(d);
  if (end < first_part_at + CHUNK_HEADER_BYTES) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the WebP animation has no frame");
  }
  if (!make_room(d, (size_t)(end < maximum ? end : maximum))) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for a frame of the WebP");
  }
  bool is_image = false;
  while (true) {
    uint64_t wanted = d->part_at + CHUNK_HEADER_BYTES;
    if (is_image) {
      wanted += ccodecs_riff_body_bytes(ccodecs_bytes_start(&d->file) + d->part_at);
    }
    wanted = wanted < end ? wanted : end;
    if (wanted > maximum) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a frame of the WebP has more bytes than its pixels need");
    }
    CCODECS_TRY(collect(d, input, (size_t)wanted));
    if (is_image || wanted < d->part_at + CHUNK_HEADER_BYTES) {
      *image = (frame_chunks){
          .bytes = ccodecs_bytes_start(&d->file) + first_part_at, .count = (size_t)wanted - first_part_at};
      return CCODECS_OK;
    }
    const uint8_t *part = ccodecs_bytes_start(&d->file) + d->part_at;
    is_image = ccodecs_riff_is_type(part, "VP8 ") || ccodecs_riff_is_type(part, "VP8L");
    d->part_at += is_image ? 0 : (size_t)ccodecs_riff_chunk_bytes(ccodecs_riff_body_bytes(part));
  }
}

/// Describes the frame at `file_at`. Returns CCODECS_OK or records the failure.
static ccodecs_status describe_frame(webp_decoder *d) {
  const uint8_t *body = ccodecs_bytes_start(&d->file) + CHUNK_HEADER_BYTES;
  d->base.frame = (ccodecs_frame){
      .left = 2 * ccodecs_le24(body),
      .top = 2 * ccodecs_le24(body + 3),
      .width = ccodecs_le24(body + 6) + 1,
      .height = ccodecs_le24(body + 9) + 1,
      .duration = ccodecs_le24(body + 12),
      .duration_divisor = 1000,
      .play_count = d->base.header.play_count,
  };
  d->is_cleared = (body[15] & FLAG_CLEARED) != 0;
  const ccodecs_frame *frame = &d->base.frame;
  ccodecs_decoder_note_rows(&d->base, frame->top, frame->height, !d->is_cleared);
  const bool is_inside =
      frame->left + frame->width <= d->base.header.width && frame->top + frame->height <= d->base.header.height;
  return is_inside ? CCODECS_OK
                   : ccodecs_decoder_fail(
                         &d->base, CCODECS_CORRUPT, "%s frame lies outside the animation",
                         d->base.frame_index == 0 ? "the first" : "a");
}

/// Fails because there is no frame to compose.
static ccodecs_status fail_at_end(webp_decoder *d) {
  if (d->base.frame_index == 0) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the WebP animation has no frame");
  }
  d->base.header.frame_count = d->base.frame_index;
  return ccodecs_decoder_lack_frame(&d->base);
}

/// Composes the next frame of the file on the canvas. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status compose_frame(webp_decoder *d, ccodecs_input *input) {
  bool is_end;
  CCODECS_TRY(find_frame(d, input, &is_end));
  if (is_end) {
    return fail_at_end(d);
  }
  frame_chunks image;
  CCODECS_TRY(collect_frame(d, input, &image));
  CCODECS_TRY(describe_frame(d));
  // There is nothing below the first frame.
  const bool is_blended = (image.bytes[-1] & FLAG_NO_BLENDING) == 0 && d->base.counted_frames > 0;
  ccodecs_status status = ccodecs_decoder_count_frame(&d->base, (uint64_t)d->base.frame.width * d->base.frame.height);
  if (status == CCODECS_OK && !is_image(image)) {
    return ccodecs_webp_fail(d, VP8_STATUS_BITSTREAM_ERROR);
  }
  status = status == CCODECS_OK ? draw(d, image, is_blended) : status;
  pass_chunk(d);
  return status;
}

/// Prepares the canvas for the next frame.
static void dispose(webp_decoder *d) {
  const ccodecs_frame *frame = &d->base.frame;
  for (uint32_t y = 0; d->is_cleared && y < frame->height; y++) {
    memset(d->canvas + (frame->top + y) * d->row_bytes + (size_t)frame->left * 4, 0, (size_t)frame->width * 4);
  }
  d->base.frame_index++;
}

void ccodecs_webp_start_frames(webp_decoder *d) {
  memset(d->canvas, 0, d->row_bytes * d->base.header.height);
  d->file_at = d->skipped_bytes = RIFF_HEADER_BYTES;
  d->part_at = first_part_at;
}

ccodecs_status ccodecs_webp_next_frame(webp_decoder *d, ccodecs_input *input) {
  ccodecs_status status = compose_frame(d, input);
  while (status == CCODECS_OK && !ccodecs_decoder_is_selected(&d->base)) {
    dispose(d);
    status = compose_frame(d, input);
  }
  if (status == CCODECS_OK) {
    d->decoded = d->base.header.height;
    d->is_complete = true;
  }
  return status;
}

/// Looks for the frame after this one. Returns CCODECS_OK if it is selected; CCODECS_DONE otherwise, once the frames
/// behind are counted; CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status look_ahead(webp_decoder *d, ccodecs_input *input, bool is_last) {
  ccodecs_header *header = &d->base.header;
  if (header->frame_count > 0) {
    return is_last || d->base.frame_index + 1 >= header->frame_count ? CCODECS_DONE : CCODECS_OK;
  }
  bool is_end;
  ccodecs_status status = find_frame(d, input, &is_end);
  while (is_last && status == CCODECS_OK && !is_end) {
    pass_chunk(d);
    d->passed_frames++;
    status = find_frame(d, input, &is_end);
  }
  if (status != CCODECS_OK || !is_end) {
    return status;
  }
  header->frame_count = d->base.frame_index + 1 + d->passed_frames;
  if (d->base.first_frame == 0 && d->passed_frames == 0) {
    header->warnings &= ~(uint32_t)CCODECS_WARNING_FIRST_FRAME;
  }
  return CCODECS_DONE;
}

ccodecs_status ccodecs_webp_end_frame_rows(webp_decoder *d, ccodecs_input *input) {
  CCODECS_TRY(look_ahead(d, input, ccodecs_decoder_is_last(&d->base)));
  dispose(d);
  d->is_complete = false;
  d->decoded = 0;
  d->given = 0;
  d->planes[0].given = 0;
  return CCODECS_FRAME_DONE;
}

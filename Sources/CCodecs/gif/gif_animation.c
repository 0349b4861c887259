// Composition of GIF frames. Source: GIF89a, sections 20 and 23.
//
// Every frame is returned as the whole canvas. A frame that stays is drawn onto the canvas, whose rows are returned. Of
// others, a row of the canvas is copied to the strip that is returned, and the frame's row is drawn onto the copy. Only
// then the canvas itself is changed to what the next frame finds: cleared, or left as it was. So there is one canvas,
// whatever the disposal.
//
// Of a frame, only one row of indices is buffered; of an interlaced one, all of its visible indices. What lies outside
// the canvas is decoded, as the codes that follow depend on it, and dropped.

#include "gif_decoder.h"

#include <string.h>

/// The maximum width of a frame, and of a row of indices.
static const size_t max_columns = 65535;

static size_t canvas_pixels(const gif_decoder *d) {
  return (size_t)d->base.header.width * d->base.header.height;
}

uint64_t ccodecs_gif_animation_estimate(const gif_decoder *d) {
  const uint64_t interlaced = canvas_pixels(d);
  return (uint64_t)canvas_pixels(d) * 4 + interlaced + max_columns + GIF_MAX_CODES + GIF_CHUNK_BYTES +
         (uint64_t)d->row_bytes * d->strip_rows + 8 * 64;
}

/// Returns the visible columns of the frame.
static uint32_t visible_columns(const gif_decoder *d) {
  const uint32_t width = d->base.header.width;
  const uint32_t free = d->left < width ? width - d->left : 0;
  return d->width < free ? d->width : free;
}

/// Returns whether a row of the canvas contains a row of the frame.
static bool has_row(const gif_decoder *d, uint32_t y) {
  return y >= d->top && y - d->top < d->height && d->width > 0;
}

/// Begins the frame whose data follows.
static ccodecs_status begin_frame(gif_decoder *d) {
  d->given = 0;
  d->placed = 0;
  d->composed = 0;
  d->is_between = false;
  ccodecs_decoder_note_rows(&d->base, d->top, d->height, d->disposal == GIF_DISPOSAL_KEEP);
  if (d->is_interlaced && d->interlaced == NULL) {
    d->interlaced = ccodecs_allocate(d->base.budget, canvas_pixels(d));
    if (d->interlaced == NULL) {
      return CCODECS_NO_MEMORY;
    }
  }
  return ccodecs_decoder_count_frame(&d->base, (uint64_t)d->width * d->height);
}

ccodecs_status ccodecs_gif_start_animation(gif_decoder *d) {
  ccodecs_budget *budget = d->base.budget;
  d->canvas = ccodecs_allocate(budget, canvas_pixels(d) * 4);
  d->indices = ccodecs_allocate(budget, max_columns + GIF_MAX_CODES + GIF_CHUNK_BYTES);
  d->strip = ccodecs_allocate(budget, d->row_bytes * d->strip_rows);
  if (d->canvas == NULL || d->indices == NULL || d->strip == NULL) {
    return CCODECS_NO_MEMORY;
  }
  memset(d->canvas, 0, canvas_pixels(d) * 4);
  return begin_frame(d);
}

/// Draws a row of indices onto RGBA pixels, except transparent ones. Does not branch for a pixel, as transparent ones
/// are scattered.
static void draw(const gif_decoder *d, const uint8_t *indices, size_t count, uint8_t *pixels) {
  enum { MANY = 8 };
  const uint64_t transparent = 0x0101010101010101u * (uint8_t)d->transparent;
  for (size_t first = 0; first < count; first += MANY) {
    const size_t end = first + MANY < count ? first + MANY : count;
    if (d->transparent >= 0 && end == first + MANY && ccodecs_le64(indices + first) == transparent) {
      continue;
    }
    for (size_t i = first; i < end; i++) {
      const uint8_t *source = indices[i] == d->transparent ? pixels + 4 * i : d->palette[indices[i]];
      memmove(pixels + 4 * i, source, 4);
    }
  }
}

/// Composes row `y` of the canvas, in `row` unless the frame stays, and prepares the canvas for the next frame.
/// `indices` is NULL for a row without the frame.
static void compose_row(gif_decoder *d, uint32_t y, const uint8_t *indices, uint8_t *row) {
  uint8_t *canvas = d->canvas + (size_t)y * d->row_bytes;
  const bool is_kept = d->disposal == GIF_DISPOSAL_KEEP;
  const uint32_t count = indices == NULL ? 0 : visible_columns(d);
  const size_t offset = 4 * (size_t)d->left;
  if (!is_kept) {
    memcpy(row, canvas, d->row_bytes);
  }
  if (count > 0) {
    draw(d, indices, count, (is_kept ? canvas : row) + offset);
  }
  if (count > 0 && d->disposal == GIF_DISPOSAL_CLEAR) {
    memset(canvas + offset, 0, 4 * (size_t)count);
  }
}

/// Consumes the first row of `indices`.
static void drop_row(gif_decoder *d) {
  d->index_count -= d->width;
  memmove(d->indices, d->indices + d->width, d->index_count);
}

/// Returns the row of an interlaced frame at a position in file order.
static uint32_t interlaced_row(uint32_t place, uint32_t height) {
  const uint32_t eighths = (height + 7) / 8;
  const uint32_t quarters = (height + 3) / 4;
  const uint32_t halves = (height + 1) / 2;
  return place < eighths    ? 8 * place
         : place < quarters ? 8 * (place - eighths) + 4
         : place < halves   ? 4 * (place - quarters) + 2
                            : 2 * (place - halves) + 1;
}

/// Decodes all rows of an interlaced frame. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status place_rows(gif_decoder *d, ccodecs_input *input) {
  const ccodecs_header *header = &d->base.header;
  for (; d->placed < d->height && d->width > 0; d->placed++) {
    CCODECS_TRY(ccodecs_gif_fill(d, input, d->width));
    const uint32_t y = interlaced_row(d->placed, d->height);
    if ((uint64_t)d->top + y < header->height) {
      memcpy(d->interlaced + (size_t)y * header->width, d->indices, visible_columns(d));
    }
    drop_row(d);
  }
  return CCODECS_OK;
}

/// Composes a strip. Returns CCODECS_ROWS_READY, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status compose_strip(gif_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  const ccodecs_header *header = &d->base.header;
  if (d->is_interlaced) {
    CCODECS_TRY(place_rows(d, input));
  }
  const uint32_t left = header->height - d->given;
  const uint32_t count = left < d->strip_rows ? left : d->strip_rows;
  for (; d->composed < count; d->composed++) {
    const uint32_t y = d->given + d->composed;
    const bool is_inside = has_row(d, y);
    const bool is_streamed = is_inside && !d->is_interlaced;
    CCODECS_TRY(is_streamed ? ccodecs_gif_fill(d, input, d->width) : CCODECS_OK);
    const uint8_t *indices = !is_inside         ? NULL
                             : d->is_interlaced ? d->interlaced + (size_t)(y - d->top) * header->width
                                                : d->indices;
    compose_row(d, y, indices, d->strip + d->composed * d->row_bytes);
    if (is_streamed) {
      drop_row(d);
    }
  }
  const uint8_t *canvas = d->canvas + (size_t)d->given * d->row_bytes;
  rows->planes[0] = d->disposal == GIF_DISPOSAL_KEEP ? canvas : d->strip;
  d->composed = 0;
  d->given += count;
  rows->row_strides[0] = d->row_bytes;
  rows->row_counts[0] = count;
  return CCODECS_ROWS_READY;
}

ccodecs_status ccodecs_gif_end_animation(gif_decoder *d) {
  d->base.header.frame_count = d->base.frame_index + 1;
  return ccodecs_decoder_is_selected(&d->base) ? CCODECS_DONE : ccodecs_decoder_lack_frame(&d->base);
}

ccodecs_status ccodecs_gif_interrupt_animation(gif_decoder *d) {
  const bool is_in_frame = d->has_control || (d->state >= STATE_DESCRIPTOR && d->state <= STATE_CODE_SIZE);
  if (d->is_after || !is_in_frame) {
    return ccodecs_gif_end_animation(d);
  }
  return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the GIF data ends before the data of its last frame");
}

/// Looks for the next frame. Returns CCODECS_FRAME_DONE if this frame was returned and another one is, CCODECS_OK if
/// this frame was not returned, CCODECS_DONE after the last frame, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status find_frame(gif_decoder *d, ccodecs_input *input) {
  if (!d->is_between) {
    d->is_between = true;
    d->is_after = ccodecs_decoder_is_last(&d->base);
    d->transparent = -1;
    d->delay = 0;
    d->disposal = GIF_DISPOSAL_KEEP;
    d->has_control = false;
    ccodecs_gif_leave_frame(d);
  }
  while (d->state != STATE_END && d->state != STATE_DATA_SIZE) {
    CCODECS_TRY(ccodecs_gif_step(d, input));
  }
  if (d->state == STATE_END) {
    return d->has_more ? CCODECS_DONE : ccodecs_gif_end_animation(d);
  }
  const bool was_selected = ccodecs_decoder_is_selected(&d->base);
  d->base.frame_index++;
  const ccodecs_status status = begin_frame(d);
  return status != CCODECS_OK || !was_selected ? status : CCODECS_FRAME_DONE;
}

static void describe_frame(gif_decoder *d) {
  d->base.frame = (ccodecs_frame){
      .left = d->left,
      .top = d->top,
      .width = d->width,
      .height = d->height,
      .duration = d->delay,
      .duration_divisor = 100,
      .play_count = d->base.header.play_count,
  };
}

ccodecs_status ccodecs_gif_read_animation(gif_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  ccodecs_status status;
  do {
    status = d->given < d->base.header.height ? compose_strip(d, input, rows) : find_frame(d, input);
  } while (status == CCODECS_OK || (status == CCODECS_ROWS_READY && !ccodecs_decoder_is_selected(&d->base)));
  if (status == CCODECS_ROWS_READY) {
    describe_frame(d);
  }
  return status;
}

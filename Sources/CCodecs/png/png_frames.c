// Composition of the frames of an animated PNG (APNG).
//
// Source: PNG specification (third edition), sections 11.3.6.2 (fcTL) and 4.9.
//
// Every frame is returned as the whole canvas, with alpha. A row of the canvas is copied to the strip that is returned,
// and the frame's row is blended with the copy. Only then the canvas itself is changed to what the next frame finds. So
// there is one canvas, whatever the disposal. The default image is the first frame if an fcTL chunk precedes it; else
// it belongs to no frame.

#include "png_decoder.h"

#include <string.h>

enum { DISPOSE_NONE, DISPOSE_BACKGROUND, DISPOSE_PREVIOUS };
enum { BLEND_SOURCE, BLEND_OVER };

static size_t pixel_bytes(const png_decoder *d) {
  return d->base.header.is_16bit ? 8 : 4;
}

static size_t canvas_bytes(const png_decoder *d) {
  return d->given_bytes * d->base.header.height;
}

// MARK: Control

ccodecs_status ccodecs_png_read_control(png_decoder *d) {
  const uint8_t *p = d->body + PNG_SEQUENCE_BYTES;
  const ccodecs_header *header = &d->base.header;
  if (d->body_count != PNG_CONTROL_BYTES) {
    header = NULL;
  }
  png_control control = {0};
  if (header != NULL) {
    control = (png_control){
        .width = ccodecs_be32(p),
        .height = ccodecs_be32(p + 4),
        .left = ccodecs_be32(p + 8),
        .top = ccodecs_be32(p + 12),
        .delay = (uint16_t)ccodecs_be16(p + 16),
        .divisor = (uint16_t)ccodecs_be16(p + 18),
        .disposal = p[20],
        .blending = p[21],
    };
  }
  const bool is_good = header != NULL && control.width > 0 && control.height > 0 && control.left <= header->width &&
                       control.width <= header->width - control.left && control.top <= header->height &&
                       control.height <= header->height - control.top && control.disposal <= DISPOSE_PREVIOUS &&
                       control.blending <= BLEND_OVER;
  const bool is_whole = is_good && control.width == header->width && control.height == header->height;
  if (is_good && (d->has_data || is_whole)) {
    d->control = control;
    d->has_control = true;
    return CCODECS_OK;
  }
  if (d->base.state == CCODECS_STATE_HEADER) { // the default image does not depend on it
    d->base.header.has_frames = false;
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
    return CCODECS_OK;
  }
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a frame of the PNG does not lie on its canvas");
}

ccodecs_status ccodecs_png_select_frames(png_decoder *d, int64_t first) {
  ccodecs_decoder *base = &d->base;
  const uint32_t count = base->header.has_frames ? base->header.frame_count : 1;
  CCODECS_TRY(ccodecs_decoder_choose_frame(base, first, count));
  const bool is_all = base->first_frame == 0 && (base->selected_frames == 0 || base->selected_frames >= count);
  base->header.warnings &= ~(uint32_t)CCODECS_WARNING_FIRST_FRAME;
  base->header.warnings |= is_all ? 0u : CCODECS_WARNING_FIRST_FRAME;
  return CCODECS_OK;
}

uint64_t ccodecs_png_frames_estimate(const png_decoder *d) {
  return canvas_bytes(d) + (uint64_t)d->given_bytes * ccodecs_decoder_strip_rows(d->given_bytes) + 2 * 128;
}

// MARK: Rows

/// Blends pixels with alpha, which have samples of `type` up to `maximum`, over those of a row.
#define BLEND_ROW(name, type, maximum)                                                                                 \
  static void name(const type *over, type *under, uint32_t count) {                                                    \
    for (uint32_t x = 0; x < count; x++, over += 4, under += 4) {                                                      \
      if (over[3] == (maximum)) {                                                                                      \
        memcpy(under, over, 4 * sizeof(type));                                                                         \
      } else if (over[3] > 0) {                                                                                        \
        const uint64_t front = (uint64_t)over[3] * (maximum);                                                          \
        const uint64_t back = (uint64_t)((maximum)-over[3]) * under[3];                                                \
        const uint64_t sum = front + back;                                                                             \
        for (int c = 0; c < 3; c++) {                                                                                  \
          under[c] = (type)((over[c] * front + under[c] * back + sum / 2) / sum);                                      \
        }                                                                                                              \
        under[3] = (type)((sum + (maximum) / 2) / (maximum));                                                          \
      }                                                                                                                \
    }                                                                                                                  \
  }

BLEND_ROW(blend_row_8, uint8_t, UINT8_MAX)
BLEND_ROW(blend_row_16, uint16_t, UINT16_MAX)

/// Composes row `y` of the canvas in `row`, and prepares the canvas for the next frame. `stored` is NULL for a row
/// without the frame.
static void compose_row(png_decoder *d, uint32_t y, const uint8_t *stored, uint8_t *row) {
  uint8_t *canvas = d->canvas + (size_t)y * d->given_bytes;
  memcpy(row, canvas, d->given_bytes);
  if (stored == NULL) {
    return;
  }
  const size_t offset = d->frame.left * pixel_bytes(d);
  const size_t count = d->frame.width * pixel_bytes(d);
  if (d->frame.blending == BLEND_SOURCE) {
    memcpy(row + offset, stored, count);
  } else if (d->base.header.is_16bit) {
    blend_row_16((const uint16_t *)(const void *)stored, (uint16_t *)(void *)(row + offset), d->frame.width);
  } else {
    blend_row_8(stored, row + offset, d->frame.width);
  }
  if (d->frame.disposal == DISPOSE_NONE) {
    memcpy(canvas + offset, row + offset, count);
  } else if (d->frame.disposal == DISPOSE_BACKGROUND) {
    memset(canvas + offset, 0, count);
  }
}

/// Fails because a frame lacks rows; the file may continue.
static ccodecs_status fail_short(png_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "a frame of the PNG has too few rows");
}

/// Decodes the next rows of the frame. Returns CCODECS_ROWS_READY, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status hold_rows(png_decoder *d, ccodecs_input *input) {
  d->held_used = 0;
  d->held.row_counts[0] = 0;
  while (true) {
    if (d->is_interlaced && ccodecs_png_rows_are_complete(d)) {
      return ccodecs_png_rows_emit_buffered(d, &d->held);
    }
    ccodecs_status status = CCODECS_OK;
    if (d->may_have_rows) {
      ccodecs_input none = {.bytes = input->bytes};
      status = ccodecs_png_rows_read(d, &none, &d->held);
      d->may_have_rows = status == CCODECS_ROWS_READY;
    } else if (d->has_control || d->has_end) {
      return fail_short(d);
    } else if (input->count == 0) {
      return input->is_last ? fail_short(d) : CCODECS_NEEDS_INPUT;
    } else {
      status = ccodecs_png_feed(d, input, &d->held);
      d->may_have_rows = status == CCODECS_ROWS_READY;
    }
    if (status != CCODECS_OK) {
      return status;
    }
  }
}

/// Composes a strip. Returns CCODECS_ROWS_READY, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status compose_strip(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  const uint32_t left = d->base.header.height - d->returned;
  const uint32_t count = left < d->strip_rows ? left : d->strip_rows;
  for (; d->composed < d->returned + count; d->composed++) {
    const uint32_t y = d->composed;
    const bool is_inside = y >= d->frame.top && y - d->frame.top < d->frame.height;
    if (is_inside && d->held_used == d->held.row_counts[0]) {
      const ccodecs_status status = hold_rows(d, input);
      if (status != CCODECS_ROWS_READY) {
        return status;
      }
    }
    const uint8_t *stored = is_inside ? d->held.planes[0] + d->held_used * d->held.row_strides[0] : NULL;
    d->held_used += is_inside ? 1 : 0;
    compose_row(d, y, stored, d->strip + (y - d->returned) * d->given_bytes);
  }
  d->returned += count;
  rows->planes[0] = d->strip;
  rows->row_strides[0] = d->given_bytes;
  rows->row_counts[0] = count;
  return CCODECS_ROWS_READY;
}

// MARK: Frames

/// Returns whether no frame after this one is returned.
static bool is_last(const png_decoder *d) {
  return ccodecs_decoder_is_last(&d->base) || d->base.frame_index + 1 == d->base.header.frame_count;
}

/// Begins the frame that `control` describes.
static ccodecs_status begin_frame(png_decoder *d) {
  const bool is_first = d->base.counted_frames == 0;
  d->base.frame_index += is_first ? 0 : 1;
  d->frame = d->control;
  // There is nothing before the first frame.
  d->frame.disposal = is_first && d->frame.disposal == DISPOSE_PREVIOUS ? DISPOSE_BACKGROUND : d->frame.disposal;
  d->has_control = false;
  d->is_in_frame = true;
  d->composed = 0;
  d->returned = 0;
  d->held_used = 0;
  d->held = (ccodecs_rows){0};
  d->image_width = d->frame.width;
  d->image_height = d->frame.height;
  ccodecs_png_rows_restart(d);
  const bool stays = d->frame.disposal == DISPOSE_NONE;
  ccodecs_decoder_note_rows(&d->base, d->frame.top, d->frame.height, stays);
  return ccodecs_decoder_count_frame(&d->base, (uint64_t)d->frame.width * d->frame.height);
}

ccodecs_status ccodecs_png_frames_start(png_decoder *d) {
  ccodecs_budget *budget = d->base.budget;
  d->strip_rows = ccodecs_decoder_strip_rows(d->given_bytes);
  d->canvas = ccodecs_allocate(budget, canvas_bytes(d));
  d->strip = ccodecs_allocate(budget, d->given_bytes * d->strip_rows);
  if (d->canvas == NULL || d->strip == NULL) {
    return CCODECS_NO_MEMORY;
  }
  memset(d->canvas, 0, canvas_bytes(d));
  d->skips_data = !d->has_control;
  return d->has_control ? begin_frame(d) : CCODECS_OK;
}

static void describe_frame(png_decoder *d) {
  d->base.frame = (ccodecs_frame){
      .left = d->frame.left,
      .top = d->frame.top,
      .width = d->frame.width,
      .height = d->frame.height,
      .duration = d->frame.delay,
      .duration_divisor = d->frame.divisor == 0 ? 100 : d->frame.divisor,
      .play_count = d->base.header.play_count,
  };
}

/// Ends the animation, whose file has fewer frames than it specifies: it is truncated, or its writer left some out.
static ccodecs_status end_early(png_decoder *d) {
  if (!d->has_end || !d->is_in_frame || !ccodecs_decoder_is_selected(&d->base)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the PNG has fewer frames than it specifies");
  }
  d->base.header.frame_count = d->base.frame_index + 1;
  d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
  return CCODECS_DONE;
}

/// Looks for the next frame. Returns CCODECS_FRAME_DONE if this frame was returned, CCODECS_OK if it was not,
/// CCODECS_DONE after the last frame, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status find_frame(png_decoder *d, ccodecs_input *input) {
  if (d->is_in_frame && is_last(d)) {
    return CCODECS_DONE;
  }
  while (!d->has_control) {
    if (d->has_end || (input->count == 0 && input->is_last)) {
      return end_early(d);
    }
    if (input->count == 0) {
      return CCODECS_NEEDS_INPUT;
    }
    CCODECS_TRY(ccodecs_png_feed(d, input, &d->held));
  }
  const bool was_returned = d->is_in_frame && ccodecs_decoder_is_selected(&d->base);
  const ccodecs_status status = begin_frame(d);
  return status != CCODECS_OK || !was_returned ? status : CCODECS_FRAME_DONE;
}

ccodecs_status ccodecs_png_frames_read(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  ccodecs_status status;
  do {
    const bool has_rows = d->is_in_frame && d->returned < d->base.header.height;
    status = has_rows ? compose_strip(d, input, rows) : find_frame(d, input);
  } while (status == CCODECS_OK || (status == CCODECS_ROWS_READY && !ccodecs_decoder_is_selected(&d->base)));
  if (status == CCODECS_ROWS_READY) {
    describe_frame(d);
  }
  return status;
}

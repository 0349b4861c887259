// Streaming decoder for GIF: its blocks, and the first frame on its canvas. Source: GIF89a.
//
// A non-interlaced first frame requires a strip of rows and the dictionary; an interlaced one is buffered, one byte per
// pixel. The canvas is the logical screen, enlarged if the first frame exceeds it, as in browsers and libvips. Pixels
// outside the frame are transparent, as in browsers. Further frames need the whole canvas: see gif_animation.c.

#include "gif_decoder.h"
#include "../formats.h"

#include <string.h>

enum { EXTENSION = 0x21, DESCRIPTOR = 0x2C, TRAILER = 0x3B, GRAPHIC_CONTROL = 0xF9, APPLICATION = 0xFF };

// MARK: Blocks

/// Collects `count` bytes in `token`. Returns true once they are complete, and resets the count.
static bool collect(gif_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_input_collect(input, d->token, &d->token_count, count)) {
    return false;
  }
  d->token_count = 0;
  return true;
}

static ccodecs_status corrupt(gif_decoder *d, const char *reason) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "GIF data: %s", reason);
}

static void set_palette(const gif_decoder *d, uint8_t palette[256][4], size_t colors) {
  memset(palette, 0, sizeof d->palette);
  for (size_t i = 0; i < 256; i++) {
    if (i < colors) {
      memcpy(palette[i], d->token + 3 * i, 3);
    }
    palette[i][3] = 255;
  }
}

/// Sets a gray ramp for files without a color table, for which GIF89a leaves the colors to the decoder.
static void set_gray_palette(gif_decoder *d) {
  for (size_t i = 0; i < 256; i++) {
    memset(d->global_palette[i], (int)i, 3);
    d->global_palette[i][3] = 255;
  }
}

static size_t table_colors(uint8_t flags) {
  return (flags & 0x80) == 0 ? 0 : (size_t)2 << (flags & 7);
}

static ccodecs_status read_descriptor(gif_decoder *d) {
  const uint8_t *p = d->token;
  ccodecs_header *header = &d->base.header;
  d->left = ccodecs_le16(p);
  d->top = ccodecs_le16(p + 2);
  d->width = ccodecs_le16(p + 4);
  d->height = ccodecs_le16(p + 6);
  d->is_interlaced = (p[8] & 0x40) != 0;
  memcpy(d->palette, d->global_palette, sizeof d->palette);
  const bool is_first = d->base.state == CCODECS_STATE_HEADER;
  if (is_first && (d->width == 0 || d->height == 0)) {
    return corrupt(d, "the first frame is empty");
  }
  if (is_first) {
    header->width = d->left + d->width > header->width ? d->left + d->width : header->width;
    header->height = d->top + d->height > header->height ? d->top + d->height : header->height;
  }
  d->block_left = table_colors(p[8]);
  d->state = d->block_left > 0 ? STATE_LOCAL_TABLE : STATE_CODE_SIZE;
  return CCODECS_OK;
}

static bool covers_canvas(const gif_decoder *d) {
  return d->width == d->base.header.width && d->height == d->base.header.height;
}

static ccodecs_status begin_frame(gif_decoder *d) {
  // Writers use 2 to 8. Browsers accept all sizes that leave codes for strings.
  if (d->token[0] >= GIF_MAX_CODE_BITS) {
    return corrupt(d, "the first code size is above 11");
  }
  gif_codes_begin(&d->codes, d->token[0]);
  if (d->transparent >= 0) {
    memset(d->palette[d->transparent], 0, 4);
  }
  d->index_count = 0;
  d->index_left = (uint64_t)d->width * d->height;
  d->state = STATE_DATA_SIZE;
  return CCODECS_OK;
}

static ccodecs_status read_block_kind(gif_decoder *d) {
  switch (d->token[0]) {
  case EXTENSION:
    d->state = STATE_LABEL;
    return CCODECS_OK;
  case DESCRIPTOR:
    d->state = d->is_after ? STATE_END : STATE_DESCRIPTOR;
    d->has_more = d->is_after;
    d->base.header.warnings |= d->has_more ? CCODECS_WARNING_FIRST_FRAME : 0;
    return CCODECS_OK;
  case 0: // some writers leave a stray terminator between blocks
    return CCODECS_OK;
  default:
    if (d->base.state == CCODECS_STATE_ROWS) {
      d->state = STATE_END;
      return CCODECS_OK;
    }
    return corrupt(d, d->token[0] == TRAILER ? "there is no frame" : "a block has an unknown type");
  }
}

static void read_control(gif_decoder *d) {
  if (d->is_after) {
    return;
  }
  const uint8_t disposal = d->token[0] >> 2 & 7;
  d->transparent = (d->token[0] & 1) != 0 ? d->token[3] : -1;
  d->disposal = disposal == 2 ? GIF_DISPOSAL_CLEAR : disposal == 3 ? GIF_DISPOSAL_RESTORE : GIF_DISPOSAL_KEEP;
  d->delay = ccodecs_le16(d->token + 1);
}

/// Reads the identifier of an application extension.
static void read_application(gif_decoder *d) {
  d->base.header.has_credentials =
      d->base.header.has_credentials || (d->base.limits.keeps_metadata && memcmp(d->token, "C2PA_GIF", 8) == 0);
  d->is_loop = memcmp(d->token, "NETSCAPE2.0", 11) == 0 || memcmp(d->token, "ANIMEXTS1.0", 11) == 0;
  d->token[1] = 0;
}

/// Reads how often the animation is repeated after it was played once; 0 for ever.
static void read_loop(gif_decoder *d) {
  const uint32_t repeats = ccodecs_le16(d->token + 1);
  if ((d->token[0] & 7) == 1) {
    d->base.header.play_count = repeats == 0 ? 0 : repeats + 1;
  }
  d->token[1] = 0;
}

static ccodecs_status read_screen(gif_decoder *d) {
  const uint8_t *p = d->token;
  if (memcmp(p, "GIF87a", 6) != 0 && memcmp(p, "GIF89a", 6) != 0) {
    return corrupt(d, "the signature is missing");
  }
  d->base.header.width = ccodecs_le16(p + 6);
  d->base.header.height = ccodecs_le16(p + 8);
  d->block_left = table_colors(p[10]);
  set_gray_palette(d);
  d->state = d->block_left > 0 ? STATE_GLOBAL_TABLE : STATE_BLOCK;
  return CCODECS_OK;
}

/// Returns the size of the element that the state reads. Does not apply to STATE_SKIP and the frame data states.
static size_t token_size(const gif_decoder *d) {
  switch (d->state) {
  case STATE_SCREEN:
    return 13;
  case STATE_GLOBAL_TABLE:
  case STATE_LOCAL_TABLE:
    return d->block_left * 3;
  case STATE_DESCRIPTOR:
    return 9;
  case STATE_CONTROL:
    return 4;
  case STATE_APPLICATION:
    return 11;
  case STATE_LOOP:
    return 3;
  default:
    return 1;
  }
}

/// Reads the size of a sub-block of an extension.
static void read_size(gif_decoder *d) {
  const uint8_t size = d->token[0];
  // Only the first sub-block is the graphic control, or the identifier of an application.
  const uint8_t label = d->token[1];
  d->token[1] = 0;
  const bool is_control = label == GRAPHIC_CONTROL && size >= 4;
  const bool is_application = label == APPLICATION && size == 11;
  const bool is_loop = d->is_loop && size == 3;
  d->is_loop = d->is_loop && size > 0;
  d->block_left = is_control ? size - 4u : is_application || is_loop ? 0 : size;
  d->state = is_control       ? STATE_CONTROL
             : is_application ? STATE_APPLICATION
             : is_loop        ? STATE_LOOP
             : size == 0      ? STATE_BLOCK
                              : STATE_SKIP;
}

ccodecs_status ccodecs_gif_step(gif_decoder *d, ccodecs_input *input) {
  if (d->state == STATE_SKIP) {
    if (!ccodecs_input_skip(input, &d->block_left)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = STATE_SKIP_SIZE;
    return CCODECS_OK;
  }
  if (!collect(d, input, token_size(d))) {
    return CCODECS_NEEDS_INPUT;
  }
  switch (d->state) {
  case STATE_SCREEN:
    return read_screen(d);
  case STATE_GLOBAL_TABLE:
    set_palette(d, d->global_palette, d->block_left);
    d->state = STATE_BLOCK;
    return CCODECS_OK;
  case STATE_BLOCK:
    return read_block_kind(d);
  case STATE_LABEL:
    d->state = STATE_SKIP_SIZE;
    d->token[1] = d->token[0];
    d->is_loop = false;
    d->has_control = d->has_control || d->token[0] == GRAPHIC_CONTROL;
    return CCODECS_OK;
  case STATE_SKIP_SIZE:
    read_size(d);
    return CCODECS_OK;
  case STATE_CONTROL:
    read_control(d);
    d->token[1] = 0;
    d->state = d->block_left > 0 ? STATE_SKIP : STATE_SKIP_SIZE;
    return CCODECS_OK;
  case STATE_APPLICATION:
    read_application(d);
    d->state = STATE_SKIP_SIZE;
    return CCODECS_OK;
  case STATE_LOOP:
    read_loop(d);
    d->state = STATE_SKIP_SIZE;
    return CCODECS_OK;
  case STATE_DESCRIPTOR:
    return read_descriptor(d);
  case STATE_LOCAL_TABLE:
    set_palette(d, d->palette, d->block_left);
    d->state = STATE_CODE_SIZE;
    return CCODECS_OK;
  case STATE_CODE_SIZE:
    return begin_frame(d);
  default:
    return CCODECS_OK;
  }
}

// MARK: Header

/// Describes the rows of the first frame, or of the selected frames.
static void describe(gif_decoder *d) {
  ccodecs_header *header = &d->base.header;
  header->has_alpha = d->is_animation || d->transparent >= 0 || !covers_canvas(d);
  header->buffers_bitmap = d->is_animation || d->is_interlaced;
  d->channels = header->has_alpha ? 4 : 3;
  d->row_bytes = (size_t)header->width * d->channels;
  d->strip_rows = ccodecs_decoder_strip_rows(d->row_bytes);
}

static ccodecs_status select_frames(ccodecs_decoder *base, int64_t first, uint32_t count) {
  gif_decoder *d = (gif_decoder *)base;
  if (first < 0) {
    return ccodecs_decoder_fail(
        base, CCODECS_UNSUPPORTED, "a GIF does not specify the number of its frames, so none is counted from the end");
  }
  d->is_animation = first != 0 || count != 1;
  base->header.warnings &= ~(uint32_t)CCODECS_WARNING_FIRST_FRAME;
  base->header.warnings |= first > 0 ? CCODECS_WARNING_FIRST_FRAME : 0;
  describe(d);
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  gif_decoder *d = (gif_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && d->state != STATE_DATA_SIZE) {
    status = ccodecs_gif_step(d, input);
  }
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the GIF data ends before the first frame");
  }
  CCODECS_TRY(status);
  base->header.color_space = CCODECS_COLOR_RGB;
  base->header.frame_count = 0;
  base->header.has_frames = true;
  base->header.is_progressive = d->is_interlaced;
  describe(d);
  return CCODECS_OK;
}

/// Returns the size of the index buffer. The last string of a strip may extend beyond the strip by up to its length,
/// and is copied in whole chunks.
static size_t index_capacity(const gif_decoder *d) {
  const size_t count =
      d->is_interlaced ? (size_t)d->width * d->height : (size_t)d->width * d->strip_rows + GIF_MAX_CODES;
  return count + GIF_CHUNK_BYTES;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const gif_decoder *d = (const gif_decoder *)base;
  if (d->is_animation) {
    *byte_count = ccodecs_gif_animation_estimate(d);
    return CCODECS_OK;
  }
  *byte_count = index_capacity(d) + (uint64_t)d->row_bytes * d->strip_rows + 4 * 64;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  gif_decoder *d = (gif_decoder *)base;
  ccodecs_decoder_describe_packed(base, d->channels, layout);
  if (d->is_animation) {
    return ccodecs_gif_start_animation(d);
  }
  d->indices = ccodecs_allocate(base->budget, index_capacity(d));
  d->strip = ccodecs_allocate(base->budget, d->row_bytes * d->strip_rows);
  return d->indices == NULL || d->strip == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Codes

static ccodecs_status ends_early(gif_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the GIF frame ends before its last row");
}

/// Adds bytes to the bits, which have room for one. Returns their number.
static inline size_t take_bytes(gif_place *at, const uint8_t *bytes, size_t count) {
  if (count < sizeof at->bits) {
    at->bits |= (uint64_t)bytes[0] << at->bit_count;
    at->bit_count += 8;
    return 1;
  }
  const uint32_t added = (64 - at->bit_count) / 8;
  const uint64_t unused = at->bit_count + 8 * added == 64 ? 0 : ~(uint64_t)0 << (at->bit_count + 8 * added);
  at->bits |= ccodecs_le64(bytes) << at->bit_count & ~unused;
  at->bit_count += 8 * added;
  return added;
}

/// Decodes codes to indices until there are `wanted`, or the sub-block's bytes are consumed as far as they are in the
/// window. Returns CCODECS_OK or the failure.
static ccodecs_status take_codes(gif_decoder *d, ccodecs_input *input, size_t wanted) {
  gif_place at = d->codes.place;
  const size_t byte_count = d->block_left < input->count ? (size_t)d->block_left : input->count;
  size_t taken = 0, count = d->index_count;
  uint64_t left = d->index_left;
  gif_code_kind kind = GIF_CODE_STRING;
  while (count < wanted && kind <= GIF_CODE_CLEAR) {
    if (at.bit_count < at.code_bits) {
      if (taken == byte_count) {
        break;
      }
      taken += take_bytes(&at, input->bytes + taken, byte_count - taken);
      continue;
    }
    uint32_t code;
    kind = gif_codes_take(&d->codes, &at, &code);
    if (kind == GIF_CODE_STRING) {
      const size_t copied = gif_codes_copy(&d->codes, code, left, d->indices + count);
      count += copied;
      left -= copied;
    }
  }
  d->codes.place = at;
  d->index_count = count;
  d->index_left = left;
  d->block_left -= taken;
  ccodecs_input_advance(input, taken);
  return kind <= GIF_CODE_CLEAR ? CCODECS_OK
         : kind == GIF_CODE_END ? ends_early(d)
                                : corrupt(d, "a code is not in the dictionary");
}

ccodecs_status ccodecs_gif_fill(gif_decoder *d, ccodecs_input *input, size_t wanted) {
  const gif_place *at = &d->codes.place;
  while (d->index_count < wanted) {
    if (d->state == STATE_DATA && (at->bit_count >= at->code_bits || (d->block_left > 0 && input->count > 0))) {
      CCODECS_TRY(take_codes(d, input, wanted));
    } else if (input->count == 0) {
      return CCODECS_NEEDS_INPUT;
    } else {
      d->block_left = input->bytes[0];
      ccodecs_input_advance(input, 1);
      d->state = STATE_DATA;
      if (d->block_left == 0) {
        return ends_early(d);
      }
    }
  }
  return CCODECS_OK;
}

// MARK: Rows

/// Returns the position of row `y` of an interlaced frame in file order. Source: GIF89a, appendix E.
static uint32_t interlaced_place(uint32_t y, uint32_t height) {
  const uint32_t eighths = (height + 7) / 8;
  const uint32_t quarters = (height + 3) / 4;
  const uint32_t halves = (height + 1) / 2;
  return y % 8 == 0 ? y / 8 : y % 8 == 4 ? eighths + y / 8 : y % 4 == 2 ? quarters + y / 4 : halves + y / 2;
}

static void put_pixels(const gif_decoder *d, uint8_t *out, const uint8_t *indices, size_t count) {
  if (d->channels == 4) {
    for (size_t i = 0; i < count; i++) {
      memcpy(out + 4 * i, d->palette[indices[i]], 4);
    }
    return;
  }
  for (size_t i = 0; i < count; i++) {
    memcpy(out + 3 * i, d->palette[indices[i]], 3);
  }
}

/// Writes a row of the canvas; `indices` is NULL outside the frame.
static void put_row(const gif_decoder *d, uint8_t *out, const uint8_t *indices) {
  if (!covers_canvas(d)) {
    memset(out, 0, d->row_bytes);
  }
  if (indices != NULL) {
    put_pixels(d, out + (size_t)d->left * d->channels, indices, d->width);
  }
}

/// Returns how many of the `count` canvas rows from `first` on intersect the frame.
static uint32_t frame_rows(const gif_decoder *d, uint32_t first, uint32_t count) {
  const uint32_t end = first + count < d->top + d->height ? first + count : d->top + d->height;
  const uint32_t begin = first > d->top ? first : d->top;
  return end > begin ? end - begin : 0;
}

static ccodecs_status read_strip(gif_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  const uint32_t left = d->base.header.height - d->given;
  const uint32_t count = left < d->strip_rows ? left : d->strip_rows;
  const size_t needed = (size_t)frame_rows(d, d->given, count) * d->width;
  const size_t all = (size_t)d->width * d->height;
  CCODECS_TRY(ccodecs_gif_fill(d, input, d->is_interlaced && needed > 0 ? all : needed));
  const uint8_t *next = d->indices;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t y = d->given + i;
    const uint8_t *indices = NULL;
    if (y >= d->top && y - d->top < d->height) {
      const uint32_t place = d->is_interlaced ? interlaced_place(y - d->top, d->height) : 0;
      indices = d->is_interlaced ? d->indices + (size_t)place * d->width : next;
      next += d->is_interlaced ? 0 : d->width;
    }
    put_row(d, d->strip + i * d->row_bytes, indices);
  }
  if (!d->is_interlaced) {
    d->index_count -= needed;
    memmove(d->indices, d->indices + needed, d->index_count);
  }
  d->given += count;
  rows->planes[0] = d->strip;
  rows->row_strides[0] = d->row_bytes;
  rows->row_counts[0] = count;
  return CCODECS_ROWS_READY;
}

void ccodecs_gif_leave_frame(gif_decoder *d) {
  d->token_count = 0;
  d->token[1] = 0;
  d->is_loop = false;
  d->state = d->state == STATE_DATA && d->block_left > 0 ? STATE_SKIP : STATE_SKIP_SIZE;
}

/// Looks for a second frame. The first frame is complete, so damage from here on is ignored.
static ccodecs_status read_rest(gif_decoder *d, ccodecs_input *input) {
  if (!d->is_after) {
    d->is_after = true;
    ccodecs_gif_leave_frame(d);
  }
  while (d->state != STATE_END) {
    CCODECS_TRY(ccodecs_gif_step(d, input));
  }
  return CCODECS_DONE;
}

static ccodecs_status advance(gif_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  return d->given < d->base.header.height ? read_strip(d, input, rows) : read_rest(d, input);
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  gif_decoder *d = (gif_decoder *)base;
  const ccodecs_status status = d->is_animation ? ccodecs_gif_read_animation(d, input, rows) : advance(d, input, rows);
  if (status != CCODECS_NEEDS_INPUT || !input->is_last) {
    return status;
  }
  if (d->given == base->header.height) {
    return d->is_animation ? ccodecs_gif_interrupt_animation(d) : CCODECS_DONE;
  }
  return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the GIF data ends before the image");
}

static void destroy(ccodecs_decoder *base) {
  gif_decoder *d = (gif_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_free(budget, d->indices);
  ccodecs_free(budget, d->strip);
  ccodecs_free(budget, d->canvas);
  ccodecs_free(budget, d->interlaced);
}

static void init(ccodecs_decoder *decoder) {
  gif_decoder *d = (gif_decoder *)decoder;
  d->transparent = -1;
}

const ccodecs_decoder_methods ccodecs_gif_decoder = {
    .byte_count = sizeof(gif_decoder),
    .init = init,
    .read_header = read_header,
    .select_frames = select_frames,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};

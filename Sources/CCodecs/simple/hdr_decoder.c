// Streaming decoder for Radiance HDR images. Linear light from 0 to 1 is converted to sRGB; brighter values are clipped
// to white.
//
// Sources: Ward, "Real Pixels" (Graphics Gems II); the description of picture files in the Radiance file formats.

#include "../color/linear.h"
#include "../formats.h"
#include "row_decoder.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_LINE_BYTES = 512, MAX_LINES = 1000, MIN_CODED_WIDTH = 8, MAX_CODED_WIDTH = 32767 };

typedef enum hdr_state {
  STATE_LINES,   ///< Text, up to the empty line and the size after it.
  STATE_START,   ///< The first four bytes of a row, which specify its encoding.
  STATE_COUNT,   ///< The count of a run in one channel.
  STATE_REPEAT,  ///< The value that a run repeats.
  STATE_LITERAL, ///< The literal values of a run.
  STATE_PIXEL,   ///< A literal pixel, or a repetition of the previous one.
} hdr_state;

typedef struct hdr_decoder {
  row_decoder base;
  hdr_state state;
  char line[MAX_LINE_BYTES];
  size_t line_count;
  uint32_t lines;
  bool is_after_empty; ///< The next line contains the size.
  uint8_t token[4];
  size_t token_count;
  uint32_t channel; ///< Current channel of a run-length encoded row.
  uint32_t x;
  uint32_t run_left;
  uint32_t shift;        ///< Bit shift of the next repetition's count.
  ccodecs_linear linear; ///< Filled by start.
} hdr_decoder;

static ccodecs_status corrupt(hdr_decoder *d, const char *reason) {
  return ccodecs_row_decoder_corrupt(&d->base, reason);
}

// MARK: Header

/// Parses the size, such as "-Y 480 +X 640", and its orientation. The first axis is the order of rows.
static ccodecs_status read_size(hdr_decoder *d) {
  // Index bits: columns first, rows from the bottom, columns from the right.
  static const uint8_t orientations[8] = {1, 2, 4, 3, 5, 6, 8, 7};
  const char *p = d->line;
  uint32_t sizes[2];
  char axes[2];
  bool is_minus[2];
  for (int i = 0; i < 2; i++) {
    while (*p == ' ') {
      p++;
    }
    is_minus[i] = *p == '-';
    if ((*p != '-' && *p != '+') || (p[1] != 'X' && p[1] != 'Y') || p[2] != ' ') {
      return corrupt(d, "the size cannot be read");
    }
    axes[i] = p[1];
    char *end;
    const unsigned long size = strtoul(p + 3, &end, 10);
    if (end == p + 3 || size == 0 || size > INT32_MAX) {
      return corrupt(d, "the width or height is zero or too large");
    }
    sizes[i] = (uint32_t)size;
    p = end;
  }
  if (axes[0] == axes[1]) {
    return corrupt(d, "the size cannot be read");
  }
  const int swaps = axes[0] == 'X';
  const bool is_upward = !is_minus[swaps];
  const bool is_leftward = is_minus[1 - swaps];
  ccodecs_header *header = &d->base.base.header;
  header->height = sizes[0];
  header->width = sizes[1];
  header->orientation = orientations[4 * swaps + 2 * is_upward + is_leftward];
  header->is_storage_order = header->orientation != 1;
  header->color_space = CCODECS_COLOR_RGB;
  header->bit_depth = 8;
  header->is_16bit = true; // 8 bits with a shared exponent can exceed the precision of 16-bit sRGB
  d->base.channels = 3;
  ccodecs_row_decoder_measure(&d->base, (size_t)header->width * 4);
  d->state = STATE_START;
  return CCODECS_OK;
}

static ccodecs_status read_line(hdr_decoder *d) {
  d->line[d->line_count] = 0;
  const bool is_empty = d->line_count == 0;
  d->line_count = 0;
  if (d->lines++ == 0) {
    return strncmp(d->line, "#?", 2) == 0 ? CCODECS_OK : corrupt(d, "the signature is missing");
  }
  if (d->is_after_empty) {
    return read_size(d);
  }
  d->is_after_empty = is_empty;
  if (strncmp(d->line, "FORMAT=", 7) == 0 && strncmp(d->line, "FORMAT=32-bit_rle_rgbe", 22) != 0) {
    return ccodecs_decoder_fail(&d->base.base, CCODECS_UNSUPPORTED, "HDR data: only RGB images are supported");
  }
  return d->lines < MAX_LINES ? CCODECS_OK : corrupt(d, "the header does not end");
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  hdr_decoder *d = (hdr_decoder *)base;
  while (d->state == STATE_LINES) {
    if (input->count == 0) {
      return ccodecs_row_decoder_end_header(&d->base, input, CCODECS_NEEDS_INPUT);
    }
    const char byte = (char)input->bytes[0];
    ccodecs_input_advance(input, 1);
    if (byte != '\n') {
      if (d->line_count + 1 >= sizeof d->line) {
        return corrupt(d, "a line of the header does not end");
      }
      d->line[d->line_count++] = byte;
      continue;
    }
    CCODECS_TRY(read_line(d));
  }
  return CCODECS_OK;
}

static uint64_t min_bytes(const ccodecs_decoder *base) {
  return 4 * (uint64_t)base->header.height; // one pixel, or the start of an encoded row
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  ccodecs_linear_fill(&((hdr_decoder *)base)->linear);
  return ccodecs_row_decoder_start(base, options, layout);
}

// MARK: Rows

static void put_row(row_decoder *base, uint8_t *given) {
  const hdr_decoder *d = (const hdr_decoder *)base;
  uint16_t *out = (uint16_t *)(void *)given;
  const uint8_t *p = d->base.stored;
  for (uint32_t x = 0; x < d->base.base.header.width; x++, p += 4, out += 3) {
    const float unit = p[3] == 0 ? 0 : ldexpf(1, (int)p[3] - (128 + 8));
    for (int i = 0; i < 3; i++) {
      out[i] = ccodecs_linear_signal(&d->linear, (float)p[i] * unit);
    }
  }
}

/// Processes the pixel in `token`, in a row without per-channel encoding: a literal pixel, or a repetition of the
/// previous one.
static ccodecs_status take_pixel(hdr_decoder *d) {
  const uint8_t *p = d->token;
  if (p[0] != 1 || p[1] != 1 || p[2] != 1) {
    memcpy(d->base.stored + (size_t)d->x++ * 4, p, 4);
    d->shift = 0;
    return CCODECS_OK;
  }
  const uint64_t count = (uint64_t)p[3] << d->shift;
  if (d->x == 0 || count > d->base.base.header.width - d->x) {
    return corrupt(d, "a repeated pixel exceeds its row");
  }
  for (uint64_t i = 0; i < count; i++, d->x++) {
    memcpy(d->base.stored + (size_t)d->x * 4, d->base.stored + (size_t)(d->x - 1) * 4, 4);
  }
  d->shift = d->shift < 24 ? d->shift + 8 : d->shift;
  return CCODECS_OK;
}

static ccodecs_status take_start(hdr_decoder *d) {
  const uint8_t *p = d->token;
  const uint32_t width = d->base.base.header.width;
  d->x = 0;
  d->channel = 0;
  d->shift = 0;
  const bool is_coded = width >= MIN_CODED_WIDTH && width <= MAX_CODED_WIDTH && p[0] == 2 && p[1] == 2 && p[2] < 128;
  d->state = is_coded ? STATE_COUNT : STATE_PIXEL;
  if (!is_coded) {
    return take_pixel(d);
  }
  return ((uint32_t)p[2] << 8 | p[3]) == width ? CCODECS_OK : corrupt(d, "a row has the wrong width");
}

static ccodecs_status take_count(hdr_decoder *d) {
  const uint8_t count = d->token[0];
  d->run_left = count > 128 ? count - 128u : count;
  d->state = count > 128 ? STATE_REPEAT : STATE_LITERAL;
  return count > 0 && d->run_left <= d->base.base.header.width - d->x ? CCODECS_OK
                                                                      : corrupt(d, "a run exceeds its row");
}

static void take_value(hdr_decoder *d) {
  uint32_t count = d->state == STATE_REPEAT ? d->run_left : 1;
  d->run_left -= count;
  for (; count > 0; count--, d->x++) {
    d->base.stored[(size_t)d->x * 4 + d->channel] = d->token[0];
  }
  if (d->run_left == 0) {
    d->state = STATE_COUNT;
  }
  if (d->x == d->base.base.header.width) {
    d->x = 0;
    d->channel++;
  }
}

/// Returns whether the row in `stored` is complete.
static bool is_complete(const hdr_decoder *d) {
  return d->state == STATE_PIXEL ? d->x == d->base.base.header.width : d->state != STATE_START && d->channel == 4;
}

static ccodecs_status read_row(row_decoder *base, ccodecs_input *input) {
  hdr_decoder *d = (hdr_decoder *)base;
  while (!is_complete(d)) {
    const size_t wanted = d->state == STATE_START || d->state == STATE_PIXEL ? 4 : 1;
    if (!ccodecs_input_collect(input, d->token, &d->token_count, wanted)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->token_count = 0;
    ccodecs_status status = CCODECS_OK;
    if (d->state == STATE_START) {
      status = take_start(d);
    } else if (d->state == STATE_PIXEL) {
      status = take_pixel(d);
    } else if (d->state == STATE_COUNT) {
      status = take_count(d);
    } else {
      take_value(d);
    }
    CCODECS_TRY(status);
  }
  d->state = STATE_START;
  return CCODECS_OK;
}

const row_format ccodecs_hdr_decoder = {
    .methods =
        {
            .byte_count = sizeof(hdr_decoder),
            .read_header = read_header,
            .min_bytes = min_bytes,
            .estimate = ccodecs_row_decoder_estimate,
            .start = start,
            .read_rows = ccodecs_row_decoder_read_rows,
            .destroy = ccodecs_row_decoder_destroy,
        },
    .name = "HDR",
    .read_row = read_row,
    .put_row = put_row,
};

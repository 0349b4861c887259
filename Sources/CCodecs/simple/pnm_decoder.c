// Streaming decoder for portable anymaps: bitmaps, graymaps and pixmaps, as text or binary, and PAM with one to four
// samples per pixel. Source: the manual pages pbm, pgm, ppm and pam of Netpbm.

#include "../formats.h"
#include "row_decoder.h"

#include <stdlib.h>

enum { MAX_LINE_BYTES = 256, MAX_LINES = 1000 };

typedef enum pnm_state {
  STATE_MAGIC,
  STATE_NUMBERS, ///< Width, height and maximum sample value, as text.
  STATE_LINES,   ///< The PAM header, line by line.
  STATE_READY,
} pnm_state;

typedef struct pnm_decoder {
  row_decoder base;
  pnm_state state;
  uint8_t token[2];
  size_t token_count;
  char line[MAX_LINE_BYTES];
  size_t line_count;
  uint32_t lines;

  uint64_t number; ///< The number being parsed.
  bool is_in_number;
  bool is_in_comment;
  uint32_t numbers;        ///< Header numbers read so far.
  uint32_t header_numbers; ///< Numbers in the header.

  bool is_text;
  bool is_bitmap;      ///< One bit per sample; 1 is black.
  uint32_t largest;    ///< Maximum sample value.
  uint32_t samples;    ///< Samples per pixel.
  uint8_t scaled[256]; ///< One-byte samples, scaled to 0 to 255.
} pnm_decoder;

static ccodecs_status corrupt(pnm_decoder *d, const char *reason) {
  return ccodecs_row_decoder_corrupt(&d->base, reason);
}

// MARK: Text

static bool is_space(uint8_t byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/// Consumes a byte of text. Returns CCODECS_DONE if it ends a number, CCODECS_OK if more bytes are needed. With
/// `is_digit_whole`, as in the pixels of a bitmap, each digit is a number.
static ccodecs_status take_text(pnm_decoder *d, uint8_t byte, bool is_digit_whole) {
  if (d->is_in_comment) {
    d->is_in_comment = byte != '\n' && byte != '\r';
    return CCODECS_OK;
  }
  if (byte >= '0' && byte <= '9') {
    d->number = d->is_in_number ? d->number * 10 + (byte - '0') : (uint64_t)(byte - '0');
    d->is_in_number = !is_digit_whole;
    return d->number > INT32_MAX ? corrupt(d, "a number is too large") : is_digit_whole ? CCODECS_DONE : CCODECS_OK;
  }
  d->is_in_comment = byte == '#';
  if (!d->is_in_comment && !is_space(byte)) {
    return corrupt(d, "a number is missing");
  }
  const bool is_end = d->is_in_number;
  d->is_in_number = false;
  return is_end ? CCODECS_DONE : CCODECS_OK;
}

// MARK: Header

static ccodecs_status describe(pnm_decoder *d) {
  ccodecs_header *header = &d->base.base.header;
  if (header->width == 0 || header->height == 0) {
    return corrupt(d, "the width or height is zero or missing");
  }
  if (d->largest == 0 || d->largest > 65535) {
    return corrupt(d, "the maximum sample is not between 1 and 65535");
  }
  if (d->samples < 1 || d->samples > 4) {
    return ccodecs_decoder_fail(
        &d->base.base, CCODECS_UNSUPPORTED, "PNM data: pixels of %u samples are not supported", d->samples);
  }
  header->has_alpha = d->samples == 2 || d->samples == 4;
  header->color_space = d->samples == 1 ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  header->bit_depth = d->is_bitmap ? 1 : d->largest > 255 ? 16 : 8;
  d->base.channels = header->has_alpha ? 4 : d->samples;
  for (uint32_t i = 0; i < 256; i++) {
    const uint32_t value = i < d->largest ? i : d->largest;
    d->scaled[i] = (uint8_t)((value * 255 + d->largest / 2) / d->largest);
  }
  const size_t samples = (size_t)header->width * d->samples;
  const bool is_wide = d->is_text || d->largest > 255;
  header->is_16bit = d->largest > 255;
  ccodecs_row_decoder_measure(&d->base, is_wide ? samples * 2 : d->is_bitmap ? (samples + 7) / 8 : samples);
  d->state = STATE_READY;
  return CCODECS_OK;
}

static ccodecs_status read_magic(pnm_decoder *d) {
  const uint8_t kind = d->token[1];
  if (d->token[0] != 'P' || kind < '1' || kind > '7') {
    return corrupt(d, "the signature is missing");
  }
  d->is_text = kind <= '3';
  d->is_bitmap = kind == '1' || kind == '4';
  d->samples = kind == '3' || kind == '6' ? 3 : kind == '7' ? 0 : 1;
  d->largest = d->is_bitmap ? 1 : 0;
  d->header_numbers = d->is_bitmap ? 2 : 3;
  d->state = kind == '7' ? STATE_LINES : STATE_NUMBERS;
  return CCODECS_OK;
}

static ccodecs_status take_header_byte(pnm_decoder *d, uint8_t byte) {
  const ccodecs_status status = take_text(d, byte, false);
  if (status != CCODECS_DONE) {
    return status;
  }
  uint32_t *const places[3] = {&d->base.base.header.width, &d->base.base.header.height, &d->largest};
  *places[d->numbers++] = (uint32_t)d->number;
  // The single whitespace byte that ended the last number precedes the pixels.
  return d->numbers == d->header_numbers ? describe(d) : CCODECS_OK;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static ccodecs_status read_line(pnm_decoder *d) {
  static const char *const names[4] = {"WIDTH", "HEIGHT", "DEPTH", "MAXVAL"};
  uint32_t *const places[4] = {&d->base.base.header.width, &d->base.base.header.height, &d->samples, &d->largest};
  while (d->line_count > 0 && is_blank(d->line[d->line_count - 1])) {
    d->line_count--;
  }
  d->line[d->line_count] = 0;
  d->line_count = 0;
  const char *line = d->line;
  while (is_blank(*line)) {
    line++;
  }
  if (strcmp(line, "ENDHDR") == 0) {
    return describe(d);
  }
  for (int i = 0; i < 4; i++) {
    const size_t length = strlen(names[i]);
    if (strncmp(line, names[i], length) == 0 && is_blank(line[length])) {
      const unsigned long value = strtoul(line + length, NULL, 10);
      *places[i] = value > INT32_MAX ? 0 : (uint32_t)value;
    }
  }
  return d->lines++ < MAX_LINES ? CCODECS_OK : corrupt(d, "the header does not end");
}

static ccodecs_status take_line_byte(pnm_decoder *d, uint8_t byte) {
  if (byte == '\n') {
    return read_line(d);
  }
  if (d->line_count + 1 >= sizeof d->line) {
    return corrupt(d, "a line of the header does not end");
  }
  d->line[d->line_count++] = (char)byte;
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  pnm_decoder *d = (pnm_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && d->state != STATE_READY) {
    if (input->count == 0) {
      return ccodecs_row_decoder_end_header(&d->base, input, CCODECS_NEEDS_INPUT);
    }
    if (d->state == STATE_MAGIC) {
      status = ccodecs_input_collect(input, d->token, &d->token_count, 2) ? read_magic(d) : CCODECS_OK;
      continue;
    }
    const uint8_t byte = input->bytes[0];
    ccodecs_input_advance(input, 1);
    status = d->state == STATE_NUMBERS ? take_header_byte(d, byte) : take_line_byte(d, byte);
  }
  return status;
}

static uint64_t min_bytes(const ccodecs_decoder *base) {
  const pnm_decoder *d = (const pnm_decoder *)base;
  const uint64_t samples = (uint64_t)base->header.width * d->samples;
  return (d->is_text ? samples : d->base.stored_bytes) * base->header.height;
}

// MARK: Rows

static uint8_t sample_at(const pnm_decoder *d, size_t index) {
  const uint8_t *p = d->base.stored;
  if (d->is_bitmap && !d->is_text) {
    return (p[index / 8] >> (7 - index % 8) & 1) != 0 ? 0 : 255;
  }
  if (!d->is_text && d->largest <= 255) {
    return d->scaled[p[index]];
  }
  const uint32_t value = (uint32_t)p[2 * index] << 8 | p[2 * index + 1];
  const uint32_t maximum = value < d->largest ? value : d->largest;
  const uint8_t scaled = (uint8_t)((maximum * 255 + d->largest / 2) / d->largest);
  return d->is_bitmap ? 255 - scaled : scaled;
}

static uint16_t sample_16bit_at(const pnm_decoder *d, size_t index) {
  const uint32_t value = ccodecs_be16(d->base.stored + 2 * index);
  const uint32_t maximum = value < d->largest ? value : d->largest;
  return d->largest == 65535 ? (uint16_t)maximum : (uint16_t)((maximum * 65535u + d->largest / 2) / d->largest);
}

static void put_16bit_row(const pnm_decoder *d, uint16_t *out) {
  const size_t count = (size_t)d->base.base.header.width * d->samples;
  if (d->samples != 2) {
    for (size_t i = 0; i < count; i++) {
      out[i] = sample_16bit_at(d, i);
    }
    return;
  }
  for (size_t i = 0; i < count; i += 2, out += 4) {
    out[0] = out[1] = out[2] = sample_16bit_at(d, i);
    out[3] = sample_16bit_at(d, i + 1);
  }
}

static void put_row(row_decoder *base, uint8_t *out) {
  const pnm_decoder *d = (const pnm_decoder *)base;
  if (d->base.base.header.is_16bit) {
    put_16bit_row(d, (uint16_t *)(void *)out);
    return;
  }
  const size_t count = (size_t)d->base.base.header.width * d->samples;
  if (d->samples != 2) {
    for (size_t i = 0; i < count; i++) {
      out[i] = sample_at(d, i);
    }
    return;
  }
  for (size_t i = 0; i < count; i += 2, out += 4) {
    memset(out, sample_at(d, i), 3);
    out[3] = sample_at(d, i + 1);
  }
}

static ccodecs_status put_number(pnm_decoder *d) {
  if (d->number > d->largest) {
    return corrupt(d, "a sample is above the maximum");
  }
  d->base.stored[d->base.stored_count++] = (uint8_t)(d->number >> 8);
  d->base.stored[d->base.stored_count++] = (uint8_t)d->number;
  return CCODECS_OK;
}

static ccodecs_status read_text_row(pnm_decoder *d, ccodecs_input *input) {
  while (d->base.stored_count < d->base.stored_bytes) {
    ccodecs_status status = CCODECS_DONE;
    if (input->count > 0) {
      status = take_text(d, input->bytes[0], d->is_bitmap);
      ccodecs_input_advance(input, 1);
    } else if (input->is_last && d->is_in_number) {
      d->is_in_number = false; // the end of the file may end the last number
    } else {
      return CCODECS_NEEDS_INPUT;
    }
    status = status == CCODECS_DONE ? put_number(d) : status;
    CCODECS_TRY(status);
  }
  return CCODECS_OK;
}

static ccodecs_status read_row(row_decoder *base, ccodecs_input *input) {
  pnm_decoder *d = (pnm_decoder *)base;
  return d->is_text ? read_text_row(d, input) : ccodecs_row_decoder_read_plain(base, input);
}

const row_format ccodecs_pnm_decoder = {
    .methods = {ROW_DECODER_METHODS(pnm_decoder)},
    .name = "PNM",
    .read_row = read_row,
    .put_row = put_row,
};

// Streaming decoder for Windows and OS/2 BMP with 1, 2, 4, 8, 16, 24 and 32 bits per pixel, with or without run-length
// encoding.
//
// Most files start with the bottom row. Rows are returned in file order, and header.orientation specifies how to flip
// the image, so that only a strip of rows is buffered. If a mask has more than 8 bits, rows have 16 bits per sample.
// Alpha is used only if a mask specifies it. An embedded color profile follows the rows, so a file with one is buffered
// up to its end. Not supported: Huffman coding, 64 bits per pixel, and embedded JPEG or PNG.
//
// Sources: Microsoft, "Bitmap storage"; OS/2 2.0 Presentation Manager, "Bitmap file format"; bmpsuite's notes.

#include "../color/profile.h"
#include "../formats.h"
#include "row_decoder.h"

enum { FILE_HEADER_BYTES = 14, OS2_HEADER_BYTES = 12, KNOWN_HEADER_BYTES = 124 };
enum { EMBEDDED_PROFILE = 0x4D424544 }; ///< "MBED"
enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, BIT_FIELDS = 3, RLE24 = 4, ALPHA_BIT_FIELDS = 6 };

typedef enum bmp_state {
  STATE_FILE_HEADER, ///< Includes the size of the header that follows.
  STATE_HEADER,
  STATE_HEADER_REST, ///< The part after the known fields.
  STATE_MASKS,
  STATE_PALETTE,
  STATE_GAP,     ///< Up to the pixel offset in the file header.
  STATE_PROFILE, ///< Buffering the file up to the end of the profile.
  STATE_READY,
} bmp_state;

typedef enum bmp_run_state {
  RUN_PAIR,  ///< A count and a value, or an escape code.
  RUN_PIXEL, ///< The last two bytes of an RLE24 run's pixel.
  RUN_DELTA,
  RUN_ABSOLUTE, ///< Literal values.
  RUN_END,
} bmp_run_state;

/// One channel of a 16-bit or 32-bit pixel.
typedef struct bmp_field {
  uint32_t mask;
  uint32_t shift;
  uint32_t bits;
  uint8_t scaled[256]; ///< Values of up to eight bits, scaled to 0 to 255.
} bmp_field;

typedef struct bmp_decoder {
  row_decoder base;
  bmp_state state;
  uint8_t token[1024];
  size_t token_count;
  uint64_t skip_left;
  uint64_t position; ///< Bytes of the file consumed before the rows.
  uint32_t data_offset;
  uint32_t header_bytes;
  uint32_t bits;
  uint32_t compression;
  uint32_t palette_count; ///< Number of colors in the file's palette.
  uint32_t palette_entry_bytes;
  uint8_t palette[256][4];
  bmp_field fields[4];    ///< Red, green, blue, alpha.
  uint64_t profile_place; ///< Offset of the embedded profile in the file.
  uint32_t profile_bytes; ///< 0 without one.

  bmp_run_state run_state;
  uint8_t run[4]; ///< A pair, or the pixel of a run.
  size_t run_count;
  uint32_t absolute_left; ///< Remaining pixels of the absolute run.
  bool has_padding;       ///< A padding byte follows the absolute run.
  uint64_t x;             ///< Column of the next run.
  uint32_t target;        ///< Rows to return before the next run.
} bmp_decoder;

static ccodecs_status corrupt(bmp_decoder *d, const char *reason) {
  return ccodecs_row_decoder_corrupt(&d->base, reason);
}

static ccodecs_status unsupported(bmp_decoder *d, const char *kind) {
  return ccodecs_decoder_fail(&d->base.base, CCODECS_UNSUPPORTED, "BMP data: %s are not supported", kind);
}

static bool is_run_length(const bmp_decoder *d) {
  return d->compression == RLE8 || d->compression == RLE4 || d->compression == RLE24;
}

// MARK: Header

/// Collects `count` bytes in `token`. Returns true once they are complete, and resets the count.
static bool collect(bmp_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_input_collect(input, d->token, &d->token_count, count)) {
    return false;
  }
  d->token_count = 0;
  d->position += count;
  return true;
}

static ccodecs_status read_size(bmp_decoder *d, int64_t width, int64_t height) {
  ccodecs_header *header = &d->base.base.header;
  const bool is_top_down = height < 0;
  height = is_top_down ? -height : height;
  if (width <= 0 || height == 0 || height > INT32_MAX) {
    return corrupt(d, "the width or height is zero or negative");
  }
  header->width = (uint32_t)width;
  header->height = (uint32_t)height;
  header->orientation = is_top_down ? 1 : 4;
  header->is_storage_order = !is_top_down;
  return CCODECS_OK;
}

/// Checks that the bit depth is valid for the compression.
static ccodecs_status check_kind(bmp_decoder *d) {
  const uint32_t bits = d->bits;
  switch (d->compression) {
  case PLAIN:
    if (bits == 64) {
      return unsupported(d, "64 bits per pixel");
    }
    return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32
               ? CCODECS_OK
               : corrupt(d, "the number of bits per pixel is invalid");
  case RLE8:
    return bits == 8 ? CCODECS_OK : corrupt(d, "run-length coding does not match the bits per pixel");
  case RLE4:
    return bits == 4 ? CCODECS_OK : corrupt(d, "run-length coding does not match the bits per pixel");
  case BIT_FIELDS:
    return bits == 16 || bits == 32 ? CCODECS_OK
           : bits == 1              ? unsupported(d, "Huffman-coded images")
                                    : corrupt(d, "bit fields need 16 or 32 bits per pixel");
  case RLE24:
    return bits == 24 ? CCODECS_OK : unsupported(d, "embedded JPEG images");
  case ALPHA_BIT_FIELDS:
    return bits == 16 || bits == 32 ? CCODECS_OK : corrupt(d, "bit fields need 16 or 32 bits per pixel");
  default:
    return unsupported(d, "images with this compression");
  }
}

static ccodecs_status read_header_fields(bmp_decoder *d) {
  const uint8_t *p = d->token;
  const bool is_old = d->header_bytes == OS2_HEADER_BYTES;
  uint8_t known[KNOWN_HEADER_BYTES] = {0};
  memcpy(known, p, d->header_bytes < sizeof known ? d->header_bytes : sizeof known);
  p = known;
  CCODECS_TRY(
      is_old ? read_size(d, ccodecs_le16(p + 4), ccodecs_le16(p + 6))
             : read_size(d, (int32_t)ccodecs_le32(p + 4), (int32_t)ccodecs_le32(p + 8)));
  d->bits = ccodecs_le16(p + (is_old ? 10 : 14));
  d->compression = is_old ? PLAIN : ccodecs_le32(p + 16);
  d->palette_entry_bytes = is_old ? 3 : 4;
  d->palette_count = is_old ? 0 : ccodecs_le32(p + 32);
  // 64-byte OS/2 headers have other fields in the place of the masks in Windows headers.
  const bool has_masks = d->header_bytes >= 52 && d->header_bytes != 64;
  for (int i = 0; i < 4 && has_masks; i++) {
    d->fields[i].mask = i < 3 || d->header_bytes >= 56 ? ccodecs_le32(p + 40 + 4 * i) : 0;
  }
  if (d->header_bytes >= KNOWN_HEADER_BYTES && ccodecs_le32(p + 56) == EMBEDDED_PROFILE) {
    d->profile_place = (uint64_t)FILE_HEADER_BYTES + ccodecs_le32(p + 112);
    d->profile_bytes = ccodecs_le32(p + 116);
  }
  d->state = STATE_HEADER_REST;
  d->skip_left = d->header_bytes > KNOWN_HEADER_BYTES ? d->header_bytes - KNOWN_HEADER_BYTES : 0;
  d->position += d->skip_left;
  return check_kind(d);
}

/// Returns the size in bytes of the masks between the header and the palette.
static size_t mask_bytes(const bmp_decoder *d) {
  const bool is_inside = d->header_bytes >= 52 && d->header_bytes != 64;
  return is_inside ? 0 : d->compression == BIT_FIELDS ? 12 : d->compression == ALPHA_BIT_FIELDS ? 16 : 0;
}

static ccodecs_status prepare_field(bmp_decoder *d, bmp_field *field, uint32_t mask) {
  field->mask = mask;
  if (mask == 0) {
    return CCODECS_OK;
  }
  field->shift = (uint32_t)__builtin_ctz(mask);
  const uint64_t maximum = mask >> field->shift;
  if ((maximum & (maximum + 1)) != 0) {
    return corrupt(d, "the bits of a mask are not adjacent");
  }
  field->bits = (uint32_t)__builtin_popcount(mask);
  for (uint32_t i = 0; i <= maximum && field->bits <= 8; i++) {
    field->scaled[i] = (uint8_t)((i * 255 + maximum / 2) / maximum);
  }
  return CCODECS_OK;
}

static ccodecs_status prepare_fields(bmp_decoder *d) {
  static const uint32_t usual[2][4] = {{0x7C00, 0x03E0, 0x001F, 0}, {0xFF0000, 0x00FF00, 0x0000FF, 0}};
  const bool has_masks = d->compression == BIT_FIELDS || d->compression == ALPHA_BIT_FIELDS;
  ccodecs_status status = CCODECS_OK;
  for (int i = 0; i < 4 && status == CCODECS_OK; i++) {
    status = prepare_field(d, &d->fields[i], has_masks ? d->fields[i].mask : usual[d->bits == 32][i]);
  }
  return status;
}

/// Limits the number of palette colors to what fits before the pixels.
static void limit_palette(bmp_decoder *d) {
  const uint32_t maximum = d->bits > 8 ? 0 : 1u << d->bits;
  uint64_t count = d->palette_count == 0 || d->palette_count > maximum ? maximum : d->palette_count;
  if (d->data_offset > d->position) {
    const uint64_t room = (d->data_offset - d->position) / d->palette_entry_bytes;
    count = count < room ? count : room;
  }
  d->palette_count = (uint32_t)count;
}

static bool is_gray(const bmp_decoder *d) {
  for (uint32_t i = 0; i < d->palette_count; i++) {
    if (d->palette[i][0] != d->palette[i][1] || d->palette[i][0] != d->palette[i][2]) {
      return false;
    }
  }
  return true;
}

/// Reads the palette. Indices outside it remain black.
static void read_palette(bmp_decoder *d) {
  for (uint32_t i = 0; i < d->palette_count; i++) {
    const uint8_t *entry = d->token + (size_t)i * d->palette_entry_bytes;
    d->palette[i][0] = entry[2];
    d->palette[i][1] = entry[1];
    d->palette[i][2] = entry[0];
  }
}

static ccodecs_status describe(bmp_decoder *d) {
  ccodecs_header *header = &d->base.base.header;
  CCODECS_TRY(d->bits == 16 || d->bits == 32 ? prepare_fields(d) : CCODECS_OK);
  header->has_alpha = (d->bits == 16 || d->bits == 32) && d->fields[3].mask != 0;
  d->base.channels = header->has_alpha ? 4 : d->bits <= 8 && d->profile_bytes == 0 && is_gray(d) ? 1 : 3;
  header->color_space = d->base.channels == 1 ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  header->bit_depth = d->bits < 8 ? (uint8_t)d->bits : 8;
  for (uint32_t i = 0; i < 4 && (d->bits == 16 || d->bits == 32); i++) {
    header->bit_depth = d->fields[i].bits > header->bit_depth ? (uint8_t)d->fields[i].bits : header->bit_depth;
  }
  header->is_16bit = header->bit_depth > 8;
  ccodecs_row_decoder_measure(
      &d->base, is_run_length(d) ? (size_t)header->width * (d->bits == 24 ? 3 : 1)
                                 : (size_t)(((uint64_t)header->width * d->bits + 31) / 32 * 4));
  d->state = d->profile_bytes > 0 ? STATE_PROFILE : STATE_READY;
  return ccodecs_decoder_check_limits(&d->base.base); // before a file with a profile is buffered
}

/// Buffers the file up to the end of the profile, which follows the rows, and reads the profile.
static ccodecs_status read_profile(bmp_decoder *d, ccodecs_input *input) {
  const uint64_t rows_place = d->data_offset > d->position ? d->data_offset : d->position;
  const uint64_t place = d->profile_place - rows_place;
  const ccodecs_bytes *ahead = &d->base.ahead;
  const bool is_usable = d->profile_place >= rows_place && d->profile_bytes <= CCODECS_MAX_PROFILE_BYTES;
  const bool has_all = ahead->count >= place + d->profile_bytes;
  if (is_usable && !has_all && (input->count > 0 || !input->is_last)) {
    const ccodecs_status status = ccodecs_row_decoder_look_ahead(&d->base, input);
    const bool is_at_end = input->is_last || ahead->count >= place + d->profile_bytes;
    return status == CCODECS_OK && !is_at_end ? CCODECS_NEEDS_INPUT : status;
  }
  d->state = STATE_READY;
  if (!is_usable || !has_all) {
    d->base.base.header.warnings |= CCODECS_WARNING_BAD_PROFILE;
    return CCODECS_OK;
  }
  return ccodecs_decoder_keep_profile(&d->base.base, ccodecs_bytes_start(ahead) + place, d->profile_bytes);
}

static ccodecs_status read_file_header(bmp_decoder *d) {
  d->data_offset = ccodecs_le32(d->token + 10);
  d->header_bytes = ccodecs_le32(d->token + 14);
  if (memcmp(d->token, "BM", 2) != 0 || (d->header_bytes != OS2_HEADER_BYTES && d->header_bytes < 16)) {
    return corrupt(d, "the header's version is unknown");
  }
  memcpy(d->token, d->token + FILE_HEADER_BYTES, 4); // the size field is part of the header
  d->token_count = 4;
  d->position -= 4;
  d->state = STATE_HEADER;
  return CCODECS_OK;
}

/// Runs one step of the header's state machine. Returns CCODECS_NEEDS_INPUT once the window is consumed.
static ccodecs_status step(bmp_decoder *d, ccodecs_input *input) {
  switch (d->state) {
  case STATE_FILE_HEADER:
    return collect(d, input, FILE_HEADER_BYTES + 4) ? read_file_header(d) : CCODECS_NEEDS_INPUT;
  case STATE_HEADER: {
    const size_t known = d->header_bytes < KNOWN_HEADER_BYTES ? d->header_bytes : KNOWN_HEADER_BYTES;
    return collect(d, input, known) ? read_header_fields(d) : CCODECS_NEEDS_INPUT;
  }
  case STATE_HEADER_REST:
    d->state = ccodecs_input_skip(input, &d->skip_left) ? STATE_MASKS : d->state;
    return d->state == STATE_MASKS ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  case STATE_MASKS: {
    const size_t count = mask_bytes(d);
    if (!collect(d, input, count)) {
      return CCODECS_NEEDS_INPUT;
    }
    for (size_t i = 0; i < count / 4; i++) {
      d->fields[i].mask = ccodecs_le32(d->token + 4 * i);
    }
    limit_palette(d);
    d->state = STATE_PALETTE;
    return CCODECS_OK;
  }
  case STATE_PALETTE:
    if (!collect(d, input, (size_t)d->palette_count * d->palette_entry_bytes)) {
      return CCODECS_NEEDS_INPUT;
    }
    read_palette(d);
    d->skip_left = d->data_offset > d->position ? d->data_offset - d->position : 0;
    d->state = STATE_GAP;
    return CCODECS_OK;
  case STATE_GAP:
    return ccodecs_input_skip(input, &d->skip_left) ? describe(d) : CCODECS_NEEDS_INPUT;
  case STATE_PROFILE:
    return read_profile(d, input);
  case STATE_READY:
    break;
  }
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  bmp_decoder *d = (bmp_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && d->state != STATE_READY) {
    status = step(d, input);
  }
  return ccodecs_row_decoder_end_header(&d->base, input, status);
}

/// Returns 0 for run-length data, because runs may skip any number of pixels.
static uint64_t min_bytes(const ccodecs_decoder *base) {
  const bmp_decoder *d = (const bmp_decoder *)base;
  const uint64_t minimum = is_run_length(d) ? 0 : (uint64_t)d->base.stored_bytes * base->header.height;
  return minimum > d->base.ahead.count ? minimum - d->base.ahead.count : 0;
}

// MARK: Pixels

static void put_indexed(const bmp_decoder *d, uint8_t *out, uint32_t bits) {
  const uint32_t per_byte = 8 / bits;
  const uint32_t mask = (1u << bits) - 1;
  for (uint32_t x = 0; x < d->base.base.header.width; x++, out += d->base.channels) {
    const uint32_t shift = bits * (per_byte - 1 - x % per_byte);
    memcpy(out, d->palette[d->base.stored[x / per_byte] >> shift & mask], d->base.channels);
  }
}

static uint8_t field_value(const bmp_field *field, uint32_t pixel) {
  return field->scaled[(pixel & field->mask) >> field->shift];
}

static uint16_t deep_field_value(const bmp_field *field, uint32_t pixel) {
  const uint64_t maximum = field->mask >> field->shift;
  const uint64_t value = (pixel & field->mask) >> field->shift;
  return maximum == 0 ? 0 : (uint16_t)((value * 65535 + maximum / 2) / maximum);
}

static void put_fields(const bmp_decoder *d, uint8_t *out) {
  const bool is_16bit = d->base.base.header.is_16bit;
  for (uint32_t x = 0; x < d->base.base.header.width; x++) {
    const uint8_t *p = d->base.stored + (size_t)x * (d->bits / 8);
    const uint32_t pixel = d->bits == 16 ? ccodecs_le16(p) : ccodecs_le32(p);
    for (uint32_t i = 0; i < d->base.channels; i++) {
      const size_t place = (size_t)x * d->base.channels + i;
      if (is_16bit) {
        ((uint16_t *)(void *)out)[place] = deep_field_value(&d->fields[i], pixel);
      } else {
        out[place] = field_value(&d->fields[i], pixel);
      }
    }
  }
}

static void put_pixels(const bmp_decoder *d, uint8_t *out) {
  if (d->bits == 24) {
    for (uint32_t x = 0; x < d->base.base.header.width; x++, out += 3) {
      const uint8_t *pixel = d->base.stored + 3 * (size_t)x;
      out[0] = pixel[2];
      out[1] = pixel[1];
      out[2] = pixel[0];
    }
  } else if (d->bits > 8) {
    put_fields(d, out);
  } else {
    put_indexed(d, out, is_run_length(d) ? 8 : d->bits);
  }
}

// MARK: Runs

/// Writes one pixel of a run. Ignores pixels beyond the end of the row, where `x` exceeds the width.
static void put_run_pixel(bmp_decoder *d, const uint8_t *value) {
  const uint32_t bytes = d->bits == 24 ? 3 : 1;
  if (d->x < d->base.base.header.width) {
    memcpy(d->base.stored + d->x * bytes, value, bytes);
  }
  d->x++;
}

static void put_run(bmp_decoder *d) {
  const uint8_t high = d->run[1] >> 4;
  const uint8_t low = d->run[1] & 15;
  for (uint32_t i = 0; i < d->run[0]; i++) {
    put_run_pixel(d, d->compression != RLE4 ? d->run + 1 : i % 2 == 0 ? &high : &low);
  }
}

/// Returns the number of complete rows after `count` more, at most the image's height.
static uint32_t rows_after(const bmp_decoder *d, uint32_t count) {
  const uint32_t left = d->base.base.header.height - d->base.row;
  return d->base.row + (count < left ? count : left);
}

static void read_pair(bmp_decoder *d) {
  const uint8_t count = d->run[0];
  const uint8_t value = d->run[1];
  if (count > 0 && d->compression == RLE24) {
    d->run_state = RUN_PIXEL;
    d->run_count = 2; // the pair's second byte is the pixel's first byte
  } else if (count > 0) {
    put_run(d);
  } else if (value == 0) {
    d->x = 0;
    d->target = rows_after(d, 1);
  } else if (value == 1) {
    d->run_state = RUN_END;
    d->target = d->base.base.header.height;
  } else if (value == 2) {
    d->run_state = RUN_DELTA;
  } else {
    const uint32_t bytes = d->compression == RLE24 ? 3u * value : d->compression == RLE4 ? (value + 1u) / 2 : value;
    d->run_state = RUN_ABSOLUTE;
    d->absolute_left = value;
    d->has_padding = bytes % 2 != 0;
  }
}

/// Returns the number of bytes that the next step needs.
static size_t run_token_size(const bmp_decoder *d) {
  switch (d->run_state) {
  case RUN_PIXEL:
    return 4;
  case RUN_ABSOLUTE:
    return d->absolute_left > 0 && d->compression == RLE24 ? 3 : 1;
  case RUN_PAIR:
  case RUN_DELTA:
  case RUN_END:
    break;
  }
  return 2;
}

static void read_absolute(bmp_decoder *d) {
  if (d->absolute_left == 0) {
    d->has_padding = false;
  } else if (d->compression == RLE4) {
    const uint8_t pixels[2] = {d->run[0] >> 4, d->run[0] & 15};
    for (int i = 0; i < 2 && d->absolute_left > 0; i++, d->absolute_left--) {
      put_run_pixel(d, pixels + i);
    }
  } else {
    put_run_pixel(d, d->run);
    d->absolute_left--;
  }
  if (d->absolute_left == 0 && !d->has_padding) {
    d->run_state = RUN_PAIR;
  }
}

/// Decodes runs until rows are complete. Returns CCODECS_NEEDS_INPUT if the window is consumed first.
static ccodecs_status read_runs(bmp_decoder *d, ccodecs_input *input) {
  // The end-of-bitmap code after the last row may be missing, and other data may follow.
  const bool is_last = d->base.row + 1 == d->base.base.header.height;
  while (d->base.row == d->target && !(is_last && d->x >= d->base.base.header.width)) {
    if (!ccodecs_input_collect(input, d->run, &d->run_count, run_token_size(d))) {
      return CCODECS_NEEDS_INPUT;
    }
    d->run_count = 0;
    switch (d->run_state) {
    case RUN_PAIR:
      if (d->x >= d->base.base.header.width && (d->run[0] > 0 || d->run[1] > 2)) {
        return corrupt(d, "a run begins behind its row");
      }
      read_pair(d);
      break;
    case RUN_PIXEL:
      put_run(d);
      d->run_state = RUN_PAIR;
      break;
    case RUN_DELTA:
      d->x += d->run[0];
      d->target = rows_after(d, d->run[1]);
      d->run_state = RUN_PAIR;
      break;
    case RUN_ABSOLUTE:
      read_absolute(d);
      break;
    case RUN_END:
      break;
    }
    // Some writers pad a row's last run; what is beyond the end of the row is dropped, as by other decoders.
    d->x = d->x < d->base.base.header.width ? d->x : d->base.base.header.width;
  }
  return CCODECS_OK;
}

// MARK: Rows

static ccodecs_status read_row(row_decoder *base, ccodecs_input *input) {
  bmp_decoder *d = (bmp_decoder *)base;
  if (!is_run_length(d)) {
    return ccodecs_row_decoder_read_plain(base, input);
  }
  return read_runs(d, input);
}

static void put_row(row_decoder *base, uint8_t *given) {
  bmp_decoder *d = (bmp_decoder *)base;
  put_pixels(d, given);
  if (is_run_length(d)) {
    memset(base->stored, 0, base->stored_bytes);
  }
  d->target = d->target <= base->row ? base->row + 1 : d->target;
}

const row_format ccodecs_bmp_decoder = {
    .methods = {ROW_DECODER_METHODS(bmp_decoder)},
    .name = "BMP",
    .read_row = read_row,
    .put_row = put_row,
};

// PSD and PSB: the merged picture of a Photoshop document, decoded as it arrives; layers are passed over.
//
// Its channels stand one behind the other. All but the last that is needed are held, in a file where they are large,
// and rows are given while the last arrives. Bitmaps, gray, mapped, RGB and CMYK of 8 and, but for mapped ones, 16 bits.
// The fourth channel of RGB is alpha, as other readers have it. Not decoded: Lab, multichannel, 32 bits, ZIP.
// Source: Adobe Photoshop File Formats Specification (2019).

#include "../bytes.h"
#include "../color/profile.h"
#include "../spill.h"
#include "decoder.h"

enum { FILE_HEADER_BYTES = 26, PALETTE_BYTES = 768, MOST_CHANNELS = 56, RIGHTS_BYTES_MOST = 65536 };
enum { MODE_BITMAP = 0, MODE_GRAY = 1, MODE_INDEXED = 2, MODE_RGB = 3, MODE_CMYK = 4, MODE_DUOTONE = 8 };
enum { RESOURCE_PROFILE = 1039, RESOURCE_EXIF = 1058 };
enum { RAW = 0, PACK_BITS = 1 };

/// A strip's rows are as many as fit here, and at least one.
static const size_t strip_bytes = 64 * 1024;

typedef enum psd_state {
  STATE_FILE_HEADER,
  STATE_PALETTE,
  STATE_RESOURCES,
  STATE_RESOURCE,      ///< Signature, number and the length of the name.
  STATE_RESOURCE_NAME,
  STATE_RESOURCE_SIZE,
  STATE_RESOURCE_KEPT, ///< The bytes of one that is looked at.
  STATE_SKIP,          ///< Past `skip_left` bytes to the next resource.
  STATE_LAYERS,
  STATE_LAYER_COUNT,
  STATE_READY,         ///< The header ends here.
  STATE_LAYERS_REST,
  STATE_COMPRESSION,
  STATE_COUNTS,        ///< Of the bytes of each row, which are not needed.
  STATE_CHANNELS,
} psd_state;

typedef struct psd_decoder {
  ccodecs_decoder base;
  psd_state state;
  uint8_t token[PALETTE_BYTES + 8];
  size_t token_count;
  uint64_t skip_left;
  uint64_t section_left;  ///< Of the resources, and then of the layers.
  uint32_t resource;
  uint64_t resource_left;
  ccodecs_bytes resource_bytes;
  bool has_profile;
  bool is_large;          ///< PSB, whose counts are wider.
  uint32_t channel_count; ///< In the file.
  uint32_t mode;
  uint32_t bits;
  uint8_t palette[256][3];
  uint32_t compression;

  uint32_t colors;
  uint32_t needed;        ///< Channels that are decoded.
  uint32_t channels;      ///< Of a pixel that is given.
  bool keeps_inks;
  size_t channel_row_bytes;
  ccodecs_spill planes[3]; ///< The channels before the last.
  uint8_t *stored;         ///< A row of the last.
  uint32_t channel;
  uint32_t row;
  size_t stored_count;     ///< Bytes of the row that are there.
  uint32_t run_left;       ///< Bytes of a run that are still to come;
  bool is_literal;         ///< each of its own, or
  bool has_value;          ///< `value` again and again.
  uint8_t value;
  uint8_t *strip;
  size_t row_bytes;
  uint32_t strip_rows;
} psd_decoder;

static ccodecs_status corrupt(psd_decoder *d, const char *reason) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "PSD data: %s", reason);
}

static ccodecs_status unsupported(psd_decoder *d, const char *kind) {
  return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "PSD data: %s are not decoded", kind);
}

static uint64_t be64(const uint8_t *p) {
  return (uint64_t)ccodecs_be32(p) << 32 | ccodecs_be32(p + 4);
}

// MARK: Header

/// Collects `count` bytes in `token`; true when they are all there, once.
static bool collect(psd_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_input_collect(input, d->token, &d->token_count, count)) {
    return false;
  }
  d->token_count = 0;
  return true;
}

static ccodecs_status check_kind(psd_decoder *d) {
  switch (d->mode) {
  case MODE_BITMAP:
    d->colors = 1;
    return d->bits == 1 ? CCODECS_OK : corrupt(d, "a bitmap has one bit a pixel");
  case MODE_INDEXED:
    d->colors = 1;
    return d->bits == 8 ? CCODECS_OK : corrupt(d, "a picture with a palette has 8 bits a pixel");
  case MODE_GRAY:
  case MODE_DUOTONE:
    d->colors = 1;
    break;
  case MODE_RGB:
    d->colors = 3;
    break;
  case MODE_CMYK:
    d->colors = 4;
    break;
  default:
    return unsupported(d, "pictures of such a colour mode");
  }
  if (d->bits == 32) {
    return unsupported(d, "samples of 32 bits");
  }
  return d->bits == 8 || d->bits == 16 ? CCODECS_OK : corrupt(d, "it has no such number of bits a sample");
}

static ccodecs_status read_file_header(psd_decoder *d) {
  const uint8_t *p = d->token;
  ccodecs_header *header = &d->base.header;
  const uint32_t version = ccodecs_be16(p + 4);
  if (memcmp(p, "8BPS", 4) != 0 || version < 1 || version > 2) {
    return corrupt(d, "its header is of an unknown kind");
  }
  d->is_large = version == 2;
  d->channel_count = ccodecs_be16(p + 12);
  header->height = ccodecs_be32(p + 14);
  header->width = ccodecs_be32(p + 18);
  d->bits = ccodecs_be16(p + 22);
  d->mode = ccodecs_be16(p + 24);
  const uint32_t most = d->is_large ? 300000 : 30000;
  if (header->width == 0 || header->height == 0 || header->width > most || header->height > most) {
    return corrupt(d, "its width or height is zero or too large");
  }
  const ccodecs_status status = check_kind(d);
  if (status != CCODECS_OK) {
    return status;
  }
  if (d->channel_count < d->colors || d->channel_count > MOST_CHANNELS) {
    return corrupt(d, "it has no such number of channels");
  }
  header->has_alpha = d->mode == MODE_RGB && d->channel_count > 3;
  d->state = STATE_PALETTE;
  return CCODECS_OK;
}

static ccodecs_status read_palette(psd_decoder *d) {
  const uint32_t count = ccodecs_be32(d->token);
  if (d->mode != MODE_INDEXED) {
    d->skip_left = count;
    return CCODECS_OK;
  }
  if (count < PALETTE_BYTES) {
    return corrupt(d, "its palette is missing");
  }
  for (uint32_t i = 0; i < PALETTE_BYTES; i++) {
    d->palette[i % 256][i / 256] = d->token[4 + i];
  }
  d->skip_left = count - PALETTE_BYTES;
  return CCODECS_OK;
}

/// Ends the resource, or the section where what follows is none.
static void end_resource(psd_decoder *d) {
  d->skip_left += d->resource_left < d->section_left ? d->resource_left : d->section_left;
  d->section_left -= d->skip_left;
  d->state = STATE_SKIP;
}

static void begin_resource(psd_decoder *d) {
  const bool is_resource = memcmp(d->token, "8BIM", 4) == 0;
  d->resource = ccodecs_be16(d->token + 4);
  d->section_left -= 7;
  d->resource_left = d->section_left; // all there is, where there is no order to it
  d->skip_left = 0;
  if (!is_resource) {
    end_resource(d);
    return;
  }
  const uint64_t name = (uint64_t)(d->token[6] | 1u); // with its length an even number of bytes
  d->skip_left = name < d->section_left ? name : d->section_left;
  d->section_left -= d->skip_left;
  d->state = STATE_RESOURCE_NAME;
}

static void size_resource(psd_decoder *d) {
  const uint64_t count = ccodecs_be32(d->token);
  d->section_left -= 4;
  d->resource_left = count + count % 2;
  const bool is_whole = d->resource_left <= d->section_left;
  const bool is_profile = d->resource == RESOURCE_PROFILE && !d->has_profile;
  const bool is_rights = d->resource == RESOURCE_EXIF && count <= RIGHTS_BYTES_MOST;
  if (is_profile && is_whole && count > CCODECS_PROFILE_BYTES_MOST) {
    d->base.header.warnings |= CCODECS_WARNING_BAD_PROFILE;
  } else if (is_whole && (is_profile || is_rights)) {
    d->section_left -= d->resource_left;
    d->state = STATE_RESOURCE_KEPT;
    return;
  }
  end_resource(d);
}

/// Gathers the bytes of a resource, and then takes from them what is needed.
static ccodecs_status keep_resource(psd_decoder *d, ccodecs_input *input) {
  const size_t count = input->count < d->resource_left ? input->count : (size_t)d->resource_left;
  ccodecs_bytes *bytes = &d->resource_bytes;
  bool has_room = ccodecs_bytes_append(bytes, input->bytes, count, d->base.budget);
  ccodecs_input_advance(input, has_room ? count : 0);
  d->resource_left -= has_room ? count : 0;
  if (has_room && d->resource_left > 0) {
    return CCODECS_NEEDS_INPUT;
  }
  if (has_room && bytes->count > 0 && d->resource == RESOURCE_PROFILE) {
    d->has_profile = true;
    d->base.profile = *bytes;
    *bytes = (ccodecs_bytes){0};
  } else if (has_room && bytes->count > 0) {
    has_room = ccodecs_exif_keep_rights(&d->base, ccodecs_bytes_start(bytes), bytes->count);
  }
  ccodecs_bytes_free(bytes, d->base.budget);
  d->state = STATE_SKIP;
  return has_room ? CCODECS_OK
                  : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "the budget has no room for the PSD's resources");
}

/// What the layers' section says of the merged picture: whether its first channel beyond the colours is alpha.
static void read_layer_count(psd_decoder *d, const uint8_t *p) {
  const int32_t count = (int16_t)ccodecs_be16(p);
  const bool may_have_alpha = d->mode == MODE_GRAY || d->mode == MODE_RGB;
  d->base.header.has_alpha =
      d->base.header.has_alpha || (count < 0 && may_have_alpha && d->channel_count > d->colors);
}

static ccodecs_status describe(psd_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const bool is_gray = d->colors == 1 && d->mode != MODE_INDEXED;
  header->bit_depth = (uint8_t)d->bits;
  // Inks are given in 8 bits where they are converted by their profile.
  header->is_deep = d->bits == 16 && !(d->mode == MODE_CMYK && d->has_profile);
  header->color_space = is_gray             ? CCODECS_COLOR_GRAY
                        : d->mode == MODE_CMYK ? CCODECS_COLOR_CMYK
                                               : CCODECS_COLOR_RGB;
  d->needed = d->colors + (header->has_alpha ? 1 : 0);
  header->holds_bitmap = d->needed > 1;
  d->channels = header->has_alpha ? 4 : is_gray ? 1 : 3;
  d->channel_row_bytes = ((size_t)header->width * d->bits + 7) / 8;
  d->state = STATE_READY;
  return CCODECS_OK;
}

/// One step through what stands before the layers. CCODECS_NEEDS_INPUT when the window is consumed.
static ccodecs_status step(psd_decoder *d, ccodecs_input *input) {
  switch (d->state) {
  case STATE_FILE_HEADER:
    return collect(d, input, FILE_HEADER_BYTES) ? read_file_header(d) : CCODECS_NEEDS_INPUT;
  case STATE_PALETTE:
    if (!collect(d, input, d->mode == MODE_INDEXED ? 4 + PALETTE_BYTES : 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = STATE_RESOURCES;
    return read_palette(d);
  case STATE_RESOURCES:
    if (!ccodecs_input_skip(input, &d->skip_left) || !collect(d, input, 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->section_left = ccodecs_be32(d->token);
    d->state = STATE_SKIP;
    return CCODECS_OK;
  case STATE_SKIP:
    if (!ccodecs_input_skip(input, &d->skip_left)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = d->section_left >= 7 ? STATE_RESOURCE : STATE_LAYERS;
    d->skip_left = d->state == STATE_LAYERS ? d->section_left : 0;
    return CCODECS_OK;
  case STATE_RESOURCE:
    if (!collect(d, input, 7)) {
      return CCODECS_NEEDS_INPUT;
    }
    begin_resource(d);
    return CCODECS_OK;
  case STATE_RESOURCE_NAME:
    if (!ccodecs_input_skip(input, &d->skip_left)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = d->section_left >= 4 ? STATE_RESOURCE_SIZE : STATE_SKIP;
    return CCODECS_OK;
  case STATE_RESOURCE_SIZE:
    if (!collect(d, input, 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    size_resource(d);
    return CCODECS_OK;
  case STATE_RESOURCE_KEPT:
    return keep_resource(d, input);
  case STATE_LAYERS: {
    const size_t count = d->is_large ? 8 : 4;
    if (!ccodecs_input_skip(input, &d->skip_left) || !collect(d, input, count)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->section_left = d->is_large ? be64(d->token) : ccodecs_be32(d->token);
    d->state = STATE_LAYER_COUNT;
    return d->section_left >= count + 2 ? CCODECS_OK : describe(d);
  }
  case STATE_LAYER_COUNT: {
    const size_t count = d->is_large ? 8 : 4;
    if (!collect(d, input, count + 2)) {
      return CCODECS_NEEDS_INPUT;
    }
    const uint64_t layer_bytes = d->is_large ? be64(d->token) : ccodecs_be32(d->token);
    if (layer_bytes >= 2) {
      read_layer_count(d, d->token + count);
    }
    d->section_left -= count + 2;
    return describe(d);
  }
  default:
    break;
  }
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  psd_decoder *d = (psd_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && d->state != STATE_READY) {
    status = step(d, input);
  }
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PSD data end before the picture");
  }
  return status;
}

/// The layers, and the channels as they are or as runs of 128 bytes in two, behind the count of each row.
static uint64_t least_bytes(const ccodecs_decoder *base) {
  const psd_decoder *d = (const psd_decoder *)base;
  const uint64_t rows = (uint64_t)base->header.height * d->needed;
  const uint64_t raw = rows * d->channel_row_bytes;
  const uint64_t counts = (uint64_t)base->header.height * d->channel_count * (d->is_large ? 4 : 2);
  const uint64_t packed = counts + rows * 2 * ((d->channel_row_bytes + 127) / 128);
  const uint64_t layers = d->section_left < INT64_MAX ? d->section_left : INT64_MAX;
  return layers + 2 + (raw < packed ? raw : packed);
}

// MARK: Memory

static uint64_t plane_bytes(const psd_decoder *d) {
  return (uint64_t)d->channel_row_bytes * d->base.header.height;
}

/// Whether rows are of inks, to be converted by their profile.
static bool gives_inks(const psd_decoder *d, const ccodecs_decode_options *options) {
  return d->mode == MODE_CMYK && options->keeps_inks && !d->base.header.is_deep;
}

static size_t given_row_bytes(const psd_decoder *d, bool has_inks) {
  return (size_t)d->base.header.width * (has_inks ? 4 : d->channels) * (d->base.header.is_deep ? 2 : 1);
}

static uint32_t rows_of_strip(size_t row_bytes) {
  const size_t rows = strip_bytes / row_bytes;
  return rows < 1 ? 1 : rows > 64 ? 64 : (uint32_t)rows;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const psd_decoder *d = (const psd_decoder *)base;
  const size_t row_bytes = given_row_bytes(d, gives_inks(d, options));
  uint64_t total = 0;
  for (uint32_t i = 0; i + 1 < d->needed; i++) { // in order, as what is held says which go to a file
    total += ccodecs_spill_charge(plane_bytes(d), base->budget->used + total, &base->limits);
  }
  *byte_count = total + d->channel_row_bytes + row_bytes * rows_of_strip(row_bytes) + 2 * 128;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  psd_decoder *d = (psd_decoder *)base;
  d->keeps_inks = gives_inks(d, options);
  d->row_bytes = given_row_bytes(d, d->keeps_inks);
  d->strip_rows = rows_of_strip(d->row_bytes);
  ccodecs_decoder_describe_packed(base, d->keeps_inks ? 4 : d->channels, layout);
  layout->pixels = d->keeps_inks ? CCODECS_PIXELS_CMYK8 : layout->pixels;
  for (uint32_t i = 0; i + 1 < d->needed; i++) {
    if (!ccodecs_spill_create(&d->planes[i], plane_bytes(d), &base->limits, base->budget)) {
      return ccodecs_decoder_fail(
          base, CCODECS_NO_MEMORY, "a channel's samples need %llu bytes, for which there is no room",
          (unsigned long long)plane_bytes(d));
    }
  }
  d->stored = ccodecs_allocate(base->budget, d->channel_row_bytes);
  d->strip = ccodecs_allocate(base->budget, d->row_bytes * d->strip_rows);
  d->state = STATE_LAYERS_REST;
  d->skip_left = d->section_left;
  return d->stored == NULL || d->strip == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Channels

/// Fills the row from runs. True when it is whole. Source: Apple, "PackBits" (Technical Note TN1023).
static bool unpack(psd_decoder *d, ccodecs_input *input, uint8_t *row) {
  while (d->stored_count < d->channel_row_bytes) {
    const size_t room = d->channel_row_bytes - d->stored_count;
    const bool needs_byte = d->run_left == 0 || d->is_literal || !d->has_value;
    if (needs_byte && input->count == 0) {
      return false;
    }
    if (d->run_left == 0) {
      const uint8_t code = *input->bytes;
      ccodecs_input_advance(input, 1);
      d->is_literal = code < 128;
      d->run_left = code == 128 ? 0 : code < 128 ? code + 1u : 257u - code;
      d->has_value = false;
    } else if (d->is_literal) {
      size_t count = d->run_left < room ? d->run_left : room;
      count = count < input->count ? count : input->count;
      memcpy(row + d->stored_count, input->bytes, count);
      ccodecs_input_advance(input, count);
      d->stored_count += count;
      d->run_left -= (uint32_t)count;
    } else if (!d->has_value) {
      d->value = *input->bytes;
      d->has_value = true;
      ccodecs_input_advance(input, 1);
    } else {
      const size_t count = d->run_left < room ? d->run_left : room;
      memset(row + d->stored_count, d->value, count);
      d->stored_count += count;
      d->run_left -= (uint32_t)count;
    }
  }
  return true;
}

/// Completes the next row of a channel. CCODECS_OK or CCODECS_NEEDS_INPUT.
static ccodecs_status read_channel_row(psd_decoder *d, ccodecs_input *input, uint8_t *row) {
  const bool is_whole = d->compression == RAW
                            ? ccodecs_input_collect(input, row, &d->stored_count, d->channel_row_bytes)
                            : unpack(d, input, row);
  if (!is_whole) {
    return CCODECS_NEEDS_INPUT;
  }
  d->stored_count = 0;
  d->row++;
  return CCODECS_OK;
}

/// A channel before the last.
static ccodecs_status read_channel(psd_decoder *d, ccodecs_input *input) {
  ccodecs_spill *plane = &d->planes[d->channel];
  while (d->row < d->base.header.height) {
    const size_t offset = (size_t)d->row * d->channel_row_bytes;
    const ccodecs_status status = read_channel_row(d, input, plane->bytes + offset);
    if (status != CCODECS_OK) {
      return status;
    }
    ccodecs_spill_pass(plane, offset + d->channel_row_bytes);
  }
  d->row = 0;
  d->channel++;
  return d->run_left == 0 ? CCODECS_OK : corrupt(d, "a run goes beyond the end of its channel");
}

/// One step from the layers to the last channel.
static ccodecs_status step_to_channels(psd_decoder *d, ccodecs_input *input) {
  switch (d->state) {
  case STATE_LAYERS_REST:
    d->state = ccodecs_input_skip(input, &d->skip_left) ? STATE_COMPRESSION : d->state;
    return d->state == STATE_COMPRESSION ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  case STATE_COMPRESSION:
    if (!collect(d, input, 2)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->compression = ccodecs_be16(d->token);
    d->skip_left =
        d->compression == RAW ? 0 : (uint64_t)d->channel_count * d->base.header.height * (d->is_large ? 4 : 2);
    d->state = STATE_COUNTS;
    return d->compression == RAW || d->compression == PACK_BITS ? CCODECS_OK
                                                                : unsupported(d, "pictures compressed in another way");
  case STATE_COUNTS:
    d->state = ccodecs_input_skip(input, &d->skip_left) ? STATE_CHANNELS : d->state;
    return d->state == STATE_CHANNELS ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  default:
    return read_channel(d, input);
  }
}

// MARK: Rows

static uint16_t sample_of(const uint8_t *row, uint32_t x, bool is_wide) {
  return is_wide ? (uint16_t)ccodecs_be16(row + 2 * (size_t)x) : row[x];
}

/// Takes out the white that colours are blended with in the merged picture.
static uint32_t without_white(uint32_t color, uint32_t alpha, uint32_t most) {
  if (alpha == 0 || alpha == most) {
    return color;
  }
  const uint64_t white = (uint64_t)most * (most - alpha);
  const uint64_t scaled = (uint64_t)color * most;
  const uint64_t value = scaled < white ? 0 : (scaled - white + alpha / 2) / alpha;
  return value > most ? most : (uint32_t)value;
}

static void put_sample(const psd_decoder *d, uint8_t *out, size_t index, uint32_t value) {
  if (d->base.header.is_deep) {
    ((uint16_t *)(void *)out)[index] = (uint16_t)value;
  } else {
    out[index] = (uint8_t)(d->bits == 16 ? (value * 255u + 32767) / 65535 : value);
  }
}

static void put_pixels(const psd_decoder *d, const uint8_t *const rows[4], uint8_t *out) {
  const bool is_wide = d->bits == 16;
  const uint32_t most = is_wide ? 65535 : 255;
  const uint32_t colors = d->channels == 1 ? 1 : 3;
  for (uint32_t x = 0; x < d->base.header.width; x++) {
    const uint32_t last = sample_of(rows[d->needed - 1], x, is_wide);
    for (uint32_t i = 0; i < colors; i++) {
      uint32_t value = sample_of(rows[d->colors == 1 ? 0 : i], x, is_wide);
      if (d->mode == MODE_CMYK) { // 255 is no ink
        value = (uint32_t)(((uint64_t)value * last + most / 2) / most);
      } else if (d->base.header.has_alpha) {
        value = without_white(value, last, most);
      }
      put_sample(d, out, (size_t)x * d->channels + i, value);
    }
    if (d->base.header.has_alpha) {
      put_sample(d, out, (size_t)x * d->channels + 3, last);
    }
  }
}

/// A row of the strip, of the same row of every channel.
static void put_row(psd_decoder *d, uint32_t y, uint8_t *out) {
  const uint8_t *rows[4];
  const uint32_t width = d->base.header.width;
  const size_t offset = (size_t)y * d->channel_row_bytes;
  for (uint32_t i = 0; i < d->needed; i++) {
    rows[i] = i + 1 < d->needed ? d->planes[i].bytes + offset : d->stored;
  }
  for (uint32_t x = 0; x < width && d->mode == MODE_BITMAP; x++) {
    out[x] = (d->stored[x / 8] >> (7 - x % 8) & 1) != 0 ? 0 : 255;
  }
  for (uint32_t x = 0; x < width && d->mode == MODE_INDEXED; x++) {
    memcpy(out + 3 * (size_t)x, d->palette[d->stored[x]], 3);
  }
  for (size_t i = 0; i < (size_t)width * 4 && d->keeps_inks; i++) {
    put_sample(d, out, i, sample_of(rows[i % 4], (uint32_t)(i / 4), d->bits == 16));
  }
  if (d->mode != MODE_BITMAP && d->mode != MODE_INDEXED && !d->keeps_inks) {
    put_pixels(d, rows, out);
  }
  for (uint32_t i = 0; i + 1 < d->needed; i++) {
    ccodecs_spill_pass(&d->planes[i], offset);
  }
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  psd_decoder *d = (psd_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && (d->state != STATE_CHANNELS || d->channel + 1 < d->needed)) {
    status = step_to_channels(d, input);
  }
  uint32_t count = 0;
  while (status == CCODECS_OK && count < d->strip_rows && d->row < base->header.height) {
    const uint32_t y = d->row;
    status = read_channel_row(d, input, d->stored);
    if (status == CCODECS_OK) {
      put_row(d, y, d->strip + count++ * d->row_bytes);
    }
  }
  if (count > 0) {
    rows->planes[0] = d->strip;
    rows->row_strides[0] = d->row_bytes;
    rows->row_counts[0] = count;
    return CCODECS_ROWS_READY;
  }
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PSD data end before the last row");
  }
  return status == CCODECS_OK ? CCODECS_DONE : status;
}

static void destroy(ccodecs_decoder *base) {
  psd_decoder *d = (psd_decoder *)base;
  ccodecs_budget *budget = base->budget;
  for (uint32_t i = 0; i < 3; i++) {
    ccodecs_spill_destroy(&d->planes[i], budget);
  }
  ccodecs_bytes_free(&d->resource_bytes, budget);
  ccodecs_free(budget, d->stored);
  ccodecs_free(budget, d->strip);
  ccodecs_free(budget, d);
}

ccodecs_decoder *ccodecs_psd_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  static const ccodecs_decoder_methods methods = {
      .read_header = read_header,
      .estimate = estimate,
      .least_bytes = least_bytes,
      .start = start,
      .read_rows = read_rows,
      .destroy = destroy,
  };
  psd_decoder *d = ccodecs_decoder_allocate(sizeof *d, &methods, CCODECS_FORMAT_PSD, limits, budget);
  if (d == NULL) {
    return NULL;
  }
  return &d->base;
}

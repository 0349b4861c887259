// Streaming decoder for Targa: color-mapped, true-color and gray images, with or without run-length encoding.
//
// A file may start in any corner. Rows and pixels are returned in file order, and header.orientation specifies how to
// transform the image, so that only a strip of rows is buffered. An image has alpha if the descriptor specifies
// attribute bits. Many writers omit them for 32-bit pixels with alpha. For such files the last byte of a pixel is alpha
// unless it is zero in every pixel, or the extension area at the end specifies otherwise; the file is buffered for
// that.
//
// Source: Truevision TGA File Format Specification 2.0.

#include "../formats.h"
#include "row_decoder.h"

enum { HEADER_BYTES = 18, MAPPED = 1, TRUE_COLOR = 2, GRAY = 3, RUN_LENGTH = 8 };

typedef struct tga_decoder {
  row_decoder base;
  uint8_t token[HEADER_BYTES];
  size_t token_count;
  bool has_header;
  uint64_t skip_left; ///< Remaining bytes of the identification field.
  uint32_t type;      ///< Image type without the run-length bit.
  bool is_run_length;
  uint32_t pixel_bytes; ///< Size of a pixel in the file.
  uint32_t attribute_bits;
  uint32_t map_first;
  uint32_t map_count;
  uint32_t map_entry_bytes;
  uint32_t map_read; ///< Number of entries read.
  uint8_t palette[256][4];

  bool is_uncertain;    ///< Whether the image has alpha depends on its pixels and on the end of the file.
  uint64_t ahead_place; ///< Offset of the pixels in the file.

  uint8_t packet[5]; ///< The packet's header and the pixel that it repeats.
  size_t packet_count;
  uint32_t run_left; ///< Remaining pixels of the packet.
  bool is_repeat;
} tga_decoder;

static ccodecs_status corrupt(tga_decoder *d, const char *reason) {
  return ccodecs_row_decoder_corrupt(&d->base, reason);
}

// MARK: Pixels

static uint8_t expand_5_bits(uint32_t value) {
  return (uint8_t)(((value & 31) * 255 + 15) / 31);
}

/// Converts a color of 2 to 4 bytes to red, green, blue and alpha. The attribute bit of 16-bit pixels, historically
/// the interrupt bit, means that the pixel is transparent.
static void put_color(const tga_decoder *d, uint8_t *out, const uint8_t *color, uint32_t byte_count) {
  if (byte_count == 2) {
    const uint32_t value = ccodecs_le16(color);
    out[0] = expand_5_bits(value >> 10);
    out[1] = expand_5_bits(value >> 5);
    out[2] = expand_5_bits(value);
    out[3] = d->attribute_bits > 0 && (value & 0x8000) != 0 ? 0 : 255;
    return;
  }
  out[0] = color[2];
  out[1] = color[1];
  out[2] = color[0];
  out[3] = byte_count == 4 && d->attribute_bits > 0 ? color[3] : 255;
}

static void put_row(row_decoder *base, uint8_t *out) {
  const tga_decoder *d = (const tga_decoder *)base;
  const uint8_t *p = d->base.stored;
  for (uint32_t x = 0; x < d->base.base.header.width; x++, p += d->pixel_bytes, out += d->base.channels) {
    uint8_t color[4];
    if (d->type == MAPPED) {
      memcpy(color, d->palette[p[0]], 4);
    } else if (d->type == TRUE_COLOR) {
      put_color(d, color, p, d->pixel_bytes);
    } else {
      memset(color, p[0], 3);
      color[3] = p[d->pixel_bytes - 1];
    }
    memcpy(out, color, d->base.channels);
  }
}

// MARK: Header

static bool is_sound(const tga_decoder *d, uint32_t map_type, uint32_t depth, uint32_t map_depth) {
  const bool is_color = depth == 15 || depth == 16 || depth == 24 || depth == 32;
  const bool map_is_sound = map_depth == 15 || map_depth == 16 || map_depth == 24 || map_depth == 32;
  return map_type <= 1 && (map_type == 0 || map_is_sound) &&
         ((d->type == MAPPED && depth == 8 && map_type == 1) || (d->type == TRUE_COLOR && is_color) ||
          (d->type == GRAY && (depth == 8 || depth == 16)));
}

/// Sets the fields that depend on whether the image has alpha.
static void settle_alpha(tga_decoder *d, bool has_alpha) {
  d->base.base.header.has_alpha = has_alpha;
  d->base.channels = has_alpha ? 4 : d->type == GRAY ? 1 : 3;
  ccodecs_row_decoder_measure(&d->base, (size_t)d->base.base.header.width * d->pixel_bytes);
}

static ccodecs_status describe(tga_decoder *d) {
  // The first corner, by bits 4 and 5 of the descriptor: bottom left, bottom right, top left, top right.
  static const uint8_t orientations[4] = {4, 3, 1, 2};
  const uint8_t *p = d->token;
  ccodecs_header *header = &d->base.base.header;
  d->type = p[2] & ~(uint32_t)RUN_LENGTH;
  d->is_run_length = (p[2] & RUN_LENGTH) != 0;
  const uint32_t depth = p[16];
  header->width = ccodecs_le16(p + 12);
  header->height = ccodecs_le16(p + 14);
  if (!is_sound(d, p[1], depth, p[7]) || header->width == 0 || header->height == 0) {
    return corrupt(d, "the header's fields contradict each other");
  }
  d->map_first = ccodecs_le16(p + 3);
  d->map_count = p[1] == 1 ? ccodecs_le16(p + 5) : 0;
  d->map_entry_bytes = (p[7] + 7u) / 8;
  d->attribute_bits = p[17] & 15;
  d->pixel_bytes = (depth + 7) / 8;
  header->orientation = orientations[p[17] >> 4 & 3];
  header->is_storage_order = header->orientation != 1;
  header->color_space = d->type == GRAY ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  const uint32_t color_bits = d->type == MAPPED ? p[7] : depth;
  const bool has_attributes = d->attribute_bits > 0 && (color_bits == 16 || color_bits == 32);
  settle_alpha(d, d->type == GRAY ? depth == 16 : has_attributes);
  d->is_uncertain = d->type == TRUE_COLOR && depth == 32 && d->attribute_bits == 0;
  d->skip_left = p[0];
  d->ahead_place = HEADER_BYTES + d->skip_left + (uint64_t)d->map_count * d->map_entry_bytes;
  for (int i = 0; i < 256; i++) {
    d->palette[i][3] = 255;
  }
  d->token_count = 0;
  d->has_header = true;
  return ccodecs_decoder_check_limits(&d->base.base);
}

/// Reads the color map entry by entry, as it may have far more entries than the 256 that pixels can refer to.
static ccodecs_status read_map(tga_decoder *d, ccodecs_input *input) {
  while (d->map_read < d->map_count) {
    if (!ccodecs_input_collect(input, d->token, &d->token_count, d->map_entry_bytes)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->token_count = 0;
    const uint32_t index = d->map_first + d->map_read++;
    if (index < 256) {
      put_color(d, d->palette[index], d->token, d->map_entry_bytes);
    }
  }
  return CCODECS_OK;
}

static ccodecs_status read_beginning(tga_decoder *d, ccodecs_input *input) {
  if (!d->has_header) {
    if (!ccodecs_input_collect(input, d->token, &d->token_count, HEADER_BYTES)) {
      return CCODECS_NEEDS_INPUT;
    }
    CCODECS_TRY(describe(d));
  }
  return ccodecs_input_skip(input, &d->skip_left) ? read_map(d, input) : CCODECS_NEEDS_INPUT;
}

// MARK: Alpha detection

/// Returns whether the last byte of any buffered pixel is nonzero.
static bool has_last_byte(const tga_decoder *d) {
  const uint8_t *p = ccodecs_bytes_start(&d->base.ahead);
  const uint8_t *end = p + d->base.ahead.count;
  uint64_t left = (uint64_t)d->base.base.header.width * d->base.base.header.height;
  while (left > 0) {
    const uint64_t there = (uint64_t)(end - p);
    uint64_t pixels = d->is_run_length ? (there > 0 ? (p[0] & 0x7Fu) + 1 : 0) : there / 4;
    pixels = pixels < left ? pixels : left;
    const uint64_t stored = d->is_run_length && there > 0 && (p[0] & 0x80) != 0 ? 1 : pixels;
    p += d->is_run_length && there > 0 ? 1 : 0;
    if (stored == 0 || (uint64_t)(end - p) / 4 < stored) {
      return false;
    }
    for (uint64_t i = 0; i < stored; i++, p += 4) {
      if (p[3] != 0) {
        return true;
      }
    }
    left -= pixels;
  }
  return false;
}

/// Returns whether the extension area at the end of a TGA 2.0 file specifies that the last bytes are not alpha.
static bool denies_alpha(const tga_decoder *d) {
  enum { FOOTER_BYTES = 26, TYPE_OFFSET = 494, USEFUL_ALPHA = 3 };
  const uint8_t *bytes = ccodecs_bytes_start(&d->base.ahead);
  const size_t count = d->base.ahead.count;
  if (count < FOOTER_BYTES || memcmp(bytes + count - 18, "TRUEVISION-XFILE.", 18) != 0) {
    return false;
  }
  const uint64_t extension = ccodecs_le32(bytes + count - FOOTER_BYTES);
  const uint64_t place = extension + TYPE_OFFSET - d->ahead_place; // wraps around, and is then too large
  return extension != 0 && place < count - FOOTER_BYTES && bytes[place] < USEFUL_ALPHA;
}

static ccodecs_status hold(tga_decoder *d, ccodecs_input *input) {
  const ccodecs_status status = ccodecs_row_decoder_look_ahead(&d->base, input);
  if (status != CCODECS_OK || !input->is_last) {
    return status == CCODECS_OK ? CCODECS_NEEDS_INPUT : status;
  }
  const bool has_alpha = has_last_byte(d) && !denies_alpha(d);
  d->attribute_bits = has_alpha ? 8 : 0;
  settle_alpha(d, has_alpha);
  return CCODECS_OK;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  tga_decoder *d = (tga_decoder *)base;
  const ccodecs_status status = read_beginning(d, input);
  return status == CCODECS_OK && d->is_uncertain ? hold(d, input)
                                                 : ccodecs_row_decoder_end_header(&d->base, input, status);
}

/// Returns the lower bound; a packet encodes at most 128 pixels.
static uint64_t min_bytes(const ccodecs_decoder *base) {
  const tga_decoder *d = (const tga_decoder *)base;
  const uint64_t pixels = (uint64_t)base->header.width * base->header.height;
  const uint64_t minimum =
      d->is_run_length ? pixels / 128 * (1 + d->pixel_bytes) : (uint64_t)d->base.stored_bytes * base->header.height;
  return minimum > d->base.ahead.count ? minimum - d->base.ahead.count : 0;
}

// MARK: Rows

/// Completes the row in `stored` from packets, which may extend into the next row.
static ccodecs_status read_packets(tga_decoder *d, ccodecs_input *input) {
  while (d->base.stored_count < d->base.stored_bytes) {
    if (d->run_left > 0 && !d->is_repeat) {
      const size_t pixels = (d->base.stored_bytes - d->base.stored_count + d->pixel_bytes - 1) / d->pixel_bytes;
      const size_t taken = pixels < d->run_left ? pixels : d->run_left;
      // A partial pixel, whose bytes follow the complete pixels in `stored`, counts as unread.
      const size_t begun = d->base.stored_count % d->pixel_bytes;
      const size_t end = d->base.stored_count - begun + taken * d->pixel_bytes;
      const size_t first = (d->base.stored_count - begun) / d->pixel_bytes;
      const bool is_whole = ccodecs_input_collect(input, d->base.stored, &d->base.stored_count, end);
      d->run_left -= (uint32_t)(d->base.stored_count / d->pixel_bytes - first);
      if (!is_whole) {
        return CCODECS_NEEDS_INPUT;
      }
    } else if (d->run_left > 0) {
      memcpy(d->base.stored + d->base.stored_count, d->packet + 1, d->pixel_bytes);
      d->base.stored_count += d->pixel_bytes;
      d->run_left--;
    } else {
      if (!ccodecs_input_collect(input, d->packet, &d->packet_count, 1)) {
        return CCODECS_NEEDS_INPUT;
      }
      d->is_repeat = (d->packet[0] & 0x80) != 0;
      if (d->is_repeat && !ccodecs_input_collect(input, d->packet, &d->packet_count, 1 + d->pixel_bytes)) {
        return CCODECS_NEEDS_INPUT;
      }
      d->packet_count = 0;
      d->run_left = (d->packet[0] & 0x7Fu) + 1;
    }
  }
  return CCODECS_OK;
}

static ccodecs_status read_row(row_decoder *base, ccodecs_input *input) {
  tga_decoder *d = (tga_decoder *)base;
  return d->is_run_length ? read_packets(d, input) : ccodecs_row_decoder_read_plain(base, input);
}

const row_format ccodecs_tga_decoder = {
    .methods = {ROW_DECODER_METHODS(tga_decoder)},
    .name = "TGA",
    .read_row = read_row,
    .put_row = put_row,
};

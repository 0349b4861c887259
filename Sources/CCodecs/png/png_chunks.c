// The contents of the chunks that precede the image data: the header, the palette, metadata and colors.

#include "png_decoder.h"

#include "../color/profile.h"

#include <string.h>

static ccodecs_status read_header_chunk(png_decoder *d) {
  const uint8_t *p = d->body;
  ccodecs_header *header = &d->base.header;
  header->width = ccodecs_be32(p);
  header->height = ccodecs_be32(p + 4);
  const uint8_t depth = p[8];
  const uint8_t type = p[9];
  const bool is_depth = depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
  const bool is_good = type == 0   ? is_depth
                       : type == 3 ? is_depth && depth <= 8
                                   : (type == 2 || type == 4 || type == 6) && (depth == 8 || depth == 16);
  if (header->width == 0 || header->height == 0 || header->width > INT32_MAX || header->height > INT32_MAX) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, "the PNG's size is %u x %u pixels", header->width, header->height);
  }
  if (!is_good || p[10] != 0 || p[11] != 0 || p[12] > 1) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT,
        "the PNG has color type %u, depth %u, compression %u, filters %u, interlacing %u, which is invalid", type,
        depth, p[10], p[11], p[12]);
  }
  d->expansion.color_type = type;
  d->expansion.bit_depth = depth;
  d->is_interlaced = p[12] == 1;
  static const uint8_t samples[7] = {1, 0, 3, 1, 2, 0, 4};
  d->stored_bits = (uint32_t)samples[type] * depth;
  d->has_header = true;
  return CCODECS_OK;
}

static ccodecs_status read_palette(png_decoder *d) {
  const bool is_palette = d->expansion.color_type == 3;
  const bool is_good = d->body_count % 3 == 0 && d->body_count > 0 && d->body_count <= PNG_PALETTE_BYTES;
  if (is_palette && (!is_good || d->has_palette)) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, "the PNG's palette has %u bytes or occurs twice", d->body_count);
  }
  d->has_palette = true;
  if (!is_palette) {
    return CCODECS_OK;
  }
  const uint32_t maximum = 1u << d->expansion.bit_depth;
  const uint32_t count = d->body_count / 3;
  d->expansion.palette_count = count < maximum ? count : maximum;
  for (uint32_t i = 0; i < d->expansion.palette_count; i++) {
    memcpy(d->expansion.palette[i], d->body + 3 * i, 3);
  }
  return CCODECS_OK;
}

/// Reads tRNS. Returns false if it is invalid for the image; it is then ignored.
static bool read_transparency(png_decoder *d) {
  png_expansion *e = &d->expansion;
  if (d->has_transparency) {
    return false;
  }
  if (e->color_type == 3) {
    if (!d->has_palette || d->body_count == 0 || d->body_count > e->palette_count) {
      return false;
    }
    for (uint32_t i = 0; i < d->body_count; i++) {
      e->palette[i][3] = d->body[i];
    }
    return true;
  }
  const uint32_t samples = e->color_type == 0 ? 1 : e->color_type == 2 ? 3 : 0;
  if (samples == 0 || d->body_count != 2 * samples) {
    return false;
  }
  // Of the bits, only those that samples have are used (section 11.3.2.1).
  const uint32_t mask = (1u << e->bit_depth) - 1;
  for (uint32_t i = 0; i < samples; i++) {
    e->key[i] = (uint16_t)(ccodecs_be16(d->body + 2 * i) & mask);
  }
  e->has_key = true;
  return true;
}

/// Stores a copyright text, converting tEXt's Latin-1 to UTF-8. Returns false if the budget is exhausted.
static bool keep_text(png_decoder *d, ccodecs_bytes *kept, const uint8_t *text, size_t count) {
  if (d->has_exif) {
    return true;
  }
  if (ccodecs_png_is_type(d, "iTXt")) {
    return ccodecs_decoder_keep_text(&d->base, kept, text, count);
  }
  uint8_t utf8[2 * CCODECS_MAX_COPYRIGHT_TEXT];
  size_t written = 0;
  for (size_t i = 0; i < count && i < CCODECS_MAX_COPYRIGHT_TEXT; i++) {
    if (text[i] >= 0x80) {
      utf8[written++] = (uint8_t)(0xC0 | text[i] >> 6);
      utf8[written++] = (uint8_t)(0x80 | (text[i] & 0x3F));
    } else {
      utf8[written++] = text[i];
    }
  }
  return ccodecs_decoder_keep_text(&d->base, kept, utf8, written);
}

/// How an iTXt chunk with XMP begins: its keyword, not compressed, in no language, without a translated keyword.
static const uint8_t xmp_prefix[22] = "XML:com.adobe.xmp\0\0\0\0";

/// Reads tEXt or uncompressed iTXt. tEXt contains a keyword, a zero and Latin-1 text. iTXt contains a keyword, a zero,
/// two zeros, a language, a zero, the translated keyword, a zero and UTF-8 text. Returns false if the budget is
/// exhausted.
static bool read_text(png_decoder *d) {
  if (ccodecs_png_is_type(d, "iTXt") && d->body_count > sizeof xmp_prefix &&
      memcmp(d->body, xmp_prefix, sizeof xmp_prefix) == 0) {
    return ccodecs_decoder_keep_block(
        &d->base, &d->base.xmp, d->body + sizeof xmp_prefix, d->body_count - sizeof xmp_prefix);
  }
  const uint8_t *end = d->body + d->body_count;
  const uint8_t *zero = memchr(d->body, 0, d->body_count);
  if (zero == NULL) {
    return true;
  }
  const size_t length = (size_t)(zero - d->body);
  ccodecs_bytes *kept = length == 9 && memcmp(d->body, "Copyright", 9) == 0 ? &d->base.copyright
                        : length == 6 && memcmp(d->body, "Author", 6) == 0  ? &d->base.artist
                                                                            : NULL;
  const uint8_t *text = zero + 1;
  if (ccodecs_png_is_type(d, "iTXt")) {
    const bool is_plain = end - text > 2 && text[0] == 0;
    const uint8_t *language = is_plain ? memchr(text + 2, 0, (size_t)(end - text) - 2) : NULL;
    const uint8_t *name = language == NULL ? NULL : memchr(language + 1, 0, (size_t)(end - language) - 1);
    kept = name == NULL ? NULL : kept;
    text = name == NULL ? end : name + 1;
  }
  return kept == NULL || keep_text(d, kept, text, (size_t)(end - text));
}

/// Reads acTL, eXIf, tEXt and iTXt. Returns false if the budget is exhausted.
static bool read_metadata(png_decoder *d) {
  ccodecs_header *header = &d->base.header;
  if (ccodecs_png_is_type(d, "acTL")) {
    const uint32_t count = d->body_count >= 4 ? ccodecs_be32(d->body) : 0;
    const bool is_valid = count > 0 && count <= INT32_MAX; // otherwise the image is a still one
    header->has_frames = is_valid && d->body_count >= 8;
    header->play_count = header->has_frames ? ccodecs_be32(d->body + 4) : 1;
    header->frame_count = is_valid ? count : header->frame_count;
    header->warnings |= !is_valid ? CCODECS_WARNING_DAMAGED : count > 1 ? CCODECS_WARNING_FIRST_FRAME : 0u;
  } else if (ccodecs_png_is_type(d, "eXIf")) {
    bool is_broken;
    const uint8_t orientation = ccodecs_exif_orientation(d->body, d->body_count, &is_broken);
    // Rows were returned. The caller may have found this chunk before, and set its orientation.
    const bool is_late = d->has_data && orientation != 1 && orientation != header->orientation;
    header->warnings |= is_late ? CCODECS_WARNING_LATE_EXIF : 0u;
    header->orientation = d->has_data ? header->orientation : orientation;
    header->warnings |= is_broken ? CCODECS_WARNING_BAD_EXIF : 0;
    const bool has_room = ccodecs_exif_keep_copyright(&d->base, d->body, d->body_count);
    d->has_exif = d->base.artist.count + d->base.copyright.count > 0;
    return has_room;
  }
  return !(ccodecs_png_is_type(d, "tEXt") || ccodecs_png_is_type(d, "iTXt")) || read_text(d);
}

/// Reads iCCP: a name of 1 to 79 bytes, a zero, the compression method and the profile. Returns CCODECS_OK or records
/// the failure.
static ccodecs_status read_profile(png_decoder *d) {
  const size_t maximum = d->body_count < 80 ? d->body_count : 80;
  const uint8_t *end = memchr(d->body, 0, maximum);
  const size_t prefix = end == NULL ? 0 : (size_t)(end - d->body) + 2;
  d->has_profile = true;
  if (prefix > 2 && prefix < d->body_count && end[1] == 0 &&
      !ccodecs_profile_inflate(d->body + prefix, d->body_count - prefix, &d->base.profile, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for the PNG's color profile");
  }
  d->base.header.warnings |= d->base.profile.count == 0 ? CCODECS_WARNING_BAD_PROFILE : 0u;
  return CCODECS_OK;
}

/// Reads cICP: primaries, transfer, matrix and whether samples have full range. Only RGB of full range is supported.
/// One that specifies nothing is ignored.
static void read_codes(png_decoder *d) {
  if (d->body_count == 4 && d->body[0] == CCODECS_CODE_UNSPECIFIED && d->body[1] == CCODECS_CODE_UNSPECIFIED) {
    return;
  }
  const bool is_rgb = d->body_count == 4 && d->body[2] == 0 && d->body[3] == 1;
  d->has_codes = true;
  d->codes = (ccodecs_color_codes){0}; // reserved, and so not supported
  if (is_rgb) {
    d->codes = (ccodecs_color_codes){.primaries = d->body[0], .transfer = d->body[1]};
  }
}

/// Reads cICP, cHRM, gAMA and sRGB. Values that define no color space are ignored.
static void read_color_space(png_decoder *d) {
  if (ccodecs_png_is_type(d, "cICP")) {
    read_codes(d);
  } else if (ccodecs_png_is_type(d, "cHRM") && d->body_count == 32) {
    d->has_primaries = true;
    for (int i = 0; i < 8; i++) {
      d->primaries[i] = ccodecs_be32(d->body + 4 * i);
      const bool is_valid = d->primaries[i] <= 100000 && (d->primaries[i] > 0 || i % 2 == 0);
      d->has_primaries = d->has_primaries && is_valid;
    }
  } else if (ccodecs_png_is_type(d, "gAMA") && d->body_count == 4) {
    const uint32_t gamma = ccodecs_be32(d->body);
    d->gamma = gamma >= 10000 && gamma <= 500000 ? gamma : 0;
  }
  d->has_srgb = d->has_srgb || ccodecs_png_is_type(d, "sRGB");
}

static const uint32_t srgb_primaries[8] = {31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000};

/// Returns whether cHRM is missing, or contains the sRGB primaries, as in nearly all files that have one.
static bool has_srgb_primaries(const png_decoder *d) {
  uint32_t largest = 0;
  for (int i = 0; i < 8; i++) {
    const uint32_t wanted = srgb_primaries[i];
    const uint32_t off = d->primaries[i] > wanted ? d->primaries[i] - wanted : wanted - d->primaries[i];
    largest = off > largest ? off : largest;
  }
  return !d->has_primaries || largest <= 200;
}

/// Returns whether gAMA is missing, or within 5 % of 1/2.2, which stands for sRGB. libpng, and with it browsers,
/// convert no colors in this range.
static bool has_srgb_gamma(const png_decoder *d) {
  return d->gamma == 0 || (d->gamma >= 43182 && d->gamma <= 47727);
}

ccodecs_status ccodecs_png_settle_color_space(png_decoder *d) {
  if (d->has_codes) {
    return ccodecs_decoder_use_color_codes(&d->base, d->codes);
  }
  const ccodecs_color_space space = d->base.header.color_space;
  const bool is_srgb = space == CCODECS_COLOR_GRAY || has_srgb_primaries(d);
  if (d->has_profile || d->has_srgb || (is_srgb && has_srgb_gamma(d))) {
    return CCODECS_OK;
  }
  const uint32_t *primaries = is_srgb ? srgb_primaries : d->primaries;
  return ccodecs_profile_from_primaries(primaries, d->gamma, space, &d->base.profile, d->base.budget)
             ? CCODECS_OK
             : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for the PNG's color space");
}

ccodecs_status ccodecs_png_read_chunk(png_decoder *d) {
  if (ccodecs_png_is_type(d, "IHDR")) {
    return read_header_chunk(d);
  }
  if (ccodecs_png_is_type(d, "PLTE")) {
    return read_palette(d);
  }
  if (ccodecs_png_is_type(d, "tRNS")) {
    const bool is_used = read_transparency(d);
    d->has_transparency = d->has_transparency || is_used;
    d->base.header.warnings |= is_used ? 0u : CCODECS_WARNING_DAMAGED;
    return CCODECS_OK;
  }
  if (ccodecs_png_is_type(d, "iCCP")) {
    return d->has_profile ? CCODECS_OK : read_profile(d);
  }
  if (ccodecs_png_is_type(d, "fcTL")) {
    return ccodecs_png_read_control(d);
  }
  read_color_space(d);
  return read_metadata(d) ? CCODECS_OK : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for metadata");
}

// The PNG chunk parser and the decoder's methods. See png_decoder.h for an overview of the decoder.
//
// Critical chunks and the supported ancillary chunks are read and their CRCs checked; all other chunks are skipped,
// whatever their size. A metadata chunk is buffered as a whole, while the bytes of IDAT go directly to inflate.
//
// The decoder accepts what libpng accepts: a palette or a key that the color type does not use, wrong CRCs of
// ancillary chunks (the chunk is ignored), data after the image data, and a wrong checksum in the compressed data. It
// rejects what libpng rejects: wrong CRCs of critical chunks, unknown critical chunks, nonconsecutive IDAT chunks,
// truncated data.

#include "png_decoder.h"

#include "../color/profile.h"
#include "../formats.h"

#include <string.h>

/// The maximum size in bytes of a metadata chunk; larger chunks are skipped.
static const uint32_t max_metadata = 65536;

enum { PALETTE_BYTES = 256 * 3 };

static bool is_type(const png_decoder *d, const char *type) {
  return memcmp(d->chunk_header + 4, type, 4) == 0;
}

static bool is_critical(const png_decoder *d) {
  return (d->chunk_header[4] & 0x20) == 0;
}

// MARK: Reading chunks

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
  const bool is_good = d->body_count % 3 == 0 && d->body_count > 0 && d->body_count <= PALETTE_BYTES;
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
  if (is_type(d, "iTXt")) {
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
  if (is_type(d, "iTXt") && d->body_count > sizeof xmp_prefix && memcmp(d->body, xmp_prefix, sizeof xmp_prefix) == 0) {
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
  if (is_type(d, "iTXt")) {
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
  if (is_type(d, "acTL")) {
    const uint32_t count = d->body_count >= 4 ? ccodecs_be32(d->body) : 0;
    const bool is_valid = count > 0 && count <= INT32_MAX; // otherwise the image is a still one
    header->has_frames = is_valid && d->body_count >= 8;
    header->play_count = header->has_frames ? ccodecs_be32(d->body + 4) : 1;
    header->frame_count = is_valid ? count : header->frame_count;
    header->warnings |= !is_valid ? CCODECS_WARNING_DAMAGED : count > 1 ? CCODECS_WARNING_FIRST_FRAME : 0u;
  } else if (is_type(d, "eXIf")) {
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
  return !(is_type(d, "tEXt") || is_type(d, "iTXt")) || read_text(d);
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
  if (is_type(d, "cICP")) {
    read_codes(d);
  } else if (is_type(d, "cHRM") && d->body_count == 32) {
    d->has_primaries = true;
    for (int i = 0; i < 8; i++) {
      d->primaries[i] = ccodecs_be32(d->body + 4 * i);
      const bool is_valid = d->primaries[i] <= 100000 && (d->primaries[i] > 0 || i % 2 == 0);
      d->has_primaries = d->has_primaries && is_valid;
    }
  } else if (is_type(d, "gAMA") && d->body_count == 4) {
    const uint32_t gamma = ccodecs_be32(d->body);
    d->gamma = gamma >= 10000 && gamma <= 500000 ? gamma : 0;
  }
  d->has_srgb = d->has_srgb || is_type(d, "sRGB");
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

/// Creates a profile from cICP, which takes precedence over all others, or from cHRM and gAMA if there is no iCCP or
/// sRGB.
static ccodecs_status settle_color_space(png_decoder *d) {
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

/// Reads a complete buffered chunk, whose CRC is correct or whose damage is tolerated.
static ccodecs_status read_chunk(png_decoder *d) {
  if (is_type(d, "IHDR")) {
    return read_header_chunk(d);
  }
  if (is_type(d, "PLTE")) {
    return read_palette(d);
  }
  if (is_type(d, "tRNS")) {
    const bool is_used = read_transparency(d);
    d->has_transparency = d->has_transparency || is_used;
    d->base.header.warnings |= is_used ? 0u : CCODECS_WARNING_DAMAGED;
    return CCODECS_OK;
  }
  if (is_type(d, "iCCP")) {
    return d->has_profile ? CCODECS_OK : read_profile(d);
  }
  if (is_type(d, "fcTL")) {
    return ccodecs_png_read_control(d);
  }
  read_color_space(d);
  return read_metadata(d) ? CCODECS_OK : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for metadata");
}

// MARK: Chunk parser

/// Returns whether a chunk's body is buffered and read. IDAT is processed separately.
static bool is_buffered(const png_decoder *d) {
  const bool is_color = is_type(d, "sRGB") || is_type(d, "gAMA") || is_type(d, "cHRM") || is_type(d, "cICP");
  const bool is_copyright = is_type(d, "eXIf") || is_type(d, "tEXt") || is_type(d, "iTXt");
  const bool is_metadata = is_color || is_copyright || is_type(d, "tRNS") || is_type(d, "acTL");
  const bool is_profile = is_type(d, "iCCP") && d->body_left <= CCODECS_MAX_PROFILE_BYTES;
  const bool is_small = is_metadata && d->body_left <= max_metadata;
  const bool is_control = is_type(d, "fcTL") && d->body_left <= PNG_CONTROL_BYTES && (d->is_animation || !d->has_data);
  return is_control || is_type(d, "IHDR") || is_type(d, "PLTE") ||
         ((is_small || is_profile) && (!d->has_data || is_copyright));
}

/// Checks the order and length of a chunk. Returns CCODECS_OK or records the failure.
static ccodecs_status check_chunk(png_decoder *d) {
  const bool is_first = is_type(d, "IHDR");
  const bool is_data = is_type(d, "IDAT");
  if (is_type(d, "CgBI")) {
    return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "the file is Apple's variant of PNG (CgBI)");
  }
  if (d->body_left > INT32_MAX) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a PNG chunk is too long");
  }
  d->base.header.has_credentials =
      d->base.header.has_credentials || (d->base.limits.keeps_metadata && is_type(d, "caBX"));
  if (is_first ? d->has_header || d->body_left != PNG_IHDR_BYTES : !d->has_header) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG does not begin with one IHDR chunk of 13 bytes");
  }
  if (is_data && d->is_past_data) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's IDAT chunks are not consecutive");
  }
  if (is_data && d->expansion.color_type == 3 && !d->has_palette) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG has no PLTE chunk before its first IDAT chunk");
  }
  if (is_type(d, "PLTE") && (d->has_data || d->body_left > PALETTE_BYTES)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a PLTE chunk is too long or comes after IDAT");
  }
  if (is_critical(d) && !is_first && !is_data && !is_type(d, "PLTE") && !is_type(d, "IEND")) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG has an unknown critical chunk");
  }
  if (is_type(d, "IEND") && !d->has_data) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG has no IDAT chunk");
  }
  return CCODECS_OK;
}

/// Processes the eight complete bytes of the signature or of a chunk's header.
static ccodecs_status begin_chunk(png_decoder *d) {
  d->header_count = 0;
  if (!d->has_signature) {
    d->has_signature = memcmp(d->chunk_header, ccodecs_png_signature, sizeof ccodecs_png_signature) == 0;
    return d->has_signature ? CCODECS_OK
                            : ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's signature is damaged");
  }
  d->body_left = ccodecs_be32(d->chunk_header);
  CCODECS_TRY(check_chunk(d));
  d->is_in_chunk = true;
  d->body_count = 0;
  d->trailer_count = 0;
  d->sequence_left = PNG_SEQUENCE_BYTES;
  d->crc = ccodecs_png_crc_begin(d->chunk_header);
  if (is_type(d, "IDAT")) {
    d->has_data = true;
  } else {
    d->is_past_data = d->has_data;
  }
  if (!is_buffered(d)) {
    return CCODECS_OK;
  }
  ccodecs_free(d->base.budget, d->body);
  d->body = ccodecs_allocate(d->base.budget, d->body_left);
  return d->body != NULL ? CCODECS_OK : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for a PNG chunk");
}

/// Processes a wrong CRC of a critical chunk. Returns CCODECS_OK if the chunk is used anyway. Before the first IDAT
/// chunk the options are unknown, so the decision is left to start.
static ccodecs_status take_wrong_crc(png_decoder *d) {
  static const char reason[] = "a critical PNG chunk has a wrong CRC";
  if (d->base.state == CCODECS_STATE_HEADER) {
    ccodecs_decoder_note_damaged_header(&d->base, reason);
    return CCODECS_OK;
  }
  const ccodecs_status status = ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "%s", reason);
  return ccodecs_decoder_tolerate_without_loss(&d->base, status) ? CCODECS_OK : status;
}

/// Processes the complete CRC of a chunk.
static ccodecs_status end_chunk(png_decoder *d) {
  const bool is_right = ccodecs_be32(d->trailer) == d->crc;
  const bool was_buffered = d->body != NULL;
  d->is_in_chunk = false;
  if (!is_right && is_critical(d)) {
    CCODECS_TRY(take_wrong_crc(d));
  }
  if (is_type(d, "IEND")) {
    d->has_end = true;
  }
  ccodecs_status status = CCODECS_OK;
  if (was_buffered && (is_right || is_critical(d))) {
    status = read_chunk(d);
  } else if (was_buffered) {
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
  }
  ccodecs_free(d->base.budget, d->body);
  d->body = NULL;
  return status;
}

/// Consumes bytes of a chunk's body. Returns CCODECS_ROWS_READY, CCODECS_OK, or the failure.
static ccodecs_status take_body(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  const size_t count = input->count < d->body_left ? input->count : d->body_left;
  ccodecs_status status = CCODECS_OK;
  size_t taken = count;
  const bool is_frame_data = d->is_animation && is_type(d, "fdAT");
  if (is_frame_data && d->sequence_left > 0) {
    taken = count < d->sequence_left ? count : d->sequence_left;
    d->sequence_left -= (uint32_t)taken;
  } else if ((is_type(d, "IDAT") && !d->skips_data) || (is_frame_data && d->is_in_frame)) {
    ccodecs_input data = {.bytes = input->bytes, .count = count, .is_last = false};
    status = ccodecs_png_rows_read(d, &data, rows);
    taken = count - data.count;
  } else if (d->body != NULL) {
    memcpy(d->body + d->body_count, input->bytes, count);
    d->body_count += (uint32_t)count;
  }
  if (is_critical(d) || d->body != NULL) {
    d->crc = ccodecs_png_crc_update(d->crc, input->bytes, taken);
  }
  d->body_left -= (uint32_t)taken;
  ccodecs_input_advance(input, taken);
  return status;
}

ccodecs_status ccodecs_png_feed(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  if (d->is_in_chunk && d->body_left > 0) {
    return take_body(d, input, rows);
  }
  uint8_t *to = d->is_in_chunk ? d->trailer : d->chunk_header;
  size_t *have = d->is_in_chunk ? &d->trailer_count : &d->header_count;
  const size_t wanted = d->is_in_chunk ? sizeof d->trailer : sizeof d->chunk_header;
  const size_t count = input->count < wanted - *have ? input->count : wanted - *have;
  memcpy(to + *have, input->bytes, count);
  *have += count;
  ccodecs_input_advance(input, count);
  if (*have < wanted) {
    return CCODECS_OK;
  }
  return d->is_in_chunk ? end_chunk(d) : begin_chunk(d);
}

// MARK: Methods

static ccodecs_status describe(png_decoder *d) {
  ccodecs_header *header = &d->base.header;
  png_expansion *e = &d->expansion;
  header->bit_depth = e->bit_depth;
  header->is_16bit = e->bit_depth == 16;
  header->has_alpha = e->color_type >= 4 || d->has_transparency || d->is_animation;
  header->is_progressive = d->is_interlaced;
  header->buffers_bitmap = d->is_interlaced || d->is_animation;
  header->color_space = e->color_type == 0 || e->color_type == 4 ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  e->channels = header->has_alpha ? 4 : header->color_space == CCODECS_COLOR_GRAY ? 1 : 3;
  if (__builtin_mul_overflow((size_t)header->width, e->channels * (header->is_16bit ? 2u : 1u), &d->given_bytes)) {
    return ccodecs_decoder_exceed(
        &d->base, "columns", (ccodecs_excess){"max_width", SIZE_MAX / e->channels / 2, header->width});
  }
  return CCODECS_OK;
}

static ccodecs_status select_frames(ccodecs_decoder *base, int64_t first, uint32_t count) {
  png_decoder *d = (png_decoder *)base;
  d->is_animation = base->header.has_frames && (first != 0 || count != 1 || base->header.has_default_image);
  const ccodecs_status status = ccodecs_png_select_frames(d, first);
  return status == CCODECS_OK ? describe(d) : status;
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  png_decoder *d = (png_decoder *)base;
  while (input->count > 0 && !d->has_data) {
    CCODECS_TRY(ccodecs_png_feed(d, input, NULL));
  }
  if (d->has_data) {
    base->header.has_default_image = base->header.has_frames && !d->has_control;
    const ccodecs_status status = describe(d);
    return status == CCODECS_OK ? settle_color_space(d) : status;
  }
  if (input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PNG data ends before its first IDAT chunk");
  }
  return CCODECS_NEEDS_INPUT;
}

/// Returns the lower bound, as deflate's maximum expansion is 1032. Interlaced images have additional filter bytes.
static uint64_t min_bytes(const ccodecs_decoder *base) {
  const uint64_t row = ((uint64_t)base->header.width * ((const png_decoder *)base)->stored_bits + 7) / 8 + 1;
  return row * base->header.height / 1032;
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  // A metadata chunk after the image data, and the texts stored from it.
  const uint64_t metadata = max_metadata + 4 * (CCODECS_MAX_COPYRIGHT_TEXT + 1) + 4 * 128;
  const png_decoder *d = (const png_decoder *)base;
  *byte_count = ccodecs_png_rows_estimate(d) + metadata + (d->is_animation ? ccodecs_png_frames_estimate(d) : 0);
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  png_decoder *d = (png_decoder *)base;
  const uint8_t channels = d->expansion.channels;
  ccodecs_decoder_describe_packed(base, channels, layout);
  const ccodecs_status status = ccodecs_png_rows_start(d);
  return status == CCODECS_OK && d->is_animation ? ccodecs_png_frames_start(d) : status;
}

/// Returns whether the file lacks only its IEND chunk or a part of it.
static bool lacks_end_only(const png_decoder *d) {
  return d->has_data && (!d->is_in_chunk || is_type(d, "IEND")) && ccodecs_png_rows_are_complete(d);
}

static ccodecs_status read_rest(png_decoder *d, ccodecs_input *input, ccodecs_rows *rows) {
  ccodecs_decoder *base = &d->base;
  if (d->may_have_rows) {
    ccodecs_input none = {.bytes = input->bytes};
    CCODECS_TRY(ccodecs_png_rows_read(d, &none, rows));
    d->may_have_rows = false;
  }
  while (!d->has_end) {
    if (input->count == 0 && !input->is_last) {
      return CCODECS_NEEDS_INPUT;
    }
    if (input->count == 0 && lacks_end_only(d)) {
      base->header.warnings |= CCODECS_WARNING_DAMAGED;
      d->has_end = true;
      break;
    }
    if (input->count == 0) {
      const ccodecs_status status = base->tolerates_truncation ? ccodecs_png_rows_give_last(d, rows) : CCODECS_OK;
      return status != CCODECS_OK
                 ? status
                 : ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PNG data ends before its IEND chunk");
    }
    const ccodecs_status status = ccodecs_png_feed(d, input, rows);
    if (status != CCODECS_OK) {
      d->may_have_rows = status == CCODECS_ROWS_READY;
      return status;
    }
  }
  if (!ccodecs_png_rows_are_complete(d)) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PNG data has too few rows");
  }
  return d->is_interlaced ? ccodecs_png_rows_emit_buffered(d, rows) : CCODECS_DONE;
}

static ccodecs_status fail_lost(png_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's compressed data is damaged");
}

/// Returns the rows before the damage, if it is tolerated and there are any; the next call then fails.
static ccodecs_status give_before_damage(png_decoder *d, ccodecs_rows *rows) {
  const bool is_whole = ccodecs_png_rows_are_complete(d);
  if (is_whole && ccodecs_decoder_tolerate_without_loss(&d->base, CCODECS_CORRUPT)) {
    d->has_end = true;
    return d->is_interlaced ? ccodecs_png_rows_emit_buffered(d, rows) : CCODECS_DONE;
  }
  d->is_lost = d->base.tolerates_damage && ccodecs_png_rows_give_last(d, rows) == CCODECS_ROWS_READY;
  d->base.failure = d->is_lost ? CCODECS_OK : CCODECS_CORRUPT;
  return d->is_lost ? CCODECS_ROWS_READY : CCODECS_CORRUPT;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  png_decoder *d = (png_decoder *)base;
  if (d->is_animation) {
    return ccodecs_png_frames_read(d, input, rows);
  }
  if (d->is_lost) {
    return fail_lost(d);
  }
  const ccodecs_status status = read_rest(d, input, rows);
  return status == CCODECS_CORRUPT ? give_before_damage(d, rows) : status;
}

static void destroy(ccodecs_decoder *base) {
  png_decoder *d = (png_decoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_png_rows_destroy(d);
  ccodecs_free(budget, d->body);
  ccodecs_free(budget, d->canvas);
  ccodecs_free(budget, d->strip);
}

static void init(ccodecs_decoder *decoder) {
  png_decoder *d = (png_decoder *)decoder;
  for (uint32_t i = 0; i < 256; i++) {
    d->expansion.palette[i][3] = 255;
  }
}

const ccodecs_decoder_methods ccodecs_png_decoder = {
    .byte_count = sizeof(png_decoder),
    .init = init,
    .read_header = read_header,
    .select_frames = select_frames,
    .estimate = estimate,
    .min_bytes = min_bytes,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};

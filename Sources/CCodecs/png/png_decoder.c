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

#include "../formats.h"

#include <string.h>

/// The maximum size in bytes of a metadata chunk; larger chunks are skipped.
static const uint32_t max_metadata = 65536;

static bool is_critical(const png_decoder *d) {
  return (d->chunk_header[4] & 0x20) == 0;
}

// MARK: Chunk parser

/// Returns whether a chunk's body is buffered and read. IDAT is processed separately.
static bool is_buffered(const png_decoder *d) {
  const bool is_color = ccodecs_png_is_type(d, "sRGB") || ccodecs_png_is_type(d, "gAMA") ||
                        ccodecs_png_is_type(d, "cHRM") || ccodecs_png_is_type(d, "cICP");
  const bool is_copyright =
      ccodecs_png_is_type(d, "eXIf") || ccodecs_png_is_type(d, "tEXt") || ccodecs_png_is_type(d, "iTXt");
  const bool is_metadata = is_color || is_copyright || ccodecs_png_is_type(d, "tRNS") || ccodecs_png_is_type(d, "acTL");
  const bool is_profile = ccodecs_png_is_type(d, "iCCP") && d->body_left <= CCODECS_MAX_PROFILE_BYTES;
  const bool is_small = is_metadata && d->body_left <= max_metadata;
  const bool is_control =
      ccodecs_png_is_type(d, "fcTL") && d->body_left <= PNG_CONTROL_BYTES && (d->is_animation || !d->has_data);
  return is_control || ccodecs_png_is_type(d, "IHDR") || ccodecs_png_is_type(d, "PLTE") ||
         ((is_small || is_profile) && (!d->has_data || is_copyright));
}

/// Checks the order and length of a chunk. Returns CCODECS_OK or records the failure.
static ccodecs_status check_chunk(png_decoder *d) {
  const bool is_first = ccodecs_png_is_type(d, "IHDR");
  const bool is_data = ccodecs_png_is_type(d, "IDAT");
  if (ccodecs_png_is_type(d, "CgBI")) {
    return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "the file is Apple's variant of PNG (CgBI)");
  }
  if (d->body_left > INT32_MAX) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a PNG chunk is too long");
  }
  d->base.header.has_credentials =
      d->base.header.has_credentials || (d->base.limits.keeps_metadata && ccodecs_png_is_type(d, "caBX"));
  if (is_first ? d->has_header || d->body_left != PNG_IHDR_BYTES : !d->has_header) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG does not begin with one IHDR chunk of 13 bytes");
  }
  if (is_data && d->is_past_data) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG's IDAT chunks are not consecutive");
  }
  if (is_data && d->expansion.color_type == 3 && !d->has_palette) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG has no PLTE chunk before its first IDAT chunk");
  }
  if (ccodecs_png_is_type(d, "PLTE") && (d->has_data || d->body_left > PNG_PALETTE_BYTES)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a PLTE chunk is too long or comes after IDAT");
  }
  if (is_critical(d) && !is_first && !is_data && !ccodecs_png_is_type(d, "PLTE") && !ccodecs_png_is_type(d, "IEND")) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the PNG has an unknown critical chunk");
  }
  if (ccodecs_png_is_type(d, "IEND") && !d->has_data) {
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
  if (ccodecs_png_is_type(d, "IDAT")) {
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
  if (ccodecs_png_is_type(d, "IEND")) {
    d->has_end = true;
  }
  ccodecs_status status = CCODECS_OK;
  if (was_buffered && (is_right || is_critical(d))) {
    status = ccodecs_png_read_chunk(d);
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
  const bool is_frame_data = d->is_animation && ccodecs_png_is_type(d, "fdAT");
  if (is_frame_data && d->sequence_left > 0) {
    taken = count < d->sequence_left ? count : d->sequence_left;
    d->sequence_left -= (uint32_t)taken;
  } else if ((ccodecs_png_is_type(d, "IDAT") && !d->skips_data) || (is_frame_data && d->is_in_frame)) {
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
    return status == CCODECS_OK ? ccodecs_png_settle_color_space(d) : status;
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
  return d->has_data && (!d->is_in_chunk || ccodecs_png_is_type(d, "IEND")) && ccodecs_png_rows_are_complete(d);
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

// The PNG rewriter, which keeps only the chunks that a decoder needs, IHDR, PLTE, tRNS, IDAT and IEND, and checks their
// CRCs. Of an animation of which all frames are selected, it also keeps acTL, fcTL and fdAT.
//
// It validates chunks like the decoder (png_decoder.c) and rejects the same files. It drops the ancillary chunks that
// the decoder ignores and those that only describe the image. The bytes of IDAT are copied as they arrive. Without
// inflating them, it can only check that they are not fewer than deflate's maximum compression allows; whether they
// contain all rows is checked by the decoder that the caller runs on the copy.

#include "../core/rewriter.h"
#include "../formats.h"
#include "png_chunk.h"

enum { MAX_BODY_BYTES = 256 * 3, MAX_CONTROL_BYTES = 4096 };

/// Deflate's maximum expansion ratio: 258 bytes from two bits, one for the length and one for the distance.
static const uint64_t max_expansion = 1032;

typedef enum png_step { STEP_SIGNATURE, STEP_HEADER, STEP_BODY, STEP_CRC, STEP_DONE } png_step;

/// How the rewriter processes a chunk.
typedef enum png_use {
  USE_DROP,  ///< Dropped without a check.
  USE_CHECK, ///< Dropped, but its CRC must be correct.
  USE_READ,  ///< Read as far as it fits in the buffer, and dropped.
  USE_HOLD,  ///< Buffered, and emitted once its CRC is verified.
  USE_KEEP,  ///< Buffered, and kept in `control` once its CRC is verified.
  USE_PASS,  ///< Emitted as it arrives.
} png_use;

typedef struct png_rewriter {
  ccodecs_rewriter base;
  png_step step;
  png_use use;
  uint8_t chunk[PNG_CHUNK_HEADER_BYTES + MAX_BODY_BYTES + PNG_CRC_BYTES]; ///< The chunk's header and buffered body.
  size_t buffered;                                                        ///< Number of bytes in `chunk`.
  uint8_t crc_bytes[PNG_CRC_BYTES];
  size_t crc_count;
  uint32_t body_left;
  uint32_t crc;
  bool has_header;
  bool has_palette;
  bool has_transparency;
  bool has_data;
  bool is_past_data;
  uint8_t bit_depth;
  uint8_t color_type;
  uint8_t orientation; ///< That of the image, which its caller applies.
  bool is_interlaced;
  uint32_t palette_count;
  uint64_t row_bytes; ///< Size of all stored rows, including filter bytes.
  uint64_t data_bytes;
  ccodecs_bytes control; ///< Chunks of an animation that precede IDAT, until it is known whether they are copied.
  bool is_bad_animation; ///< They are damaged, or too many.
  bool copies_frames;
} png_rewriter;

static ccodecs_status corrupt(png_rewriter *p, const char *reason) {
  return ccodecs_rewriter_fail(&p->base, CCODECS_CORRUPT, "%s", reason);
}

static bool is_type(const png_rewriter *p, const char *type) {
  return memcmp(p->chunk + 4, type, 4) == 0;
}

/// Reads IHDR, which the decoder has already validated.
static void read_header_chunk(png_rewriter *p) {
  static const uint8_t samples[8] = {1, 0, 3, 1, 2, 0, 4, 0};
  const uint8_t *body = p->chunk + PNG_CHUNK_HEADER_BYTES;
  p->bit_depth = body[8];
  p->color_type = body[9] & 7;
  p->is_interlaced = body[12] != 0;
  const uint64_t bits = (uint64_t)ccodecs_be32(body) * samples[p->color_type] * p->bit_depth;
  p->row_bytes = ((bits + 7) / 8 + 1) * ccodecs_be32(body + 4);
  p->has_header = true;
}

/// Returns whether tRNS is valid for the image.
static bool is_transparency_used(const png_rewriter *p, uint32_t count) {
  if (p->has_transparency || p->has_data) {
    return false;
  }
  return p->color_type == 3   ? p->has_palette && count >= 1 && count <= p->palette_count
         : p->color_type == 0 ? count == 2
                              : p->color_type == 2 && count == 6;
}

/// Returns how to process an ancillary chunk.
static png_use ancillary_use(const png_rewriter *p) {
  const bool is_control = is_type(p, "acTL") || is_type(p, "fcTL");
  if (is_control && p->copies_frames) {
    return p->body_left <= PNG_CONTROL_BYTES ? USE_HOLD : USE_CHECK;
  }
  if (is_control && !p->has_data && p->body_left <= PNG_CONTROL_BYTES) {
    return USE_KEEP;
  }
  if (is_type(p, "fdAT") && p->copies_frames) {
    return USE_PASS;
  }
  const bool is_held = is_type(p, "tRNS") && is_transparency_used(p, p->body_left);
  return is_held ? USE_HOLD : p->has_data && is_type(p, "eXIf") ? USE_READ : USE_DROP;
}

/// Validates a chunk's header and decides how to process the chunk. Returns CCODECS_OK or records the failure.
static ccodecs_status begin_chunk(png_rewriter *p) {
  const bool is_critical = (p->chunk[4] & 0x20) == 0;
  const bool is_first = is_type(p, "IHDR");
  const bool is_data = is_type(p, "IDAT");
  const bool is_palette = is_type(p, "PLTE");
  p->body_left = ccodecs_be32(p->chunk);
  p->crc = ccodecs_png_crc_begin(p->chunk);
  p->crc_count = 0;
  p->step = p->body_left > 0 ? STEP_BODY : STEP_CRC;
  if (p->body_left > INT32_MAX || (is_first ? p->has_header || p->body_left != PNG_IHDR_BYTES : !p->has_header)) {
    return corrupt(p, "a PNG chunk is too long, or IHDR is not the first");
  }
  if (is_data ? p->is_past_data : (is_palette && (p->has_data || p->body_left > MAX_BODY_BYTES))) {
    return corrupt(p, "the PNG's IDAT chunks are not consecutive, or PLTE is out of place");
  }
  if (is_critical && !is_first && !is_data && !is_palette && !is_type(p, "IEND")) {
    return corrupt(p, "the PNG has an unknown critical chunk");
  }
  p->is_past_data = p->has_data && !is_data;
  p->has_data = p->has_data || is_data;
  if (is_data) {
    p->data_bytes += p->body_left;
    p->use = USE_PASS;
  } else if (is_palette && p->color_type != 3) { // a suggested palette
    p->use = USE_CHECK;
  } else if (is_critical) {
    if (is_palette && (p->has_palette || p->body_left % 3 != 0 || p->body_left / 3 > 1u << p->bit_depth)) {
      return corrupt(p, "the PNG's palette has a wrong length or occurs twice");
    }
    p->palette_count = is_palette ? p->body_left / 3 : p->palette_count;
    p->has_palette = p->has_palette || is_palette;
    p->use = p->body_left <= MAX_BODY_BYTES ? USE_HOLD : USE_PASS; // IEND may have a body that nobody reads
  } else {
    p->use = ancillary_use(p);
  }
  return CCODECS_OK;
}

/// Reads an EXIF block that follows the image; one before it was read by the decoder.
static void read_exif(png_rewriter *p, size_t count) {
  bool is_broken;
  const uint8_t orientation = ccodecs_exif_orientation(p->chunk + PNG_CHUNK_HEADER_BYTES, count, &is_broken);
  p->base.warnings |= orientation != 1 && orientation != p->orientation ? CCODECS_WARNING_LATE_EXIF : 0u;
}

/// Keeps a chunk of an animation; `buffered` bytes precede its CRC.
static void keep_control(png_rewriter *p, size_t buffered, bool is_right) {
  const bool fits = p->control.count + buffered + PNG_CRC_BYTES <= MAX_CONTROL_BYTES;
  p->is_bad_animation = p->is_bad_animation || !is_right || !fits ||
                        !ccodecs_bytes_append(&p->control, p->chunk, buffered, p->base.budget) ||
                        !ccodecs_bytes_append(&p->control, p->crc_bytes, PNG_CRC_BYTES, p->base.budget);
}

/// Processes the complete CRC of a chunk.
static ccodecs_status end_chunk(png_rewriter *p, ccodecs_piece *piece) {
  const bool is_right = ccodecs_be32(p->crc_bytes) == p->crc;
  const bool is_end = is_type(p, "IEND");
  p->step = is_end ? STEP_DONE : STEP_HEADER;
  if (p->use == USE_KEEP) {
    keep_control(p, p->buffered, is_right);
    p->buffered = 0;
    return CCODECS_OK;
  }
  if (p->use != USE_DROP && !is_right) {
    if (p->use == USE_READ || is_type(p, "tRNS")) { // decoders ignore it
      p->base.warnings |= CCODECS_WARNING_DAMAGED;
      p->buffered = 0;
      return CCODECS_OK;
    }
    return corrupt(p, "a critical PNG chunk has a wrong CRC");
  }
  if (is_end && !p->has_data) {
    return corrupt(p, "the PNG has no IDAT chunk");
  }
  if (is_end && (p->data_bytes < 6 || p->row_bytes / max_expansion > p->data_bytes)) {
    return ccodecs_rewriter_fail(&p->base, CCODECS_TRUNCATED, "the PNG data has too few rows");
  }
  const size_t buffered = p->buffered;
  p->buffered = 0;
  if (p->use == USE_PASS) {
    return ccodecs_piece_give(p->crc_bytes, PNG_CRC_BYTES, piece);
  }
  if (p->use == USE_READ) {
    read_exif(p, buffered - PNG_CHUNK_HEADER_BYTES);
  }
  if (p->use != USE_HOLD) {
    return CCODECS_OK;
  }
  if (is_type(p, "IHDR")) {
    read_header_chunk(p);
  }
  p->has_transparency = p->has_transparency || is_type(p, "tRNS");
  memcpy(p->chunk + buffered, p->crc_bytes, PNG_CRC_BYTES);
  return ccodecs_piece_give(p->chunk, buffered + PNG_CRC_BYTES, piece);
}

/// Consumes bytes of a chunk's body.
static ccodecs_status take_body(png_rewriter *p, ccodecs_input *input, ccodecs_piece *piece) {
  const uint8_t *bytes = input->bytes;
  const size_t count = input->count < p->body_left ? input->count : p->body_left;
  ccodecs_input_advance(input, count);
  p->body_left -= (uint32_t)count;
  p->step = p->body_left == 0 ? STEP_CRC : STEP_BODY;
  if (p->use == USE_DROP) {
    return CCODECS_OK;
  }
  p->crc = ccodecs_png_crc_update(p->crc, bytes, count);
  if (p->use == USE_HOLD || p->use == USE_READ || p->use == USE_KEEP) {
    const size_t room = PNG_CHUNK_HEADER_BYTES + MAX_BODY_BYTES - p->buffered;
    const size_t kept = count < room ? count : room;
    memcpy(p->chunk + p->buffered, bytes, kept);
    p->buffered += kept;
  }
  return p->use == USE_PASS ? ccodecs_piece_give(bytes, count, piece) : CCODECS_OK;
}

static ccodecs_status step(ccodecs_rewriter *base, ccodecs_input *input, ccodecs_piece *piece) {
  png_rewriter *p = (png_rewriter *)base;
  if (p->step == STEP_DONE) {
    return CCODECS_DONE;
  }
  if (input->count == 0) {
    return CCODECS_NEEDS_INPUT;
  }
  if (p->step == STEP_BODY) {
    return take_body(p, input, piece);
  }
  if (p->step == STEP_CRC) {
    return ccodecs_input_collect(input, p->crc_bytes, &p->crc_count, PNG_CRC_BYTES) ? end_chunk(p, piece)
                                                                                    : CCODECS_NEEDS_INPUT;
  }
  if (!ccodecs_input_collect(input, p->chunk, &p->buffered, PNG_CHUNK_HEADER_BYTES)) {
    return CCODECS_NEEDS_INPUT;
  }
  if (p->step == STEP_SIGNATURE) { // already checked by format detection; start writes it
    p->buffered = 0;
    p->step = STEP_HEADER;
    return CCODECS_OK;
  }
  const ccodecs_status status = begin_chunk(p);
  if (status != CCODECS_OK || p->use == USE_HOLD || p->use == USE_READ || p->use == USE_KEEP) {
    return status;
  }
  p->buffered = 0;
  return p->use == USE_PASS ? ccodecs_piece_give(p->chunk, PNG_CHUNK_HEADER_BYTES, piece) : CCODECS_OK;
}

/// Returns IEND if the file lacks only that chunk or a part of it.
static bool end(ccodecs_rewriter *base, ccodecs_piece *piece) {
  static const uint8_t chunk[PNG_CHUNK_HEADER_BYTES + PNG_CRC_BYTES] = {0,   0,   0,    0,    'I',  'E',
                                                                        'N', 'D', 0xAE, 0x42, 0x60, 0x82};
  png_rewriter *p = (png_rewriter *)base;
  if (!p->has_data || p->step == STEP_DONE || (p->step != STEP_HEADER && !is_type(p, "IEND"))) {
    return false;
  }
  p->step = STEP_DONE;
  return ccodecs_piece_give(chunk, sizeof chunk, piece) == CCODECS_BYTES_READY;
}

static void survey(const ccodecs_rewriter *base, const ccodecs_decoder *decoder, ccodecs_survey *survey) {
  const png_rewriter *p = (const png_rewriter *)base;
  const bool is_bad = ccodecs_decoder_selects_all(decoder) && p->is_bad_animation;
  survey->can_copy = p->has_data && p->bit_depth <= 8 && !p->is_interlaced && !is_bad;
  survey->is_lossless = true;
  survey->quality = 1;
}

/// Writes the signature, IHDR, with which the head begins, the control of an animation, and metadata.
static ccodecs_status start(
    ccodecs_rewriter *base, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options, ccodecs_bytes *opening) {
  static const size_t first = PNG_CHUNK_HEADER_BYTES + PNG_IHDR_BYTES + PNG_CRC_BYTES;
  png_rewriter *p = (png_rewriter *)base;
  p->orientation = decoder->header.orientation;
  p->copies_frames = ccodecs_decoder_selects_all(decoder);
  const uint8_t *head = ccodecs_bytes_start(&base->head);
  const bool has_beginning =
      ccodecs_bytes_append(opening, ccodecs_png_signature, sizeof ccodecs_png_signature, base->budget) &&
      ccodecs_bytes_append(opening, head, first, base->budget) &&
      (!p->copies_frames ||
       ccodecs_bytes_append(opening, ccodecs_bytes_start(&p->control), p->control.count, base->budget));
  const bool has_room = has_beginning && ccodecs_png_append_metadata(&options->metadata, opening, base->budget);
  ccodecs_bytes_take(&base->head, first);
  return has_room ? CCODECS_OK : ccodecs_rewriter_fail_for_room(base);
}

static uint64_t start_bytes(const ccodecs_rewriter *base, const ccodecs_rewrite_options *options) {
  return ((const png_rewriter *)base)->control.count + ccodecs_png_metadata_estimate(&options->metadata);
}

static void destroy(ccodecs_rewriter *base) {
  ccodecs_bytes_free(&((png_rewriter *)base)->control, base->budget);
}

const ccodecs_rewriter_methods ccodecs_png_rewriter = {
    .byte_count = sizeof(png_rewriter),
    .step = step,
    .end = end,
    .survey = survey,
    .start = start,
    .start_bytes = start_bytes,
    .destroy = destroy};

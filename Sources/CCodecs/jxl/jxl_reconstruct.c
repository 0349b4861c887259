// Reconstruction of the JPEG that a JPEG XL was recompressed from: libjxl decodes the coefficients and codes them as
// the JPEG did.
//
// libjxl gets a file of our own making with the codestream, the box with the JPEG's other bytes, whose claims were
// checked, and boxes with EXIF and XMP of the size that the JPEG has. It needs all of it, and writes the JPEG into one
// block. Without its metadata, the JPEG is then rewritten as any other JPEG is.

#include "../core/decoder.h"
#include "../core/quiet.h"
#include "../core/rewriter.h"
#include "../formats.h"

#ifdef CCODECS_JXL

#include "jxl_frames.h"
#include "jxl_library.h"
#include "jxl_reconstruct.h"

#include <jxl/decode.h>
#include <stdio.h>

/// libjxl 0.7's memory, measured with noise at quality 100: for two pixels, and in addition for two samples. It holds
/// a whole scan as well, of which a sample takes up to 16 bits of a code, 11 of a value, and stuffed zeros.
static const uint64_t library_bytes_per_two_pixels = 29;
static const uint64_t library_bytes_per_two_samples = 3 + 2 * 6;
static const uint64_t library_bytes = (uint64_t)4 << 20;
/// Bytes that four samples take at most in a JPEG, and in what it was recompressed to.
static const uint64_t jpeg_bytes_per_four_samples = 7;
static const uint64_t codestream_bytes_per_four_samples = 6;

enum { BOX_HEAD = 8, SIGNATURE_BYTES = 32 };

/// A box with metadata of the JPEG.
typedef struct metadata_box {
  const char *type;
  uint32_t byte_count; ///< The size of the contents that the JPEG needs; 0 for none.
  ccodecs_bytes stored;
  bool is_compressed;
  bool is_found;
} metadata_box;

typedef struct jxl_reconstructor {
  ccodecs_transform base;
  ccodecs_budget *budget;
  ccodecs_limits limits;
  jxl_watch watch;
  bool is_whole;
  uint64_t library_charge;
  ccodecs_jxl_boxes boxes;
  uint32_t box_number;   ///< Of the box whose metadata is being stored.
  metadata_box *box;     ///< NULL if it is not stored.
  bool has_box;          ///< `box` is known.
  uint8_t inner_type[4]; ///< Of a compressed box, the first bytes of its contents.
  size_t inner_type_count;
  metadata_box exif;
  metadata_box xmp;
  ccodecs_bytes file;   ///< What libjxl gets.
  size_t file_capacity; ///< Without boxes with metadata.
  size_t codestream_at;
  uint8_t *jpeg;
  size_t jpeg_capacity;
  size_t jpeg_count;
  ccodecs_metadata metadata; ///< Of the result; in `metadata_block`.
  uint8_t *metadata_block;
  ccodecs_rewriter *rewriter; ///< Of the JPEG.
  ccodecs_input input;        ///< The bytes of the JPEG that it has not read.
  size_t given;               ///< Bytes of a whole JPEG that were returned.
} jxl_reconstructor;

static ccodecs_status fail(jxl_reconstructor *r, ccodecs_status status, const char *reason) {
  snprintf(
      r->base.message, sizeof r->base.message,
      status == CCODECS_NO_MEMORY     ? "no room for the coefficients of the JPEG"
      : status == CCODECS_INTERRUPTED ? "reconstruction was interrupted"
                                      : "the JPEG cannot be reconstructed, %s; always_encode encodes its pixels",
      reason);
  return status;
}

// MARK: Input

/// Appends the boxes that every JPEG XL in boxes begins with.
static bool append_signature(ccodecs_bytes *file, ccodecs_budget *budget) {
  static const uint8_t boxes[SIGNATURE_BYTES] = {
      0, 0, 0, 12, 'J', 'X', 'L', ' ', '\r', '\n', 0x87, '\n', //
      0, 0, 0, 20, 'f', 't', 'y', 'p', 'j',  'x',  'l',  ' ',  0, 0, 0, 0, 'j', 'x', 'l', ' ',
  };
  return ccodecs_bytes_append(file, boxes, sizeof boxes, budget);
}

static bool append_box_head(ccodecs_bytes *file, const char *type, size_t count, ccodecs_budget *budget) {
  uint8_t head[BOX_HEAD];
  ccodecs_put_be32(head, (uint32_t)(count + BOX_HEAD));
  memcpy(head + 4, type, 4);
  return ccodecs_bytes_append(file, head, sizeof head, budget);
}

/// Stores a part of a box with metadata. Further boxes of the same type, and larger ones, are ignored.
static bool store_metadata(jxl_reconstructor *r, const uint8_t *bytes, size_t count) {
  enum { MAX_OVERHEAD = 1024 }; // of compression
  ccodecs_input input = {.bytes = bytes, .count = count};
  if (r->box_number != r->boxes.number) {
    r->box_number = r->boxes.number;
    r->has_box = false;
    r->inner_type_count = 0;
  }
  if (!r->has_box) {
    const bool is_compressed = memcmp(r->boxes.type, "brob", 4) == 0;
    if (is_compressed && !ccodecs_input_collect(&input, r->inner_type, &r->inner_type_count, sizeof r->inner_type)) {
      return true;
    }
    const uint8_t *type = is_compressed ? r->inner_type : r->boxes.type;
    r->has_box = true;
    r->box = memcmp(type, r->exif.type, 4) == 0 ? &r->exif : memcmp(type, r->xmp.type, 4) == 0 ? &r->xmp : NULL;
    if (r->box != NULL && r->box->is_found) {
      r->box = NULL;
    }
    if (r->box != NULL) {
      r->box->is_found = true;
      r->box->is_compressed = is_compressed;
    }
    if (r->box != NULL && is_compressed &&
        !ccodecs_bytes_append(&r->box->stored, r->inner_type, sizeof r->inner_type, r->budget)) {
      return false;
    }
  }
  return r->box == NULL || r->box->stored.count + input.count > (uint64_t)r->box->byte_count + MAX_OVERHEAD ||
         ccodecs_bytes_append(&r->box->stored, input.bytes, input.count, r->budget);
}

static ccodecs_status push(ccodecs_transform *transform, const uint8_t *bytes, size_t count) {
  jxl_reconstructor *r = (jxl_reconstructor *)transform;
  ccodecs_input input = {.bytes = bytes, .count = count};
  const uint8_t *part;
  size_t part_count;
  while (ccodecs_jxl_boxes_next(&r->boxes, &input, &part, &part_count)) {
    if (!r->boxes.is_codestream) {
      if (!store_metadata(r, part, part_count)) {
        return fail(r, CCODECS_NO_MEMORY, "");
      }
    } else if (part_count > r->file_capacity - r->file.count) {
      return fail(r, CCODECS_UNSUPPORTED, "as it has more bytes than its coefficients can take");
    } else if (!ccodecs_bytes_append(&r->file, part, part_count, r->budget)) {
      return fail(r, CCODECS_NO_MEMORY, "");
    }
  }
  return CCODECS_OK;
}

// MARK: Metadata

/// Reads the contents of the compressed box in `file` into `bytes`, which has room for `count`. Returns their size;
/// SIZE_MAX if they are more, or damaged.
static size_t read_compressed(const ccodecs_bytes *file, const char *type, uint8_t *bytes, size_t count) {
  JxlDecoder *decoder = JxlDecoderCreate(NULL);
  bool has_buffer = false;
  JxlDecoderStatus status =
      decoder != NULL && JxlDecoderSubscribeEvents(decoder, JXL_DEC_BOX) == JXL_DEC_SUCCESS &&
              JxlDecoderSetDecompressBoxes(decoder, JXL_TRUE) == JXL_DEC_SUCCESS &&
              JxlDecoderSetInput(decoder, ccodecs_bytes_start(file), file->count) == JXL_DEC_SUCCESS
          ? JXL_DEC_BOX
          : JXL_DEC_ERROR;
  while (status == JXL_DEC_BOX) {
    status = JxlDecoderProcessInput(decoder);
    JxlBoxType found;
    if (status == JXL_DEC_BOX && JxlDecoderGetBoxType(decoder, found, JXL_TRUE) == JXL_DEC_SUCCESS &&
        memcmp(found, type, sizeof found) == 0) {
      has_buffer = JxlDecoderSetBoxBuffer(decoder, bytes, count) == JXL_DEC_SUCCESS;
    }
  }
  const bool is_read = has_buffer && status == JXL_DEC_NEED_MORE_INPUT;
  const size_t left = is_read ? JxlDecoderReleaseBoxBuffer(decoder) : 0;
  if (decoder != NULL) {
    JxlDecoderDestroy(decoder);
  }
  return is_read ? count - left : SIZE_MAX;
}

/// Decompresses the contents of a box into `bytes`. Returns false unless they are as many as the JPEG needs.
static bool decompress(const metadata_box *box, uint8_t *bytes, ccodecs_budget *budget) {
  const size_t stored = box->stored.count;
  const uint8_t *start = ccodecs_bytes_start(&box->stored);
  const uint64_t brotli_bytes = stored > 4 ? ccodecs_jxl_brotli_bytes(start[4]) : 0;
  if (stored <= 4 || !ccodecs_budget_charge(budget, brotli_bytes)) {
    return false;
  }
  ccodecs_bytes file = {0};
  const size_t room = (size_t)box->byte_count + 1;
  uint8_t *contents = ccodecs_allocate(budget, room);
  const bool is_read = contents != NULL && append_signature(&file, budget) &&
                       append_box_head(&file, "brob", stored, budget) &&
                       ccodecs_bytes_append(&file, start, stored, budget) &&
                       read_compressed(&file, box->type, contents, room) == box->byte_count;
  if (is_read) {
    memcpy(bytes, contents, box->byte_count);
  }
  ccodecs_free(budget, contents);
  ccodecs_bytes_free(&file, budget);
  ccodecs_budget_refund(budget, brotli_bytes);
  return is_read;
}

/// Appends a box with metadata. A JPEG without its metadata gets zeros, which are removed with the segment around them.
static bool append_metadata(jxl_reconstructor *r, metadata_box *box) {
  if (box->byte_count == 0) {
    return true;
  }
  if (!append_box_head(&r->file, box->type, box->byte_count, r->budget) ||
      !ccodecs_bytes_reserve(&r->file, box->byte_count, r->budget)) {
    return false;
  }
  uint8_t *bytes = ccodecs_bytes_start(&r->file) + r->file.count;
  r->file.count += box->byte_count;
  if (!r->is_whole) {
    memset(bytes, 0, box->byte_count);
    return true;
  }
  if (box->is_compressed) {
    return decompress(box, bytes, r->budget);
  }
  if (box->stored.count != box->byte_count) {
    return false;
  }
  memcpy(bytes, ccodecs_bytes_start(&box->stored), box->byte_count);
  return true;
}

// MARK: Reconstruction

static ccodecs_status decode(jxl_reconstructor *r, JxlDecoder *decoder) {
  static const int events = JXL_DEC_JPEG_RECONSTRUCTION | JXL_DEC_FULL_IMAGE;
  if (JxlDecoderSetParallelRunner(decoder, ccodecs_jxl_run, &r->watch) != JXL_DEC_SUCCESS ||
      JxlDecoderSubscribeEvents(decoder, events) != JXL_DEC_SUCCESS ||
      JxlDecoderSetInput(decoder, ccodecs_bytes_start(&r->file), r->file.count) != JXL_DEC_SUCCESS) {
    return fail(r, CCODECS_NO_MEMORY, "");
  }
  JxlDecoderStatus status = JxlDecoderProcessInput(decoder);
  if (status == JXL_DEC_JPEG_RECONSTRUCTION &&
      JxlDecoderSetJPEGBuffer(decoder, r->jpeg, r->jpeg_capacity) == JXL_DEC_SUCCESS) {
    status = JxlDecoderProcessInput(decoder);
  }
  if (r->watch.is_interrupted) {
    return fail(r, CCODECS_INTERRUPTED, "");
  }
  switch (status) {
  case JXL_DEC_FULL_IMAGE:
    r->jpeg_count = r->jpeg_capacity - JxlDecoderReleaseJPEGBuffer(decoder);
    return CCODECS_OK;
  case JXL_DEC_NEED_MORE_INPUT:
    snprintf(r->base.message, sizeof r->base.message, "the JPEG XL data ends before the image");
    return CCODECS_TRUNCATED;
  case JXL_DEC_JPEG_NEED_MORE_OUTPUT:
    return fail(r, CCODECS_UNSUPPORTED, "as it has more bytes than its coefficients can take");
  default:
    return fail(r, CCODECS_CORRUPT, "as its data do not match the image");
  }
}

static ccodecs_status reconstruct(jxl_reconstructor *r) {
  const size_t codestream_bytes = r->file.count - r->codestream_at;
  ccodecs_put_be32(
      ccodecs_bytes_start(&r->file) + r->codestream_at - BOX_HEAD, (uint32_t)(codestream_bytes + BOX_HEAD));
  if (!append_metadata(r, &r->exif) || !append_metadata(r, &r->xmp)) {
    return fail(r, CCODECS_CORRUPT, "as its metadata is missing");
  }
  if (r->library_charge > SIZE_MAX || !ccodecs_budget_charge(r->budget, (size_t)r->library_charge)) {
    return fail(r, CCODECS_NO_MEMORY, "");
  }
  JxlDecoder *decoder = JxlDecoderCreate(NULL);
  const ccodecs_status status = decoder == NULL ? fail(r, CCODECS_NO_MEMORY, "") : decode(r, decoder);
  if (decoder != NULL) {
    JxlDecoderDestroy(decoder);
  }
  ccodecs_budget_refund(r->budget, (size_t)r->library_charge);
  ccodecs_bytes_free(&r->file, r->budget);
  return status;
}

/// Reads the JPEG's header, and starts to rewrite it.
static ccodecs_status start_rewriter(jxl_reconstructor *r, ccodecs_decoder *decoder) {
  r->input = (ccodecs_input){.bytes = r->jpeg, .count = r->jpeg_count, .is_last = true};
  ccodecs_status status = ccodecs_decoder_read_header(decoder, &r->input);
  if (status == CCODECS_OK) {
    ccodecs_rewriter_note(r->rewriter, r->jpeg, r->jpeg_count - r->input.count);
    const ccodecs_rewrite_options options = {.orientation = 1, .metadata = r->metadata};
    ccodecs_survey survey;
    ccodecs_rewriter_survey(r->rewriter, decoder, &survey);
    status = survey.can_copy ? ccodecs_rewriter_start(r->rewriter, decoder, &options) : CCODECS_UNSUPPORTED;
  }
  return status;
}

/// Checks the structure of a whole JPEG, which is returned as it is.
static ccodecs_status check(jxl_reconstructor *r) {
  ccodecs_piece piece;
  ccodecs_status status;
  do {
    status = ccodecs_rewriter_read(r->rewriter, &r->input, &piece);
  } while (status == CCODECS_BYTES_READY);
  return status == CCODECS_DONE ? CCODECS_OK : status;
}

static ccodecs_status rewrite(jxl_reconstructor *r) {
  ccodecs_decoder *decoder = NULL;
  ccodecs_status status = ccodecs_decoder_create(CCODECS_FORMAT_JPEG, &r->limits, r->budget, &decoder);
  status =
      status == CCODECS_OK ? ccodecs_rewriter_create(CCODECS_FORMAT_JPEG, &r->limits, r->budget, &r->rewriter) : status;
  status = status == CCODECS_OK ? start_rewriter(r, decoder) : status;
  ccodecs_decoder_destroy(decoder);
  status = status == CCODECS_OK && r->is_whole ? check(r) : status;
  return status == CCODECS_OK          ? status
         : status == CCODECS_NO_MEMORY ? fail(r, status, "")
                                       : fail(r, CCODECS_CORRUPT, "as it is no usual one");
}

static ccodecs_status finish(ccodecs_transform *transform) {
  jxl_reconstructor *r = (jxl_reconstructor *)transform;
  ccodecs_quiet_begin();
  const ccodecs_status status = reconstruct(r);
  ccodecs_quiet_end();
  return status == CCODECS_OK ? rewrite(r) : status;
}

static ccodecs_status read(ccodecs_transform *transform, ccodecs_piece *piece) {
  enum { PIECE_BYTES = 64 << 10 };
  jxl_reconstructor *r = (jxl_reconstructor *)transform;
  if (r->is_whole) {
    const size_t left = r->jpeg_count - r->given;
    *piece = (ccodecs_piece){.bytes = r->jpeg + r->given, .count = left < PIECE_BYTES ? left : PIECE_BYTES};
    r->given += piece->count;
    return piece->count > 0 ? CCODECS_BYTES_READY : CCODECS_DONE;
  }
  const ccodecs_status status = ccodecs_rewriter_read(r->rewriter, &r->input, piece);
  return status == CCODECS_BYTES_READY || status == CCODECS_DONE ? status
                                                                 : fail(r, CCODECS_CORRUPT, "as it is no usual one");
}

static void destroy(ccodecs_transform *transform) {
  jxl_reconstructor *r = (jxl_reconstructor *)transform;
  ccodecs_budget *budget = r->budget;
  ccodecs_rewriter_destroy(r->rewriter);
  ccodecs_bytes_free(&r->exif.stored, budget);
  ccodecs_bytes_free(&r->xmp.stored, budget);
  ccodecs_bytes_free(&r->file, budget);
  ccodecs_free(budget, r->jpeg);
  ccodecs_free(budget, r->metadata_block);
}

// MARK: Creation

/// Copies what is to be embedded.
static bool copy_metadata(jxl_reconstructor *r, const ccodecs_metadata *metadata) {
  r->metadata = *metadata;
  r->metadata_block = ccodecs_allocate(r->budget, ccodecs_metadata_bytes(metadata));
  if (r->metadata_block == NULL) {
    return false;
  }
  uint8_t *next = r->metadata_block;
  const uint8_t **blocks[] = {&r->metadata.exif, &r->metadata.icc, &r->metadata.xmp, &r->metadata.iptc};
  const size_t counts[] = {metadata->exif_count, metadata->icc_count, metadata->xmp_count, metadata->iptc_count};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (counts[i] > 0) {
      memcpy(next, *blocks[i], counts[i]);
    }
    *blocks[i] = next;
    next += counts[i];
  }
  return true;
}

static uint64_t max_jpeg_bytes(const jxl_source *source) {
  return source->sample_count / 4 * jpeg_bytes_per_four_samples + source->jpeg.other_bytes + 65536;
}

static uint64_t max_codestream_bytes(const jxl_source *source) {
  return source->sample_count / 4 * codestream_bytes_per_four_samples + 65536;
}

static uint64_t library_charge(const jxl_source *source) {
  return library_bytes + (source->pixel_count + 1) / 2 * library_bytes_per_two_pixels +
         source->sample_count / 2 * library_bytes_per_two_samples + source->jpeg.library_bytes;
}

/// Writes what precedes the codestream.
static bool begin_file(jxl_reconstructor *r, const jxl_source *source) {
  const uint64_t capacity = SIGNATURE_BYTES + 2 * BOX_HEAD + source->box_bytes + max_codestream_bytes(source);
  const uint64_t metadata = 2 * BOX_HEAD + (uint64_t)r->exif.byte_count + r->xmp.byte_count;
  r->file_capacity = (size_t)capacity;
  return ccodecs_bytes_reserve(&r->file, (size_t)(capacity + metadata), r->budget) &&
         append_signature(&r->file, r->budget) && append_box_head(&r->file, "jbrd", source->box_bytes, r->budget) &&
         ccodecs_bytes_append(&r->file, source->box, source->box_bytes, r->budget) &&
         append_box_head(&r->file, "jxlc", 0, r->budget);
}

uint64_t ccodecs_jxl_reconstruct_estimate(const jxl_source *source, const ccodecs_rewrite_options *options) {
  const uint64_t metadata = (uint64_t)source->jpeg.exif_bytes + source->jpeg.xmp_bytes;
  const bool is_whole = options->reconstruction == CCODECS_RECONSTRUCTION_WHOLE;
  const uint64_t library = library_charge(source);
  const uint64_t decompression = is_whole ? source->decompression_bytes : 0;
  // The JPEG's decoder keeps its profile, and the rewriter reads its segments.
  const uint64_t rewriting = (uint64_t)512 << 10;
  return sizeof(jxl_reconstructor) + max_jpeg_bytes(source) + max_codestream_bytes(source) + source->box_bytes +
         8 * metadata + 16384 + 4 * ccodecs_metadata_bytes(&options->metadata) + 4 * source->jpeg.other_bytes +
         rewriting + (library > decompression ? library : decompression);
}

ccodecs_status ccodecs_jxl_reconstruct_create(
    const jxl_source *source, const ccodecs_rewrite_options *options, const ccodecs_limits *limits,
    ccodecs_interrupt *interrupt, ccodecs_budget *budget, ccodecs_transform **transform) {
  static const ccodecs_transform_methods methods = {.push = push, .finish = finish, .read = read, .destroy = destroy};
  jxl_reconstructor *r = ccodecs_allocate(budget, sizeof *r);
  if (r == NULL || max_jpeg_bytes(source) > UINT32_MAX) { // sizes of boxes have 32 bits
    ccodecs_free(budget, r);
    return CCODECS_NO_MEMORY;
  }
  memset(r, 0, sizeof *r);
  r->base.methods = &methods;
  r->budget = budget;
  r->limits = *limits;
  r->limits.keeps_metadata = false;
  r->watch.interrupt = interrupt;
  r->is_whole = options->reconstruction == CCODECS_RECONSTRUCTION_WHOLE;
  r->boxes.gives_metadata = r->is_whole;
  r->library_charge = library_charge(source);
  r->exif = (metadata_box){.type = "Exif", .byte_count = source->jpeg.exif_bytes};
  r->xmp = (metadata_box){.type = "xml ", .byte_count = source->jpeg.xmp_bytes};
  r->jpeg_capacity = (size_t)max_jpeg_bytes(source);
  *transform = &r->base;
  r->jpeg = ccodecs_allocate(budget, r->jpeg_capacity);
  if (r->jpeg == NULL || !copy_metadata(r, &options->metadata) || !begin_file(r, source)) {
    return CCODECS_NO_MEMORY;
  }
  r->codestream_at = r->file.count;
  return CCODECS_OK;
}

#endif

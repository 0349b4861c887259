// The rewriter of JPEG XL, which only turns one that was recompressed from a JPEG back into that JPEG: it passes the
// whole file to the reconstruction.

#include "../core/rewriter.h"
#include "../formats.h"

#ifdef CCODECS_JXL

#include "jxl_reconstruct.h"

typedef enum jpeg_presence {
  JPEG_UNKNOWN, ///< The box may follow.
  JPEG_ABSENT,
  JPEG_PRESENT,
} jpeg_presence;

/// The boxes at the beginning of a file that are complete in its header.
typedef struct first_boxes {
  size_t at; ///< Offset of the next box.
  jpeg_presence presence;
  size_t jpeg_at; ///< Of the contents of the box with the JPEG's other bytes.
  size_t jpeg_bytes;
  bool has_exif; ///< There is a box with EXIF data, or one with compressed data of that type.
  bool has_xmp;
  uint64_t decompression_bytes; ///< What decompressing one of the boxes allocates at most.
} first_boxes;

typedef struct jxl_rewriter {
  ccodecs_rewriter base;
  first_boxes boxes;
} jxl_rewriter;

/// Notes the complete box at `boxes->at`, of `size` bytes.
static void note_box(first_boxes *boxes, const uint8_t *bytes, size_t size) {
  enum { HEAD = 8 };
  const uint8_t *type = bytes + boxes->at + 4;
  const bool is_compressed = memcmp(type, "brob", 4) == 0 && size > HEAD + 4;
  const uint8_t *data_type = is_compressed ? type + 4 : type;
  const uint64_t decompression_bytes = is_compressed ? ccodecs_jxl_brotli_bytes(type[8]) : 0;
  if (decompression_bytes > boxes->decompression_bytes) {
    boxes->decompression_bytes = decompression_bytes;
  }
  boxes->has_exif = boxes->has_exif || memcmp(data_type, "Exif", 4) == 0;
  boxes->has_xmp = boxes->has_xmp || memcmp(data_type, "xml ", 4) == 0;
  if (memcmp(type, "jbrd", 4) == 0 && boxes->presence == JPEG_UNKNOWN) {
    boxes->presence = JPEG_PRESENT;
    boxes->jpeg_at = boxes->at + HEAD;
    boxes->jpeg_bytes = size - HEAD;
  }
  boxes->at += size;
}

/// Finds the boxes in the header as far as it has arrived. The one with the JPEG's bytes precedes a codestream in one
/// box; one in parts may begin before.
static first_boxes find_boxes(const ccodecs_rewriter *base) {
  const uint8_t *bytes = ccodecs_bytes_start(&base->head);
  const size_t count = base->head.count;
  first_boxes boxes = ((const jxl_rewriter *)base)->boxes;
  if (count > 0 && bytes[0] == 0xFF) {
    boxes.presence = JPEG_ABSENT; // a codestream without boxes
  }
  while (boxes.presence != JPEG_ABSENT && count - boxes.at >= 8) {
    const uint8_t *head = bytes + boxes.at;
    const uint32_t size = ccodecs_be32(head);
    if (boxes.presence == JPEG_UNKNOWN && (memcmp(head + 4, "jxlc", 4) == 0 || size < 8)) {
      boxes.presence = JPEG_ABSENT; // a box with a size of 64 bits is none that precedes a JPEG's
    }
    if (size < 8 || size > count - boxes.at) {
      break;
    }
    note_box(&boxes, bytes, size);
  }
  return boxes;
}

/// Returns whether a JPEG can be reconstructed from the file, and from what.
static bool find_source(const ccodecs_rewriter *base, const ccodecs_decoder *decoder, jxl_source *source) {
  const first_boxes boxes = find_boxes(base);
  source->box = ccodecs_bytes_start(&base->head) + boxes.jpeg_at;
  source->box_bytes = boxes.jpeg_bytes;
  source->decompression_bytes = boxes.decompression_bytes;
  return boxes.presence == JPEG_PRESENT &&
         ccodecs_jxl_decoder_has_coefficients(decoder, &source->pixel_count, &source->sample_count) &&
         ccodecs_jxl_jpeg_read(source->box, source->box_bytes, &source->jpeg) &&
         (base->limits.max_scans == 0 || source->jpeg.scan_count <= base->limits.max_scans);
}

// MARK: Methods

static ccodecs_status step(ccodecs_rewriter *base, ccodecs_input *input, ccodecs_piece *piece) {
  first_boxes *boxes = &((jxl_rewriter *)base)->boxes;
  if (!base->is_started) {
    *boxes = find_boxes(base);
  }
  if (boxes->presence == JPEG_ABSENT) {
    return ccodecs_rewriter_fail(base, CCODECS_UNSUPPORTED, "the JPEG XL was not recompressed from a JPEG");
  }
  if (input->count == 0) {
    return input->is_last ? CCODECS_DONE : CCODECS_NEEDS_INPUT;
  }
  *piece = (ccodecs_piece){.bytes = input->bytes, .count = input->count};
  ccodecs_input_advance(input, input->count);
  return CCODECS_BYTES_READY;
}

static void survey(const ccodecs_rewriter *base, const ccodecs_decoder *decoder, ccodecs_survey *survey) {
  const first_boxes boxes = find_boxes(base);
  jxl_source source;
  survey->can_reconstruct = find_source(base, decoder, &source);
  survey->can_reconstruct_whole = survey->can_reconstruct && (boxes.has_exif || source.jpeg.exif_bytes == 0) &&
                                  (boxes.has_xmp || source.jpeg.xmp_bytes == 0);
}

static uint64_t transform_bytes(
    const ccodecs_rewriter *base, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options) {
  jxl_source source;
  return find_source(base, decoder, &source) ? ccodecs_jxl_reconstruct_estimate(&source, options) : 0;
}

static ccodecs_status create_transform(
    ccodecs_rewriter *base, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options,
    ccodecs_transform **transform) {
  jxl_source source;
  return find_source(base, decoder, &source)
             ? ccodecs_jxl_reconstruct_create(
                   &source, options, &base->limits, &base->interrupt, base->budget, transform)
             : CCODECS_NO_MEMORY;
}

const ccodecs_rewriter_methods ccodecs_jxl_rewriter = {
    .byte_count = sizeof(jxl_rewriter),
    .has_long_head = true,
    .step = step,
    .survey = survey,
    .transform_bytes = transform_bytes,
    .create_transform = create_transform,
};

#endif

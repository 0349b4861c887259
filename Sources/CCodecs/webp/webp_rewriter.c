// WebP rewriting: reduces the RIFF chunks to those of the image (VP8 or VP8L, with ALPH), in a new container. Of an
// animation of which all frames are selected, it keeps the chunks ANIM and ANMF as they are.
//
// The decoder buffers the file at least from its start to its image's first bytes (webp_decoder.c). The new RIFF header
// comes first and contains the file size, which is known at that point. The rewriter takes over the buffered bytes and
// reads them first. Source: WebP Container Specification.

#include "../core/rewriter.h"
#include "../formats.h"
#include "webp_chunks.h"
#include "webp_quality.h"

/// Positions of the chunks in the file.
typedef struct webp_map {
  bool is_good;
  bool is_extended;
  bool is_lossless;
  uint8_t flags;
  uint32_t alpha_size; ///< 0 without alpha.
  size_t image;        ///< Offset after the chunk's header.
  uint32_t image_size;
  uint32_t frame_chunks; ///< Of an animation: number of its chunks to copy; otherwise 0.
  uint64_t frame_bytes;  ///< Their size, including headers.
} webp_map;

typedef enum webp_step { STEP_RIFF, STEP_HEADER, STEP_GIVE, STEP_PAD, STEP_SKIP, STEP_METADATA, STEP_DONE } webp_step;

typedef struct webp_rewriter {
  ccodecs_rewriter base;
  ccodecs_bytes buffered; ///< Taken over from the decoder.
  ccodecs_bytes after;    ///< The chunks of metadata behind the image.
  webp_map map;
  webp_step step;
  uint8_t header[RIFF_HEADER_BYTES];
  size_t header_count;
  uint64_t left; ///< Bytes left in the chunk's body.
  bool is_odd;
  bool is_image;
  bool has_alpha;        ///< The ALPH chunk was returned.
  uint32_t frame_chunks; ///< Of an animation: number of chunks that were returned.
} webp_rewriter;

// MARK: Survey

/// Finds the image. `is_good` is false for files that libwebp would reject or repair, and for incomplete input.
static webp_map find_image(const uint8_t *bytes, size_t count) {
  webp_map map = {0};
  if (count < RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES || !ccodecs_riff_is_type(bytes, "RIFF") ||
      !ccodecs_riff_is_type(bytes + 8, "WEBP")) {
    return map;
  }
  const uint64_t end = (uint64_t)ccodecs_le32(bytes + 4) + 8;
  size_t at = RIFF_HEADER_BYTES;
  while (count - at >= CHUNK_HEADER_BYTES) {
    const uint8_t *header = bytes + at;
    const uint32_t size = ccodecs_riff_body_bytes(header);
    const uint64_t padded = (uint64_t)size + (size & 1);
    at += CHUNK_HEADER_BYTES;
    const bool is_first = at == RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES;
    if (ccodecs_riff_is_type(header, "VP8 ") || ccodecs_riff_is_type(header, "VP8L")) {
      map.is_lossless = ccodecs_riff_is_type(header, "VP8L");
      map.image = at;
      map.image_size = size;
      const bool has_flag = (map.flags & FLAG_ALPHA) != 0;
      const bool is_alpha_clear = map.is_lossless ? map.alpha_size == 0 : has_flag == (map.alpha_size > 0);
      map.is_good = (is_first || map.is_extended) && size > 10 && (uint64_t)at + size <= end && is_alpha_clear &&
                    (map.flags & FLAG_ANIMATION) == 0;
      return map;
    }
    if (ccodecs_riff_is_type(header, "VP8X")) {
      map.is_extended = is_first && size == EXTENSION_BYTES && count > at;
      map.flags = map.is_extended ? bytes[at] : 0;
    } else if (ccodecs_riff_is_type(header, "ALPH")) {
      map.is_extended = map.is_extended && map.alpha_size == 0 && size > 0;
      map.alpha_size = size;
    }
    if (!map.is_extended || padded > count - at) {
      return map;
    }
    at += (size_t)padded;
  }
  return map;
}

static bool is_frame_chunk(const uint8_t *header) {
  return ccodecs_riff_is_type(header, "ANIM") || ccodecs_riff_is_type(header, "ANMF");
}

/// Finds the frames of a whole file with an animation. `is_good` is false if a chunk is incomplete, or unless exactly
/// one ANIM precedes the first ANMF.
static webp_map find_frames(const uint8_t *bytes, size_t count) {
  webp_map map = {.is_extended = true, .flags = bytes[RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES]};
  size_t at = RIFF_HEADER_BYTES;
  while (ccodecs_riff_has_chunk(count, at)) {
    const uint64_t size = ccodecs_riff_chunk_bytes(ccodecs_riff_body_bytes(bytes + at));
    if (size > count - at) {
      return map;
    }
    if (is_frame_chunk(bytes + at) && ccodecs_riff_is_type(bytes + at, "ANIM") != (map.frame_chunks == 0)) {
      return map;
    }
    map.frame_chunks += is_frame_chunk(bytes + at) ? 1 : 0;
    map.frame_bytes += is_frame_chunk(bytes + at) ? size : 0;
    at += (size_t)size;
  }
  map.is_good = map.frame_chunks > 1;
  return map;
}

/// Returns the maximum quality of the buffered frames: 100 for a lossless one; 0 if it is not known. Frames of a few
/// bytes do not count. Sets *is_lossless if all frames are.
static uint8_t frame_quality(const uint8_t *bytes, size_t count, bool *is_lossless) {
  enum { FRAME_BYTES = 16 };
  uint8_t quality = 1;
  uint32_t size;
  *is_lossless = true;
  const uint8_t *frame = ccodecs_riff_find(bytes, count, RIFF_HEADER_BYTES, "ANMF", &size);
  while (frame != NULL && size > FRAME_BYTES) {
    uint32_t image_size = 0;
    const uint8_t *image = ccodecs_riff_find(frame, size, FRAME_BYTES, "VP8 ", &image_size);
    const int32_t index = image == NULL ? 0 : ccodecs_vp8_quantizer(image, image_size);
    if (index < 0 && image_size >= CCODECS_VP8_HEADER_BYTES) {
      return 0;
    }
    const uint8_t found = image == NULL ? 100 : index < 0 ? 1 : ccodecs_webp_quality((uint32_t)index);
    *is_lossless = *is_lossless && image == NULL;
    quality = found > quality ? found : quality;
    frame = ccodecs_riff_find(bytes, count, (size_t)(frame - bytes) + size + (size & 1), "ANMF", &size);
  }
  return quality;
}

static const ccodecs_bytes *spooled_file(const ccodecs_decoder *decoder) {
  return decoder->methods->buffered == NULL ? NULL : decoder->methods->buffered((ccodecs_decoder *)(uintptr_t)decoder);
}

static void survey(const ccodecs_rewriter *base, const ccodecs_decoder *decoder, ccodecs_survey *survey) {
  (void)base;
  const ccodecs_bytes *file = spooled_file(decoder);
  if (file == NULL || file->count == 0) {
    return;
  }
  const uint8_t *bytes = ccodecs_bytes_start(file);
  if (ccodecs_decoder_selects_all(decoder)) {
    survey->quality = frame_quality(bytes, file->count, &survey->is_lossless);
    survey->may_copy_whole = decoder->header.can_buffer_input;
    survey->can_copy = !survey->may_copy_whole && survey->quality > 0 && find_frames(bytes, file->count).is_good;
    return;
  }
  const webp_map map = find_image(bytes, file->count);
  const size_t here = map.is_good ? file->count - map.image : 0;
  const int32_t index = map.is_good && !map.is_lossless
                            ? ccodecs_vp8_quantizer(bytes + map.image, here < map.image_size ? here : map.image_size)
                            : -1;
  survey->is_lossless = map.is_lossless;
  survey->can_copy = map.is_good && (map.is_lossless || index >= 0);
  survey->quality = !survey->can_copy ? 0 : map.is_lossless ? 100 : ccodecs_webp_quality((uint32_t)index);
}

// MARK: Start

static ccodecs_status start(
    ccodecs_rewriter *base, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options, ccodecs_bytes *opening) {
  webp_rewriter *w = (webp_rewriter *)base;
  ccodecs_bytes *file = decoder->methods->buffered(decoder);
  const bool is_animation = ccodecs_decoder_selects_all(decoder);
  const uint8_t *bytes = ccodecs_bytes_start(file);
  w->map = is_animation ? find_frames(bytes, file->count) : find_image(bytes, file->count);
  const ccodecs_metadata *metadata = &options->metadata;
  const uint8_t metadata_flags = ccodecs_webp_metadata_flags(metadata);
  const bool is_extended = is_animation || w->map.alpha_size > 0 || metadata_flags != 0;
  uint64_t size = 4 + (is_animation ? w->map.frame_bytes : ccodecs_riff_chunk_bytes(w->map.image_size));
  size += is_extended ? ccodecs_riff_chunk_bytes(EXTENSION_BYTES) : 0;
  size += w->map.alpha_size > 0 ? ccodecs_riff_chunk_bytes(w->map.alpha_size) : 0;
  size += ccodecs_riff_optional_bytes(metadata->icc_count) + ccodecs_riff_optional_bytes(metadata->exif_count) +
          ccodecs_riff_optional_bytes(metadata->xmp_count);
  if (size > UINT32_MAX - 1) {
    return ccodecs_rewriter_fail(base, CCODECS_LIMIT, "the WebP is larger than the format allows");
  }
  uint8_t begin[RIFF_HEADER_BYTES + CHUNK_HEADER_BYTES + EXTENSION_BYTES];
  const ccodecs_header *header = &decoder->header;
  const uint8_t kept =
      is_animation ? w->map.flags & (FLAG_ALPHA | FLAG_ANIMATION) : (uint8_t)(header->has_alpha ? FLAG_ALPHA : 0);
  const uint8_t flags = (uint8_t)(kept | metadata_flags);
  ccodecs_riff_put_header(begin, (uint32_t)size + CHUNK_HEADER_BYTES);
  ccodecs_webp_put_extension(begin + RIFF_HEADER_BYTES, flags, header->width, header->height);
  if (!ccodecs_bytes_append(opening, begin, is_extended ? sizeof begin : RIFF_HEADER_BYTES, base->budget) ||
      !ccodecs_riff_append_chunk(opening, "ICCP", metadata->icc, metadata->icc_count, base->budget) ||
      !ccodecs_riff_append_chunk(&w->after, "EXIF", metadata->exif, metadata->exif_count, base->budget) ||
      !ccodecs_riff_append_chunk(&w->after, "XMP ", metadata->xmp, metadata->xmp_count, base->budget)) {
    return ccodecs_rewriter_fail_for_room(base);
  }
  w->buffered = *file;
  *file = (ccodecs_bytes){0};
  return CCODECS_OK;
}

static uint64_t start_bytes(const ccodecs_rewriter *base, const ccodecs_rewrite_options *options) {
  (void)base;
  const uint64_t exif = ccodecs_riff_optional_bytes(options->metadata.exif_count);
  const uint64_t xmp = ccodecs_riff_optional_bytes(options->metadata.xmp_count);
  return exif + xmp + (xmp > 0 ? 2 * exif + 256 : 0); // the block grows
}

// MARK: Steps

/// Handles a complete chunk header.
static ccodecs_status begin_chunk(webp_rewriter *w, ccodecs_piece *piece) {
  const uint32_t size = ccodecs_riff_body_bytes(w->header);
  w->header_count = 0;
  w->left = size;
  w->is_odd = (size & 1) != 0;
  const bool is_frame = w->map.frame_chunks > 0 && is_frame_chunk(w->header);
  w->frame_chunks += is_frame ? 1 : 0;
  w->is_image = w->map.frame_chunks > 0 ? is_frame && w->frame_chunks == w->map.frame_chunks
                                        : ccodecs_riff_is_type(w->header, w->map.is_lossless ? "VP8L" : "VP8 ");
  const bool is_alpha =
      !w->map.is_lossless && ccodecs_riff_is_type(w->header, "ALPH") && !w->has_alpha && w->map.alpha_size > 0;
  if (!w->is_image && !is_alpha && !is_frame) {
    w->left += size & 1;
    w->step = STEP_SKIP;
    return CCODECS_OK;
  }
  w->has_alpha = w->has_alpha || is_alpha;
  w->step = STEP_GIVE;
  return ccodecs_piece_give(w->header, CHUNK_HEADER_BYTES, piece);
}

static ccodecs_status give_body(webp_rewriter *w, ccodecs_input *input, ccodecs_piece *piece) {
  const size_t count = input->count < w->left ? input->count : (size_t)w->left;
  *piece = (ccodecs_piece){.bytes = input->bytes, .count = count};
  ccodecs_input_advance(input, count);
  w->left -= count;
  w->step = w->left == 0 ? STEP_PAD : STEP_GIVE;
  return CCODECS_BYTES_READY;
}

/// Pads a body that was returned. The padding in the input's image chunk is not waited for, because nothing after it is
/// read.
static ccodecs_status pad(webp_rewriter *w, ccodecs_piece *piece) {
  static const uint8_t zero = 0;
  w->step = w->is_image ? STEP_METADATA : STEP_SKIP;
  w->left = w->is_odd;
  *piece = (ccodecs_piece){.bytes = &zero, .count = 1};
  return w->is_odd ? CCODECS_BYTES_READY : CCODECS_OK;
}

/// Runs one step over bytes: the buffered ones, or the window.
static ccodecs_status read_bytes(webp_rewriter *w, ccodecs_input *input, ccodecs_piece *piece) {
  if (input->count == 0) {
    return CCODECS_NEEDS_INPUT;
  }
  switch (w->step) {
  case STEP_RIFF:
    if (!ccodecs_input_collect(input, w->header, &w->header_count, RIFF_HEADER_BYTES)) {
      return CCODECS_NEEDS_INPUT;
    }
    w->header_count = 0;
    w->step = STEP_HEADER;
    return CCODECS_OK;
  case STEP_HEADER:
    return ccodecs_input_collect(input, w->header, &w->header_count, CHUNK_HEADER_BYTES) ? begin_chunk(w, piece)
                                                                                         : CCODECS_NEEDS_INPUT;
  case STEP_SKIP:
    w->step = ccodecs_input_skip(input, &w->left) ? STEP_HEADER : STEP_SKIP;
    return CCODECS_OK;
  case STEP_GIVE:
    return give_body(w, input, piece);
  case STEP_PAD: // these consume no bytes
  case STEP_METADATA:
  case STEP_DONE:
    break;
  }
  return CCODECS_OK;
}

static ccodecs_status step(ccodecs_rewriter *base, ccodecs_input *input, ccodecs_piece *piece) {
  webp_rewriter *w = (webp_rewriter *)base;
  if (w->step == STEP_PAD) {
    return pad(w, piece);
  }
  if (w->step == STEP_SKIP && w->left == 0) {
    w->step = STEP_HEADER;
  }
  if (w->step == STEP_METADATA) {
    w->step = STEP_DONE;
    *piece = (ccodecs_piece){.bytes = ccodecs_bytes_start(&w->after), .count = w->after.count};
    return w->after.count > 0 ? CCODECS_BYTES_READY : CCODECS_OK;
  }
  if (w->step == STEP_DONE) {
    return CCODECS_DONE;
  }
  if (!base->is_started) { // the decoder has these bytes
    ccodecs_input_advance(input, input->count);
    return CCODECS_NEEDS_INPUT;
  }
  if (w->buffered.count > 0) {
    ccodecs_input buffered = {.bytes = ccodecs_bytes_start(&w->buffered), .count = w->buffered.count, .is_last = false};
    const ccodecs_status status = read_bytes(w, &buffered, piece);
    // The block stays in place until the next step, because a piece may point into it.
    const size_t taken = w->buffered.count - buffered.count;
    w->buffered.first += taken;
    w->buffered.count -= taken;
    return status == CCODECS_NEEDS_INPUT ? CCODECS_OK : status;
  }
  ccodecs_bytes_free(&w->buffered, base->budget);
  return read_bytes(w, input, piece);
}

/// Completes an image whose last bytes are missing with zeros, which are also what libwebp reads behind the end.
static bool end(ccodecs_rewriter *base, ccodecs_piece *piece) {
  static const uint8_t zeros[4096]; // more zeros would be a large file made of a small one
  webp_rewriter *w = (webp_rewriter *)base;
  if (w->step != STEP_GIVE || !w->is_image || w->left > sizeof zeros) {
    return false;
  }
  *piece = (ccodecs_piece){.bytes = zeros, .count = (size_t)w->left};
  w->left = 0;
  w->step = STEP_PAD;
  return true;
}

static void destroy(ccodecs_rewriter *base) {
  webp_rewriter *w = (webp_rewriter *)base;
  ccodecs_bytes_free(&w->buffered, base->budget);
  ccodecs_bytes_free(&w->after, base->budget);
}

const ccodecs_rewriter_methods ccodecs_webp_rewriter = {
    .byte_count = sizeof(webp_rewriter),
    .step = step,
    .end = end,
    .survey = survey,
    .start = start,
    .start_bytes = start_bytes,
    .destroy = destroy};

// WebP encoding with libwebp, which produces no output before the whole image is encoded.

#include "webp_encoder.h"

#include "../formats.h"

#include <string.h>

static const size_t library_bytes = 1024 * 1024;
/// libwebp's default effort for a lossless file: how much work it spends on each step of its method.
static const float lossless_effort = 75;

static const size_t extension_bytes = CHUNK_HEADER_BYTES + EXTENSION_BYTES;

static int on_write(const uint8_t *bytes, size_t count, const WebPPicture *image) {
  webp_encoder *e = image->custom_ptr;
  return ccodecs_bytes_append(&e->base.output, bytes, count, e->base.budget);
}

/// Called with the progress in percent, for every row of macroblocks of a lossy image and between the steps of a
/// lossless one. Returns 0 to abort the encoding.
static int on_progress(int percent, const WebPPicture *image) {
  (void)percent;
  const webp_encoder *e = image->custom_ptr;
  const ccodecs_interrupt *interrupt = &e->base.interrupt;
  return interrupt->may_continue == NULL || interrupt->may_continue(interrupt->owner);
}

void ccodecs_webp_import(webp_encoder *e, const uint8_t *rows, size_t row_stride, uint32_t first, uint32_t row_count) {
  const uint32_t channels = ccodecs_encoder_channels(&e->base.options);
  for (uint32_t row = 0; row < row_count; row++) {
    const uint8_t *pixel = rows + row * row_stride;
    uint32_t *argb = e->image.argb + (size_t)(first + row) * (size_t)e->image.argb_stride;
    for (int x = 0; x < e->image.width; x++, pixel += channels) {
      const uint32_t alpha = channels == 4 ? pixel[3] : 255;
      argb[x] = alpha << 24 | (uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2];
    }
  }
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  webp_encoder *e = (webp_encoder *)base;
  if (base->options.has_frames) {
    ccodecs_canvases_write(&e->canvases, rows);
    return CCODECS_OK;
  }
  if (e->pair != NULL) {
    return ccodecs_webp_write_planes(e, rows->planes[0], rows->row_strides[0], rows->row_counts[0]);
  }
  ccodecs_webp_import(e, rows->planes[0], rows->row_strides[0], e->written, rows->row_counts[0]);
  e->written += rows->row_counts[0];
  return CCODECS_OK;
}

/// Adds metadata to the file in the output. Returns CCODECS_OK or CCODECS_NO_MEMORY.
static ccodecs_status add_metadata(webp_encoder *e) {
  ccodecs_bytes *output = &e->base.output;
  const ccodecs_encode_options *options = &e->base.options;
  if (!ccodecs_bytes_reserve(output, extension_bytes + e->before.count + e->after.count, e->base.budget)) {
    return CCODECS_NO_MEMORY;
  }
  uint8_t *file = ccodecs_bytes_start(output);
  uint8_t *extension = file + RIFF_HEADER_BYTES;
  const bool is_extended = ccodecs_riff_is_type(extension, "VP8X");
  const size_t first = RIFF_HEADER_BYTES + (is_extended ? extension_bytes : 0); // of the image
  const size_t start = RIFF_HEADER_BYTES + extension_bytes + e->before.count;
  // libwebp writes an opaque image without VP8X, whatever its pixels could be; VP8L states whether it has alpha.
  const bool has_alpha = ccodecs_riff_is_type(extension, "VP8L") && (extension[CHUNK_HEADER_BYTES + 4] & 0x10) != 0;
  memmove(file + start, file + first, output->count - first);
  output->count += start - first;
  if (!is_extended) {
    ccodecs_webp_put_extension(extension, has_alpha ? FLAG_ALPHA : 0, options->width, options->height);
  }
  extension[CHUNK_HEADER_BYTES] |= e->flags;
  if (e->before.count > 0) {
    memcpy(extension + extension_bytes, ccodecs_bytes_start(&e->before), e->before.count);
  }
  if (!ccodecs_bytes_append(output, ccodecs_bytes_start(&e->after), e->after.count, e->base.budget)) {
    return CCODECS_NO_MEMORY;
  }
  ccodecs_riff_put_header(file, (uint32_t)output->count);
  return CCODECS_OK;
}

ccodecs_status ccodecs_webp_compress(webp_encoder *e) {
  if (WebPEncode(&e->config, &e->image)) {
    WebPPictureFree(&e->image);
    return CCODECS_OK;
  }
  const WebPEncodingError error = e->image.error_code;
  if (error == VP8_ENC_ERROR_USER_ABORT) {
    return ccodecs_encoder_fail(&e->base, CCODECS_INTERRUPTED, "encoding was interrupted");
  }
  const bool is_memory = error == VP8_ENC_ERROR_OUT_OF_MEMORY || error == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY ||
                         error == VP8_ENC_ERROR_BAD_WRITE;
  return ccodecs_encoder_fail(
      &e->base, is_memory ? CCODECS_NO_MEMORY : CCODECS_UNSUPPORTED, "libwebp failed with error %d", (int)error);
}

static ccodecs_status begin_frame(ccodecs_encoder *base) {
  ((webp_encoder *)base)->canvases.written = 0;
  return CCODECS_OK;
}

static ccodecs_status end_frame(ccodecs_encoder *base) {
  webp_encoder *e = (webp_encoder *)base;
  // A still image is compressed at its end, as its metadata precedes what would be read meanwhile.
  return base->options.has_frames ? ccodecs_webp_end_frame(e) : CCODECS_OK;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  webp_encoder *e = (webp_encoder *)base;
  if (base->options.has_frames) {
    const ccodecs_status status = ccodecs_webp_finish_animation(e);
    ccodecs_canvases_destroy(&e->canvases, base->budget);
    CCODECS_TRY(status);
  } else {
    CCODECS_TRY(ccodecs_webp_compress(e));
  }
  ccodecs_budget_refund(base->budget, e->charged);
  e->charged = 0;
  return e->flags != 0 && base->stored_frames == 0 ? add_metadata(e) : CCODECS_OK;
}

static void destroy(ccodecs_encoder *base) {
  webp_encoder *e = (webp_encoder *)base;
  ccodecs_budget *budget = base->budget;
  WebPPictureFree(&e->image);
  ccodecs_budget_refund(budget, e->charged);
  ccodecs_bytes_free(&e->before, budget);
  ccodecs_bytes_free(&e->after, budget);
  ccodecs_canvases_destroy(&e->canvases, budget);
  ccodecs_free(budget, e->pair);
}

static uint64_t pixel_count(const ccodecs_encode_options *options) {
  return (uint64_t)options->width * options->height;
}

/// Returns libwebp 1.2.4's memory per pixel, measured with noise, which is the worst case: ARGB, unless rows are
/// converted to YUV when they are written, its conversion to YUV and alpha or its backward references, and, unless the
/// low-memory mode is on, its analysis of the image.
static uint64_t library_bytes_per_pixel(const ccodecs_encode_options *options) {
  const uint8_t method = options->webp.method;
  if (options->webp.is_lossless) {
    return method == 0 ? 30 : method == 5 ? 58 : 50;
  }
  if (options->pixels == CCODECS_PIXELS_RGBA8) { // alpha is a lossless image of its own
    return method < 3 ? 40 : method < 6 ? 47 : 60;
  }
  const uint64_t saved = ccodecs_webp_has_planes(options) ? sizeof(uint32_t) : 0;
  if (method < 3 || options->webp.saves_memory) {
    return 12 - saved;
  }
  return (options->quality <= 80 ? 23 : options->quality <= 95 ? 30 : 34) - saved;
}

static uint64_t library_charge(const ccodecs_encode_options *options) {
  return library_bytes + pixel_count(options) * library_bytes_per_pixel(options);
}

static uint64_t max_bytes(const ccodecs_encode_options *options) {
  return options->webp.is_lossless ? ccodecs_encoder_max_stored_bytes(options, ccodecs_encoder_channels(options))
                                   : ccodecs_encoder_max_lossy_bytes(options);
}

static uint64_t estimate(const ccodecs_encode_options *options) {
  // The whole compressed result is buffered, in a block that may grow by half when the last byte arrives.
  return sizeof(webp_encoder) + ccodecs_webp_pair_bytes(options) + library_charge(options) +
         max_bytes(options) * 5 / 2 + (options->has_frames ? ccodecs_webp_animation_estimate(options) : 0);
}

bool ccodecs_webp_options_are_valid(const ccodecs_webp_options *options) {
  return options->near_lossless <= 100 && options->method <= 6;
}

static void configure(webp_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const ccodecs_webp_options *webp = &options->webp;
  e->config.quality = webp->is_lossless ? lossless_effort : options->quality;
  e->config.method = webp->method;
  e->config.lossless = webp->is_lossless;
  e->config.near_lossless = webp->near_lossless;
  e->config.exact =
      webp->is_lossless && webp->near_lossless == 100; // otherwise the colors of transparent pixels would change
  e->config.low_memory = webp->saves_memory;
  e->config.use_sharp_yuv = webp->sharp_chroma;
  e->image.use_argb = !ccodecs_webp_has_planes(options);
  e->image.width = (int)options->width;
  e->image.height = (int)options->height;
  e->image.writer = on_write;
  e->image.progress_hook = on_progress;
  e->image.custom_ptr = e;
}

/// Allocates the rows that wait for their conversion, if any. Returns false if the budget is exhausted.
static bool prepare_planes(webp_encoder *e) {
  const size_t byte_count = ccodecs_webp_pair_bytes(&e->base.options);
  e->pair = byte_count > 0 ? ccodecs_allocate(e->base.budget, byte_count) : NULL;
  return e->pair != NULL || byte_count == 0;
}

/// Copies the metadata as chunks. Returns false if the budget is exhausted.
static bool take_metadata(webp_encoder *e) {
  const ccodecs_metadata *metadata = &e->base.options.metadata;
  e->flags = ccodecs_webp_metadata_flags(metadata);
  return ccodecs_riff_append_chunk(&e->before, "ICCP", metadata->icc, metadata->icc_count, e->base.budget) &&
         ccodecs_riff_append_chunk(&e->after, "EXIF", metadata->exif, metadata->exif_count, e->base.budget) &&
         ccodecs_riff_append_chunk(&e->after, "XMP ", metadata->xmp, metadata->xmp_count, e->base.budget);
}

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  webp_encoder *e = (webp_encoder *)encoder;
  const uint64_t charge = library_charge(options);
  if (take_metadata(e) && prepare_planes(e) && WebPPictureInit(&e->image) && WebPConfigInit(&e->config) &&
      charge <= SIZE_MAX && ccodecs_budget_charge(budget, (size_t)charge)) {
    e->charged = (size_t)charge;
    configure(e);
    if (options->has_frames) {
      ccodecs_encoder_begin_spool(&e->base);
    }
    return options->has_frames ? ccodecs_canvases_create(&e->canvases, &e->base) : WebPPictureAlloc(&e->image);
  }
  return false;
}

const ccodecs_encoder_methods ccodecs_webp_encoder = {
    .byte_count = sizeof(webp_encoder),
    .create = create,
    .estimate = estimate,
    .max_bytes = max_bytes,
    .begin_frame = begin_frame,
    .write = write,
    .end_frame = end_frame,
    .finish = finish,
    .destroy = destroy};

// AVIF encoding with libheif and its AV1 encoder, which produces no output before the whole image is encoded.

#include "../core/encoder.h"
#include "heif_format.h"

#ifdef CCODECS_HEIF

#include <libheif/heif.h>

/// Bytes that libheif and the AV1 encoder allocate per pixel: the input samples and their planes, and the encoder's
/// frames with their borders and search state. Measured: 23 at 4:2:0, 33 at 4:4:4.
static const size_t library_bytes_per_pixel = 48;
static const size_t library_bytes = (size_t)16 << 20;
/// The highest speed of the AV1 encoder; 0 is the lowest.
enum { MAX_SPEED = 9 };

typedef struct avif_encoder {
  ccodecs_encoder base;
  struct heif_context *context;
  struct heif_image *image;
  uint8_t *pixels;
  size_t row_stride;
  size_t charged;
  ccodecs_bytes exif;
  ccodecs_bytes xmp;
  uint32_t written;
} avif_encoder;

static struct heif_error on_write(struct heif_context *context, const void *bytes, size_t count, void *user) {
  (void)context;
  avif_encoder *e = user;
  static const struct heif_error good = {heif_error_Ok, heif_suberror_Unspecified, ""};
  static const struct heif_error bad = {heif_error_Memory_allocation_error, heif_suberror_Unspecified, "no room"};
  return ccodecs_bytes_append(&e->base.output, bytes, count, e->base.budget) ? good : bad;
}

static bool is_error(struct heif_error error) {
  return error.code != heif_error_Ok;
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  avif_encoder *e = (avif_encoder *)base;
  const size_t count = (size_t)base->options.width * ccodecs_encoder_channels(&base->options);
  for (uint32_t row = 0; row < rows->row_counts[0]; row++, e->written++) {
    memcpy(e->pixels + e->written * e->row_stride, rows->planes[0] + row * rows->row_strides[0], count);
  }
  return CCODECS_OK;
}

/// Returns the AV1 encoder with the options applied; NULL when it is not available.
static struct heif_encoder *make_encoder(avif_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const char *chroma = options->subsampling == CCODECS_SUBSAMPLING_444 ? "444" : "420";
  struct heif_encoder *encoder = NULL;
  if (is_error(heif_context_get_encoder_for_format(e->context, heif_compression_AV1, &encoder))) {
    return NULL;
  }
  // An AV1 encoder may ignore parameters that it does not support.
  heif_encoder_set_lossy_quality(encoder, options->quality);
  heif_encoder_set_parameter_string(encoder, "chroma", chroma);
  heif_encoder_set_parameter_integer(encoder, "speed", MAX_SPEED - options->avif.effort);
  heif_encoder_set_parameter_integer(encoder, "threads", 1);
  return encoder;
}

static void release(avif_encoder *e) {
  heif_image_release(e->image);
  if (e->context != NULL) {
    heif_context_free(e->context);
  }
  ccodecs_budget_refund(e->base.budget, e->charged);
  e->image = NULL;
  e->context = NULL;
  e->charged = 0;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  avif_encoder *e = (avif_encoder *)base;
  struct heif_encoder *encoder = make_encoder(e);
  if (encoder == NULL) {
    return ccodecs_encoder_fail(base, CCODECS_UNSUPPORTED, "libheif was installed without an AV1 encoder");
  }
  struct heif_image_handle *image = NULL;
  struct heif_error error = heif_context_encode_image(e->context, e->image, encoder, NULL, &image);
  heif_encoder_release(encoder);
  if (!is_error(error) && e->exif.count > 0) {
    error = heif_context_add_exif_metadata(e->context, image, ccodecs_bytes_start(&e->exif), (int)e->exif.count);
  }
  if (!is_error(error) && e->xmp.count > 0) {
    error = heif_context_add_XMP_metadata(e->context, image, ccodecs_bytes_start(&e->xmp), (int)e->xmp.count);
  }
  heif_image_handle_release(image);
  struct heif_writer writer = {.writer_api_version = 1, .write = on_write};
  if (!is_error(error)) {
    error = heif_context_write(e->context, &writer, e);
  }
  if (is_error(error)) {
    const bool is_memory = error.code == heif_error_Memory_allocation_error;
    return ccodecs_encoder_fail(
        base, is_memory ? CCODECS_NO_MEMORY : CCODECS_UNSUPPORTED, "libheif failed: %s", error.message);
  }
  release(e);
  return CCODECS_OK;
}

static void destroy(ccodecs_encoder *base) {
  avif_encoder *e = (avif_encoder *)base;
  ccodecs_budget *budget = base->budget;
  release(e);
  ccodecs_bytes_free(&e->exif, budget);
  ccodecs_bytes_free(&e->xmp, budget);
  ccodecs_bytes_free(&base->output, budget);
  ccodecs_free(budget, e);
}

static uint64_t library_charge(const ccodecs_encode_options *options) {
  // libheif copies a profile to the image and to the file.
  return library_bytes + 2 * options->metadata.icc_count +
         (uint64_t)options->width * options->height * library_bytes_per_pixel;
}

uint64_t ccodecs_avif_encoder_estimate(const ccodecs_encode_options *options) {
  // The whole compressed result is buffered, at most about two bytes per pixel, in boxes of some kilobytes.
  return sizeof(avif_encoder) + library_charge(options) + (uint64_t)options->width * options->height * 2 + 16384;
}

static bool begin(avif_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const bool has_alpha = options->pixels == CCODECS_PIXELS_RGBA8;
  const int width = (int)options->width;
  const int height = (int)options->height;
  e->context = heif_context_alloc();
  if (e->context == NULL ||
      is_error(heif_image_create(
          width, height, heif_colorspace_RGB, has_alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB,
          &e->image)) ||
      is_error(heif_image_add_plane(e->image, heif_channel_interleaved, width, height, 8))) {
    return false;
  }
  int stride = 0;
  e->pixels = heif_image_get_plane(e->image, heif_channel_interleaved, &stride);
  e->row_stride = (size_t)stride;
  const ccodecs_metadata *metadata = &options->metadata;
  return e->pixels != NULL &&
         (metadata->icc_count == 0 ||
          !is_error(heif_image_set_raw_color_profile(e->image, "prof", metadata->icc, metadata->icc_count)));
}

ccodecs_encoder *ccodecs_avif_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget) {
  static const ccodecs_encoder_methods methods = {.write = write, .finish = finish, .destroy = destroy};
  avif_encoder *e = ccodecs_allocate(budget, sizeof *e);
  if (e == NULL) {
    return NULL;
  }
  memset(e, 0, sizeof *e);
  ccodecs_encoder_init(&e->base, &methods, options, budget);
  const uint64_t charge = library_charge(options);
  if (charge <= SIZE_MAX && ccodecs_budget_charge(budget, (size_t)charge)) {
    e->charged = (size_t)charge;
    if (ccodecs_bytes_append(&e->exif, options->metadata.exif, options->metadata.exif_count, budget) &&
        ccodecs_bytes_append(&e->xmp, options->metadata.xmp, options->metadata.xmp_count, budget) && begin(e)) {
      return &e->base;
    }
  }
  destroy(&e->base);
  return NULL;
}

#endif

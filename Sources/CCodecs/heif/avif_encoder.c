// AVIF encoding with libheif and its AV1 encoder, which produces no output before the whole image is encoded.

#include "../core/encoder.h"
#include "../formats.h"
#include "heif_av1_encoder.h"

#ifdef CCODECS_HEIF

#include <libheif/heif.h>

/// Bytes that libheif and the AV1 encoder allocate per pixel: the input samples and their planes, and the encoder's
/// frames with their borders and search state. Measured: 23 at 4:2:0, 33 at 4:4:4.
static const size_t library_bytes_per_pixel = 48;
static const size_t library_bytes = (size_t)16 << 20;
/// The same for samples of 10 bits.
static const size_t deep_library_bytes_per_pixel = 96;
enum {
  BORDER = 88,   ///< Columns and rows around a frame that the AV1 encoder keeps in addition, as measured.
  MAX_SPEED = 9, ///< The highest speed of the AV1 encoder; 0 is the lowest.
  DEPTH = 10,    ///< Bits per sample of files of samples of 16 bits.
};

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

/// Rounds samples of 16 bits to 10, with the low byte first.
static void narrow(const uint16_t *samples, uint8_t *destination, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint32_t sample = (samples[i] * 1023u + 32767) / 65535;
    destination[2 * i] = (uint8_t)sample;
    destination[2 * i + 1] = (uint8_t)(sample >> 8);
  }
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  avif_encoder *e = (avif_encoder *)base;
  const size_t count = (size_t)base->options.width * ccodecs_encoder_channels(&base->options);
  for (uint32_t row = 0; row < rows->row_counts[0]; row++, e->written++) {
    const uint8_t *source = rows->planes[0] + row * rows->row_strides[0];
    uint8_t *destination = e->pixels + e->written * e->row_stride;
    if (ccodecs_encoder_is_deep(&base->options)) {
      narrow((const uint16_t *)(const void *)source, destination, count);
    } else {
      memcpy(destination, source, count);
    }
  }
  return CCODECS_OK;
}

/// Returns the AV1 encoder with the options applied; NULL when it is not available.
static struct heif_encoder *make_encoder(avif_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const char *chroma = options->subsampling == CCODECS_SUBSAMPLING_444 ? "444" : "420";
  struct heif_encoder *encoder = NULL;
  if (ccodecs_encoder_is_deep(options)) {
    encoder = heif_av1_encoder_create(e->context);
  } else {
    heif_context_get_encoder_for_format(e->context, heif_compression_AV1, &encoder);
  }
  if (encoder == NULL) {
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

/// Returns the colors of an image with code points, and how they become YCbCr; NULL for other images, or without
/// memory.
static struct heif_color_profile_nclx *make_colors(const avif_encoder *e) {
  enum { BT709 = 1, BT2020 = 9 };
  const ccodecs_color_codes codes = e->base.options.metadata.color_codes;
  struct heif_color_profile_nclx *colors = codes.transfer == 0 ? NULL : heif_nclx_color_profile_alloc();
  if (colors != NULL) {
    heif_nclx_color_profile_set_color_primaries(colors, codes.primaries);
    heif_nclx_color_profile_set_transfer_characteristics(colors, codes.transfer);
    heif_nclx_color_profile_set_matrix_coefficients(colors, codes.primaries == BT2020 ? BT2020 : BT709);
    colors->full_range_flag = 1;
  }
  return colors;
}

/// Encodes the image. Returns libheif's handle in *image.
static struct heif_error encode(avif_encoder *e, struct heif_encoder *encoder, struct heif_image_handle **image) {
  struct heif_color_profile_nclx *colors = make_colors(e);
  struct heif_encoding_options *options = colors == NULL ? NULL : heif_encoding_options_alloc();
  if (options != NULL) {
    heif_image_set_nclx_color_profile(e->image, colors); // a copy, for the bitstream
    options->output_nclx_profile = colors;
  }
  const struct heif_error error = heif_context_encode_image(e->context, e->image, encoder, options, image);
  if (options != NULL) {
    heif_encoding_options_free(options);
  }
  heif_nclx_color_profile_free(colors);
  return error;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  avif_encoder *e = (avif_encoder *)base;
  struct heif_encoder *encoder = make_encoder(e);
  if (encoder == NULL) {
    return ccodecs_encoder_fail(base, CCODECS_UNSUPPORTED, "there is no AV1 encoder");
  }
  struct heif_image_handle *image = NULL;
  struct heif_error error = encode(e, encoder, &image);
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
}

static uint64_t library_charge(const ccodecs_encode_options *options) {
  // libheif copies a profile to the image and to the file.
  return library_bytes + 2 * options->metadata.icc_count +
         ((uint64_t)options->width + BORDER) * ((uint64_t)options->height + BORDER) *
             (ccodecs_encoder_is_deep(options) ? deep_library_bytes_per_pixel : library_bytes_per_pixel);
}

static uint64_t estimate(const ccodecs_encode_options *options) {
  // The whole compressed result is buffered, in boxes of some kilobytes.
  return sizeof(avif_encoder) + library_charge(options) + ccodecs_encoder_max_lossy_bytes(options) + 16384;
}

static bool begin(avif_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const bool has_alpha = ccodecs_encoder_channels(options) == 4;
  const bool is_deep = ccodecs_encoder_is_deep(options);
  const enum heif_chroma chroma =
      is_deep     ? has_alpha ? heif_chroma_interleaved_RRGGBBAA_LE : heif_chroma_interleaved_RRGGBB_LE
      : has_alpha ? heif_chroma_interleaved_RGBA
                  : heif_chroma_interleaved_RGB;
  const int width = (int)options->width;
  const int height = (int)options->height;
  e->context = heif_context_alloc();
  if (e->context == NULL || is_error(heif_image_create(width, height, heif_colorspace_RGB, chroma, &e->image)) ||
      is_error(heif_image_add_plane(e->image, heif_channel_interleaved, width, height, is_deep ? DEPTH : 8))) {
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

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  avif_encoder *e = (avif_encoder *)encoder;
  const uint64_t charge = library_charge(options);
  if (charge > SIZE_MAX || !ccodecs_budget_charge(budget, (size_t)charge)) {
    return false;
  }
  e->charged = (size_t)charge;
  return ccodecs_bytes_append(&e->exif, options->metadata.exif, options->metadata.exif_count, budget) &&
         ccodecs_bytes_append(&e->xmp, options->metadata.xmp, options->metadata.xmp_count, budget) && begin(e);
}

const ccodecs_encoder_methods ccodecs_avif_encoder = {
    .byte_count = sizeof(avif_encoder),
    .create = create,
    .estimate = estimate,
    .max_bytes = ccodecs_encoder_max_lossy_bytes,
    .write = write,
    .finish = finish,
    .destroy = destroy};

#endif

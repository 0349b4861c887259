// JPEG XL encoding with libjxl, which produces no output before the whole image is encoded.

#include "../core/encoder.h"
#include "../formats.h"

#ifdef CCODECS_JXL

#include "jxl_library.h"

static const size_t library_bytes = (size_t)4 << 20;
/// The distance in units of a just noticeable difference that a quality of 100 stands for; 0 would be lossless.
static const float min_distance = 0.1f;

typedef struct jxl_encoder {
  ccodecs_encoder base;
  jxl_library library;
  JxlEncoderFrameSettings *frame; ///< Owned by `library`.
  uint8_t *pixels;                ///< The whole image, freed once libjxl has copied it.
  size_t row_bytes;
  uint32_t written;
} jxl_encoder;

static size_t pixel_bytes(const jxl_encoder *e) {
  return e->row_bytes * e->base.options.height;
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  jxl_encoder *e = (jxl_encoder *)base;
  for (uint32_t row = 0; row < rows->row_counts[0]; row++, e->written++) {
    memcpy(e->pixels + e->written * e->row_bytes, rows->planes[0] + row * rows->row_strides[0], e->row_bytes);
  }
  return CCODECS_OK;
}

static ccodecs_status fail(jxl_encoder *e, ccodecs_status status) {
  if (status == CCODECS_INTERRUPTED) {
    return ccodecs_encoder_fail(&e->base, status, "encoding was interrupted");
  }
  return ccodecs_encoder_fail(
      &e->base, status, "libjxl failed with error %d", (int)JxlEncoderGetError(e->library.encoder));
}

/// Passes the image to libjxl, which copies it.
static ccodecs_status end_frame(ccodecs_encoder *base) {
  jxl_encoder *e = (jxl_encoder *)base;
  const JxlPixelFormat format = {
      .num_channels = ccodecs_encoder_channels(&base->options),
      .data_type = ccodecs_encoder_is_deep(&base->options) ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
      .endianness = JXL_NATIVE_ENDIAN};
  if (JxlEncoderAddImageFrame(e->frame, &format, e->pixels, pixel_bytes(e)) != JXL_ENC_SUCCESS) {
    return fail(e, ccodecs_jxl_library_failure(&e->library));
  }
  ccodecs_free(base->budget, e->pixels);
  e->pixels = NULL;
  return CCODECS_OK;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  jxl_encoder *e = (jxl_encoder *)base;
  const ccodecs_status status = ccodecs_jxl_library_finish(&e->library, &base->output, base->budget);
  if (status != CCODECS_OK) {
    return fail(e, status);
  }
  ccodecs_jxl_library_destroy(&e->library, base->budget);
  return CCODECS_OK;
}

static void destroy(ccodecs_encoder *base) {
  jxl_encoder *e = (jxl_encoder *)base;
  ccodecs_budget *budget = base->budget;
  ccodecs_jxl_library_destroy(&e->library, budget);
  ccodecs_free(budget, e->pixels);
}

/// Columns and rows that libjxl allocates in addition, as measured: it aligns the rows of its planes to 128 bytes, and
/// pads images to blocks. So an image of a single column costs as much as one of 15.
enum { PADDING_COLUMNS = 16, PADDING_ROWS = 4 };

/// Returns libjxl 0.7's memory per pixel, measured with noise, which is the worst case.
static uint64_t library_bytes_per_pixel(const ccodecs_encode_options *options) {
  const bool has_alpha = ccodecs_encoder_channels(options) == 4;
  if (options->jxl.is_lossless) {
    return has_alpha ? 120 : 108;
  }
  // It decodes and compares the image there, to adapt the quality of each block.
  enum { COMPARING_EFFORT = 8 };
  if (options->jxl.effort >= COMPARING_EFFORT) {
    return has_alpha ? 320 : 305;
  }
  return has_alpha ? 88 : 76;
}

static uint64_t pixel_count(const ccodecs_encode_options *options) {
  return (uint64_t)options->width * options->height;
}

static uint64_t library_charge(const ccodecs_encode_options *options) {
  // libjxl copies metadata.
  return library_bytes + 2 * (options->metadata.icc_count + options->metadata.xmp_count) +
         ((uint64_t)options->width + PADDING_COLUMNS) * ((uint64_t)options->height + PADDING_ROWS) *
             library_bytes_per_pixel(options);
}

static uint64_t max_bytes(const ccodecs_encode_options *options) {
  return options->jxl.is_lossless ? ccodecs_encoder_max_stored_bytes(options, ccodecs_encoder_pixel_bytes(options))
                                  : ccodecs_encoder_max_lossy_bytes(options);
}

static uint64_t estimate(const ccodecs_encode_options *options) {
  // The whole compressed result is buffered, in a block that may grow by half when the last byte arrives.
  return sizeof(jxl_encoder) + library_charge(options) + pixel_count(options) * ccodecs_encoder_pixel_bytes(options) +
         max_bytes(options) * 5 / 2;
}

/// Returns the distance for a quality of 1 to 100, as libjxl's own tools compute it: similar to libjpeg's quality.
static float distance(uint8_t quality) {
  const float q = quality;
  const float distance = q >= 30 ? 0.1f + (100 - q) * 0.09f : 53.0f / 3000 * q * q - 23.0f / 20 * q + 25;
  return distance < min_distance ? min_distance : distance;
}

/// Sets a color space from its code points, of which libjxl has all but one. P3 has two, which differ in their white.
/// Gray has no primaries, and keeps its white.
static void set_color_codes(JxlColorEncoding *colors, ccodecs_color_codes codes) {
  enum { P3_D65 = 12 };
  colors->transfer_function = (JxlTransferFunction)codes.transfer;
  if (colors->color_space == JXL_COLOR_SPACE_GRAY) {
    return;
  }
  const bool is_display_p3 = codes.primaries == P3_D65;
  colors->primaries = is_display_p3 ? JXL_PRIMARIES_P3 : (JxlPrimaries)codes.primaries;
  colors->white_point = codes.primaries == JXL_PRIMARIES_P3 ? JXL_WHITE_POINT_DCI : JXL_WHITE_POINT_D65;
}

/// Returns the luminance of the largest sample in cd/m²: PQ defines it, HLG is usually displayed at this one.
static float intensity_target(ccodecs_color_codes codes) {
  return codes.transfer == JXL_TRANSFER_FUNCTION_PQ ? 10000 : 1000;
}

/// Describes the image. Returns false without memory; a color profile that libjxl refuses is recorded as the failure.
static bool describe(jxl_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  const bool has_alpha = ccodecs_encoder_channels(options) == 4;
  const bool is_gray = ccodecs_encoder_channels(options) == 1;
  const uint32_t depth = ccodecs_encoder_is_deep(options) ? 16 : 8;
  JxlBasicInfo info;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = options->width;
  info.ysize = options->height;
  info.bits_per_sample = depth;
  info.num_color_channels = is_gray ? 1 : 3;
  info.num_extra_channels = has_alpha ? 1 : 0;
  info.alpha_bits = has_alpha ? depth : 0;
  info.uses_original_profile = options->jxl.is_lossless;
  const ccodecs_color_codes codes = options->metadata.color_codes;
  info.intensity_target = codes.transfer == 0 ? info.intensity_target : intensity_target(codes);
  if (JxlEncoderSetBasicInfo(e->library.encoder, &info) != JXL_ENC_SUCCESS) {
    return false;
  }
  const ccodecs_metadata *metadata = &options->metadata;
  if (metadata->icc_count > 0) {
    if (JxlEncoderSetICCProfile(e->library.encoder, metadata->icc, metadata->icc_count) != JXL_ENC_SUCCESS) {
      ccodecs_encoder_fail(&e->base, CCODECS_UNSUPPORTED, "libjxl does not accept the color profile of the image");
    }
    return true;
  }
  JxlColorEncoding colors;
  JxlColorEncodingSetToSRGB(&colors, is_gray);
  if (codes.transfer != 0) {
    set_color_codes(&colors, codes);
  }
  return JxlEncoderSetColorEncoding(e->library.encoder, &colors) == JXL_ENC_SUCCESS;
}

static bool configure(jxl_encoder *e) {
  const ccodecs_encode_options *options = &e->base.options;
  e->frame = JxlEncoderFrameSettingsCreate(e->library.encoder, NULL);
  return e->frame != NULL &&
         JxlEncoderFrameSettingsSetOption(e->frame, JXL_ENC_FRAME_SETTING_EFFORT, options->jxl.effort) ==
             JXL_ENC_SUCCESS &&
         (options->jxl.is_lossless
              ? JxlEncoderSetFrameLossless(e->frame, JXL_TRUE)
              : JxlEncoderSetFrameDistance(e->frame, distance(options->quality))) == JXL_ENC_SUCCESS;
}

static bool add_box(jxl_encoder *e, const char *type, const uint8_t *bytes, size_t count) {
  return JxlEncoderAddBox(e->library.encoder, type, bytes, count, JXL_FALSE) == JXL_ENC_SUCCESS;
}

/// Adds an EXIF block, after the offset of its TIFF header.
static bool add_exif(jxl_encoder *e) {
  enum { OFFSET_BYTES = 4 };
  const ccodecs_metadata *metadata = &e->base.options.metadata;
  ccodecs_budget *budget = e->base.budget;
  ccodecs_bytes box = {0};
  const uint8_t offset[OFFSET_BYTES] = {0};
  const bool is_added = ccodecs_bytes_append(&box, offset, sizeof offset, budget) &&
                        ccodecs_bytes_append(&box, metadata->exif, metadata->exif_count, budget) &&
                        add_box(e, "Exif", ccodecs_bytes_start(&box), box.count);
  ccodecs_bytes_free(&box, budget);
  return is_added;
}

/// Adds EXIF and XMP in boxes, which need a container.
static bool add_metadata(jxl_encoder *e) {
  const ccodecs_metadata *metadata = &e->base.options.metadata;
  if (metadata->exif_count == 0 && metadata->xmp_count == 0) {
    return true;
  }
  return JxlEncoderUseBoxes(e->library.encoder) == JXL_ENC_SUCCESS && (metadata->exif_count == 0 || add_exif(e)) &&
         (metadata->xmp_count == 0 || add_box(e, "xml ", metadata->xmp, metadata->xmp_count));
}

static bool begin(jxl_encoder *e) {
  const uint64_t charge = library_charge(&e->base.options);
  return ccodecs_jxl_library_create(&e->library, charge, &e->base.interrupt, e->base.budget) && describe(e) &&
         (e->base.failure != CCODECS_OK || (add_metadata(e) && configure(e)));
}

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  jxl_encoder *e = (jxl_encoder *)encoder;
  e->row_bytes = (size_t)options->width * ccodecs_encoder_pixel_bytes(options);
  e->pixels = ccodecs_allocate(budget, pixel_bytes(e));
  return e->pixels != NULL && begin(e);
}

const ccodecs_encoder_methods ccodecs_jxl_encoder = {
    .byte_count = sizeof(jxl_encoder),
    .create = create,
    .estimate = estimate,
    .max_bytes = max_bytes,
    .write = write,
    .end_frame = end_frame,
    .finish = finish,
    .destroy = destroy};

#endif

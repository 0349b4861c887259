// An encoder of libheif for AV1: libaom with one thread, for still images with 10 bits per sample, with the settings
// that libheif's own encoder has for 8 bits.

#ifdef CCODECS_HEIF

#include "heif_av1_encoder.h"

#ifdef CCODECS_AOM

#include <aom/aom_encoder.h>
#include <aom/aomcx.h>
#include <libheif/heif_plugin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/// The lowest priority, so that libheif chooses its own encoder unless this one is named.
enum { PRIORITY = 1, PLUGIN_API_VERSION = 3, DEPTH = 10, MAX_QUANTIZER = 63, SAMPLE_BYTES = 2 };

static const char encoder_name[] = "image-worker-10-bits";

typedef struct av1_encoder {
  int quality;
  int speed;
  bool is_444;
  uint8_t *bytes; ///< The compressed frame, until it was given out.
  size_t count;
  bool is_given;
} av1_encoder;

static const struct heif_error good = {heif_error_Ok, heif_suberror_Unspecified, ""};
static const struct heif_error no_memory = {heif_error_Memory_allocation_error, heif_suberror_Unspecified, "libaom"};
static const struct heif_error failed = {heif_error_Encoder_plugin_error, heif_suberror_Unspecified, "libaom"};
static const struct heif_error unknown = {
    heif_error_Usage_error, heif_suberror_Unsupported_parameter, "unknown parameter"};

static const char *name(void) {
  return "libaom with 10 bits";
}

static struct heif_error create(void **encoder) {
  av1_encoder *e = calloc(1, sizeof *e);
  *encoder = e;
  return e == NULL ? no_memory : good;
}

static void destroy(void *encoder) {
  av1_encoder *e = encoder;
  free(e->bytes);
  free(e);
}

static struct heif_error set_quality(void *encoder, int quality) {
  ((av1_encoder *)encoder)->quality = quality;
  return good;
}

static struct heif_error get_quality(void *encoder, int *quality) {
  *quality = ((av1_encoder *)encoder)->quality;
  return good;
}

/// Sets a property that this encoder does not have.
static struct heif_error ignore(void *encoder, int value) {
  (void)encoder;
  (void)value;
  return good;
}

static struct heif_error get_nothing(void *encoder, int *value) {
  (void)encoder;
  *value = 0;
  return good;
}

static const struct heif_encoder_parameter **parameters(void *encoder) {
  static const struct heif_encoder_parameter *none[] = {NULL};
  (void)encoder;
  return none;
}

static struct heif_error set_integer(void *encoder, const char *key, int value) {
  if (strcmp(key, "speed") != 0) {
    return unknown;
  }
  ((av1_encoder *)encoder)->speed = value;
  return good;
}

static struct heif_error get_integer(void *encoder, const char *key, int *value) {
  *value = ((av1_encoder *)encoder)->speed;
  return strcmp(key, "speed") == 0 ? good : unknown;
}

static struct heif_error refuse_boolean(void *encoder, const char *key, int value) {
  (void)encoder;
  (void)key;
  (void)value;
  return unknown;
}

static struct heif_error get_boolean(void *encoder, const char *key, int *value) {
  (void)encoder;
  (void)key;
  *value = 0;
  return unknown;
}

static struct heif_error set_string(void *encoder, const char *key, const char *value) {
  if (strcmp(key, "chroma") != 0) {
    return unknown;
  }
  ((av1_encoder *)encoder)->is_444 = strcmp(value, "444") == 0;
  return good;
}

static struct heif_error get_string(void *encoder, const char *key, char *value, int size) {
  (void)encoder;
  (void)key;
  if (size > 0) {
    *value = '\0';
  }
  return unknown;
}

static void choose_planes(void *encoder, enum heif_colorspace *space, enum heif_chroma *chroma) {
  if (*space == heif_colorspace_monochrome) {
    *chroma = heif_chroma_monochrome;
    return;
  }
  *space = heif_colorspace_YCbCr;
  *chroma = ((const av1_encoder *)encoder)->is_444 ? heif_chroma_444 : heif_chroma_420;
}

static void choose_usual_planes(enum heif_colorspace *space, enum heif_chroma *chroma) {
  *space = heif_colorspace_YCbCr;
  *chroma = heif_chroma_420;
}

/// The image for libaom, and what it is.
typedef struct av1_source {
  const struct heif_image *image;
  bool is_gray; ///< Without chroma, as alpha is.
  bool is_444;
  int width;
  int height;
} av1_source;

static aom_codec_err_t configure(aom_codec_ctx_t *codec, const av1_encoder *e, const av1_source *source) {
  aom_codec_enc_cfg_t settings;
  aom_codec_err_t result = aom_codec_enc_config_default(aom_codec_av1_cx(), &settings, AOM_USAGE_GOOD_QUALITY);
  if (result != AOM_CODEC_OK) {
    return result;
  }
  settings.g_w = (unsigned)source->width;
  settings.g_h = (unsigned)source->height;
  settings.g_timebase = (struct aom_rational){1, 1};
  settings.g_threads = 1;
  settings.g_lag_in_frames = 0;
  settings.g_limit = 1;
  settings.g_profile = source->is_444 ? 1 : 0;
  settings.g_bit_depth = AOM_BITS_10;
  settings.g_input_bit_depth = DEPTH;
  settings.monochrome = source->is_gray;
  settings.rc_end_usage = AOM_Q;
  settings.rc_min_quantizer = 0;
  settings.rc_max_quantizer = MAX_QUANTIZER;
  settings.full_still_picture_hdr = 1;
  result = aom_codec_enc_init(codec, aom_codec_av1_cx(), &settings, AOM_CODEC_USE_HIGHBITDEPTH);
  if (result != AOM_CODEC_OK) {
    return result;
  }
  aom_codec_control(codec, AOME_SET_CPUUSED, e->speed);
  aom_codec_control(codec, AOME_SET_CQ_LEVEL, (unsigned)((100 - e->quality) * MAX_QUANTIZER + 50) / 100);
  return AOM_CODEC_OK;
}

/// States the colors in the bitstream, as libheif converted them.
static void describe_colors(aom_codec_ctx_t *codec, const av1_source *source) {
  struct heif_color_profile_nclx *nclx = NULL;
  const bool is_known = heif_image_get_nclx_color_profile(source->image, &nclx).code == heif_error_Ok && nclx != NULL;
  aom_codec_control(codec, AV1E_SET_COLOR_RANGE, !is_known || nclx->full_range_flag ? 1 : 0);
  if (is_known && !source->is_gray) {
    aom_codec_control(codec, AV1E_SET_COLOR_PRIMARIES, (int)nclx->color_primaries);
    aom_codec_control(codec, AV1E_SET_TRANSFER_CHARACTERISTICS, (int)nclx->transfer_characteristics);
    aom_codec_control(codec, AV1E_SET_MATRIX_COEFFICIENTS, (int)nclx->matrix_coefficients);
  }
  heif_nclx_color_profile_free(nclx);
}

/// Copies a plane, whose samples have 10 bits. Returns whether it has them.
static bool copy_plane(const av1_source *source, enum heif_channel channel, aom_image_t *picture, int plane) {
  int stride = 0;
  const uint8_t *rows = heif_image_get_plane_readonly(source->image, channel, &stride);
  if (rows == NULL || heif_image_get_bits_per_pixel_range(source->image, channel) != DEPTH) {
    return false;
  }
  const int width = heif_image_get_width(source->image, channel);
  const int height = heif_image_get_height(source->image, channel);
  for (int y = 0; y < height; y++) {
    memcpy(
        picture->planes[plane] + y * (ptrdiff_t)picture->stride[plane], rows + y * (ptrdiff_t)stride,
        (size_t)width * SAMPLE_BYTES);
  }
  return true;
}

/// Returns libaom's copy of the image; NULL without memory, or if the samples are others.
static aom_image_t *copy_image(const av1_source *source) {
  static const enum heif_channel channels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
  const aom_img_fmt_t format = source->is_444 ? AOM_IMG_FMT_I44416 : AOM_IMG_FMT_I42016;
  aom_image_t *picture = aom_img_alloc(NULL, format, (unsigned)source->width, (unsigned)source->height, 16);
  bool is_copied = picture != NULL;
  for (int i = 0; is_copied && i < (source->is_gray ? 1 : 3); i++) {
    is_copied = copy_plane(source, channels[i], picture, i);
  }
  if (!is_copied) {
    aom_img_free(picture);
    return NULL;
  }
  picture->bit_depth = DEPTH;
  picture->monochrome = source->is_gray;
  picture->range = AOM_CR_FULL_RANGE;
  return picture;
}

/// Keeps the compressed frame.
static struct heif_error take_packets(av1_encoder *e, aom_codec_ctx_t *codec) {
  aom_codec_iter_t at = NULL;
  const aom_codec_cx_pkt_t *packet;
  while ((packet = aom_codec_get_cx_data(codec, &at)) != NULL) {
    if (packet->kind == AOM_CODEC_CX_FRAME_PKT) {
      uint8_t *bytes = realloc(e->bytes, e->count + packet->data.frame.sz);
      if (bytes == NULL) {
        return no_memory;
      }
      memcpy(bytes + e->count, packet->data.frame.buf, packet->data.frame.sz);
      e->bytes = bytes;
      e->count += packet->data.frame.sz;
    }
  }
  return good;
}

static struct heif_error encode(void *encoder, const struct heif_image *image, enum heif_image_input_class kind) {
  (void)kind;
  av1_encoder *e = encoder;
  const enum heif_chroma chroma = heif_image_get_chroma_format(image);
  const av1_source source = {
      .image = image,
      .is_gray = chroma == heif_chroma_monochrome,
      .is_444 = chroma == heif_chroma_444,
      .width = heif_image_get_width(image, heif_channel_Y),
      .height = heif_image_get_height(image, heif_channel_Y),
  };
  free(e->bytes); // of the colors, before alpha
  e->bytes = NULL;
  e->count = 0;
  e->is_given = false;
  aom_codec_ctx_t codec;
  if (configure(&codec, e, &source) != AOM_CODEC_OK) {
    return failed;
  }
  describe_colors(&codec, &source);
  aom_image_t *picture = copy_image(&source);
  struct heif_error error = picture == NULL ? no_memory : good;
  if (picture != NULL && aom_codec_encode(&codec, picture, 0, 1, 0) != AOM_CODEC_OK) {
    error = failed;
  }
  aom_img_free(picture);
  error = error.code == heif_error_Ok ? take_packets(e, &codec) : error;
  if (error.code == heif_error_Ok && aom_codec_encode(&codec, NULL, 0, 1, 0) != AOM_CODEC_OK) { // flushes
    error = failed;
  }
  error = error.code == heif_error_Ok ? take_packets(e, &codec) : error;
  aom_codec_destroy(&codec);
  return error;
}

static struct heif_error give_bytes(void *encoder, uint8_t **bytes, int *count, enum heif_encoded_data_type *type) {
  av1_encoder *e = encoder;
  *bytes = e->is_given ? NULL : e->bytes;
  *count = e->is_given ? 0 : (int)e->count;
  if (type != NULL) {
    *type = heif_encoded_data_type_HEVC_image; // what images of any format are
  }
  e->is_given = true;
  return good;
}

static struct heif_encoder_plugin plugin = {
    .plugin_api_version = PLUGIN_API_VERSION,
    .compression_format = heif_compression_AV1,
    .id_name = encoder_name,
    .priority = PRIORITY,
    .supports_lossy_compression = 1,
    .get_plugin_name = name,
    .new_encoder = create,
    .free_encoder = destroy,
    .set_parameter_quality = set_quality,
    .get_parameter_quality = get_quality,
    .set_parameter_lossless = ignore,
    .get_parameter_lossless = get_nothing,
    .set_parameter_logging_level = ignore,
    .get_parameter_logging_level = get_nothing,
    .list_parameters = parameters,
    .set_parameter_integer = set_integer,
    .get_parameter_integer = get_integer,
    .set_parameter_boolean = refuse_boolean,
    .get_parameter_boolean = get_boolean,
    .set_parameter_string = set_string,
    .get_parameter_string = get_string,
    .query_input_colorspace = choose_usual_planes,
    .encode_image = encode,
    .get_compressed_data = give_bytes,
    .query_input_colorspace2 = choose_planes,
};

static void register_once(void) {
  heif_register_encoder_plugin(&plugin);
}

struct heif_encoder *heif_av1_encoder_create(struct heif_context *context) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_once);
  const struct heif_encoder_descriptor *found[1];
  struct heif_encoder *encoder = NULL;
  if (heif_context_get_encoder_descriptors(context, heif_compression_AV1, encoder_name, found, 1) == 1) {
    heif_context_get_encoder(context, found[0], &encoder);
  }
  return encoder;
}

#else

struct heif_encoder *heif_av1_encoder_create(struct heif_context *context) {
  (void)context;
  return NULL;
}

#endif

#endif

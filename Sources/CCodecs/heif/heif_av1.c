// A decoder of libheif for AV1: dav1d with one thread.

#include "heif_av1.h"

#include "heif_coded.h"

#if defined(CCODECS_HEIF) && defined(CCODECS_DAV1D)

#include <dav1d/dav1d.h>
#include <libheif/heif.h>
#include <libheif/heif_plugin.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/// libheif's own decoders have 100 to 150; the highest is chosen.
enum { PRIORITY = 200, PLUGIN_API_VERSION = 3 };

typedef struct av1_decoder {
  Dav1dContext *context;
  Dav1dData data;
} av1_decoder;

static const struct heif_error good = {heif_error_Ok, heif_suberror_Unspecified, ""};
static const struct heif_error no_memory = {heif_error_Memory_allocation_error, heif_suberror_Unspecified, "dav1d"};
static const struct heif_error bad_data = {heif_error_Decoder_plugin_error, heif_suberror_Unspecified, ""};

static const char *name(void) {
  return "dav1d with one thread";
}

static int supports(enum heif_compression_format format) {
  return format == heif_compression_AV1 ? PRIORITY : 0;
}

static void destroy(void *decoder) {
  av1_decoder *d = decoder;
  dav1d_data_unref(&d->data);
  dav1d_close(&d->context);
  free(d);
}

static struct heif_error create(void **decoder) {
  av1_decoder *d = calloc(1, sizeof *d);
  if (d == NULL) {
    return no_memory;
  }
  *decoder = d;
  return good;
}

static struct heif_error push(void *decoder, const void *bytes, size_t count) {
  av1_decoder *d = decoder;
  // A frame may be larger than its sequence header says; memory was charged for the latter.
  ccodecs_heif_frames frames = {0};
  ccodecs_heif_read_av1(bytes, count, &frames);
  Dav1dSettings settings;
  dav1d_default_settings(&settings);
  settings.n_threads = 1;
  settings.max_frame_delay = 1;
  settings.all_layers = 0;
  settings.logger.callback = NULL;
  settings.frame_size_limit = frames.max_pixels == 0           ? 1
                              : frames.max_pixels > UINT32_MAX ? UINT32_MAX
                                                               : (unsigned)frames.max_pixels;
  if (d->context != NULL || dav1d_open(&d->context, &settings) != 0) {
    return no_memory;
  }
  uint8_t *copy = dav1d_data_create(&d->data, count);
  if (copy == NULL) {
    return no_memory;
  }
  memcpy(copy, bytes, count);
  return good;
}

/// Returns the first displayed frame, and frees dav1d's other memory.
static struct heif_error take_picture(av1_decoder *d, Dav1dPicture *picture) {
  int result;
  bool is_flushed = false;
  do {
    result = dav1d_send_data(d->context, &d->data);
    if (result < 0 && result != DAV1D_ERR(EAGAIN)) {
      break;
    }
    const bool has_read_all = d->data.sz == 0;
    result = dav1d_get_picture(d->context, picture);
    if (is_flushed && result == DAV1D_ERR(EAGAIN)) {
      break;
    }
    is_flushed = has_read_all;
  } while (result == DAV1D_ERR(EAGAIN));
  dav1d_data_unref(&d->data);
  dav1d_close(&d->context);
  return result == 0 ? good : result == DAV1D_ERR(ENOMEM) ? no_memory : bad_data;
}

static struct heif_error copy_plane(
    const Dav1dPicture *picture, int plane, struct heif_image *image, enum heif_channel channel) {
  const bool is_chroma = plane > 0;
  const bool is_narrow = is_chroma && picture->p.layout != DAV1D_PIXEL_LAYOUT_I444;
  const bool is_low = is_chroma && picture->p.layout == DAV1D_PIXEL_LAYOUT_I420;
  const int width = is_narrow ? (picture->p.w + 1) / 2 : picture->p.w;
  const int height = is_low ? (picture->p.h + 1) / 2 : picture->p.h;
  const struct heif_error error = heif_image_add_plane(image, channel, width, height, picture->p.bpc);
  if (error.code != heif_error_Ok) {
    return error;
  }
  int stride;
  uint8_t *rows = heif_image_get_plane(image, channel, &stride);
  const uint8_t *source = picture->data[plane];
  for (int y = 0; y < height; y++) {
    memcpy(
        rows + (size_t)y * (size_t)stride, source + y * picture->stride[is_chroma],
        (size_t)width * (picture->p.bpc > 8 ? 2 : 1));
  }
  return good;
}

static struct heif_error copy_colors(const Dav1dPicture *picture, struct heif_image *image) {
  struct heif_color_profile_nclx *nclx = heif_nclx_color_profile_alloc();
  if (nclx == NULL) {
    return no_memory;
  }
  // Values that libheif does not know become "unspecified".
  heif_nclx_color_profile_set_color_primaries(nclx, (uint16_t)picture->seq_hdr->pri);
  heif_nclx_color_profile_set_transfer_characteristics(nclx, (uint16_t)picture->seq_hdr->trc);
  heif_nclx_color_profile_set_matrix_coefficients(nclx, (uint16_t)picture->seq_hdr->mtrx);
  nclx->full_range_flag = picture->seq_hdr->color_range != 0;
  const struct heif_error error = heif_image_set_nclx_color_profile(image, nclx);
  heif_nclx_color_profile_free(nclx);
  return error;
}

static struct heif_error copy_picture(const Dav1dPicture *picture, struct heif_image **image) {
  static const enum heif_chroma chromas[] = {heif_chroma_monochrome, heif_chroma_420, heif_chroma_422, heif_chroma_444};
  static const enum heif_channel channels[] = {heif_channel_Y, heif_channel_Cb, heif_channel_Cr};
  const bool is_gray = picture->p.layout == DAV1D_PIXEL_LAYOUT_I400;
  struct heif_error error = heif_image_create(
      picture->p.w, picture->p.h, is_gray ? heif_colorspace_monochrome : heif_colorspace_YCbCr,
      chromas[picture->p.layout], image);
  if (error.code != heif_error_Ok) {
    return error;
  }
  error = copy_colors(picture, *image);
  for (int plane = 0; plane < (is_gray ? 1 : 3) && error.code == heif_error_Ok; plane++) {
    error = copy_plane(picture, plane, *image, channels[plane]);
  }
  if (error.code != heif_error_Ok) {
    heif_image_release(*image);
    *image = NULL;
  }
  return error;
}

static struct heif_error decode(void *decoder, struct heif_image **image) {
  Dav1dPicture picture = {0};
  struct heif_error error = take_picture(decoder, &picture);
  if (error.code == heif_error_Ok) {
    const bool is_stated = picture.p.w <= picture.seq_hdr->max_width && picture.p.h <= picture.seq_hdr->max_height;
    error = is_stated ? copy_picture(&picture, image) : bad_data;
    dav1d_picture_unref(&picture);
  }
  return error;
}

static void set_strictness(void *decoder, int is_strict) {
  (void)decoder;
  (void)is_strict;
}

static void register_decoder(void) {
  static const struct heif_decoder_plugin plugin = {
      .plugin_api_version = PLUGIN_API_VERSION,
      .get_plugin_name = name,
      .does_support_format = supports,
      .new_decoder = create,
      .free_decoder = destroy,
      .push_data = push,
      .decode_image = decode,
      .set_strict_decoding = set_strictness,
      .id_name = "image-worker-dav1d",
  };
  heif_register_decoder_plugin(&plugin);
}

void heif_av1_register(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_decoder);
}

#else

void heif_av1_register(void) {
}

#endif

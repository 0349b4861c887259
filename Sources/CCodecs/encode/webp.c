// WebP through libwebp, which wants the whole result before it writes a byte of it.

#include "encoder.h"

#include <string.h>

#include <webp/encode.h>

/// What libwebp holds for each pixel of the result: ARGB, its conversion to YUV and alpha, and macroblock data.
static const size_t library_bytes_per_pixel = 10;
static const size_t library_bytes = 1024 * 1024;

typedef struct webp_encoder {
  ccodecs_encoder base;
  WebPPicture picture;
  WebPConfig config;
  size_t charged;
  uint32_t written;
} webp_encoder;

static int on_write(const uint8_t *bytes, size_t count, const WebPPicture *picture) {
  webp_encoder *e = picture->custom_ptr;
  return ccodecs_bytes_append(&e->base.output, bytes, count, e->base.budget);
}

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  webp_encoder *e = (webp_encoder *)base;
  const uint32_t channels = ccodecs_encoder_channels(&base->options);
  for (uint32_t row = 0; row < rows->row_counts[0]; row++, e->written++) {
    const uint8_t *pixel = rows->planes[0] + row * rows->row_strides[0];
    uint32_t *argb = e->picture.argb + (size_t)e->written * (size_t)e->picture.argb_stride;
    for (uint32_t x = 0; x < base->options.width; x++, pixel += channels) {
      const uint32_t alpha = channels == 4 ? pixel[3] : 255;
      argb[x] = alpha << 24 | (uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2];
    }
  }
  return CCODECS_OK;
}

static ccodecs_status finish(ccodecs_encoder *base) {
  webp_encoder *e = (webp_encoder *)base;
  if (WebPEncode(&e->config, &e->picture)) {
    WebPPictureFree(&e->picture);
    ccodecs_budget_refund(base->budget, e->charged);
    e->charged = 0;
    return CCODECS_OK;
  }
  const WebPEncodingError error = e->picture.error_code;
  const bool is_memory = error == VP8_ENC_ERROR_OUT_OF_MEMORY || error == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY ||
                         error == VP8_ENC_ERROR_BAD_WRITE;
  return ccodecs_encoder_fail(
      base, is_memory ? CCODECS_NO_MEMORY : CCODECS_UNSUPPORTED, "libwebp failed with error %d", (int)error);
}

static void destroy(ccodecs_encoder *base) {
  webp_encoder *e = (webp_encoder *)base;
  ccodecs_budget *budget = base->budget;
  WebPPictureFree(&e->picture);
  ccodecs_budget_refund(budget, e->charged);
  ccodecs_bytes_free(&base->output, budget);
  ccodecs_free(budget, e);
}

static uint64_t library_charge(const ccodecs_encode_options *options) {
  return library_bytes + (uint64_t)options->width * options->height * library_bytes_per_pixel;
}

uint64_t ccodecs_webp_encoder_estimate(const ccodecs_encode_options *options) {
  // The compressed result waits whole, at most about two bytes a pixel.
  return sizeof(webp_encoder) + library_charge(options) + (uint64_t)options->width * options->height * 2;
}

ccodecs_encoder *ccodecs_webp_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget) {
  static const ccodecs_encoder_methods methods = {.write = write, .finish = finish, .destroy = destroy};
  webp_encoder *e = ccodecs_allocate(budget, sizeof *e);
  if (e == NULL) {
    return NULL;
  }
  memset(e, 0, sizeof *e);
  ccodecs_encoder_init(&e->base, &methods, options, budget);
  const uint64_t charge = library_charge(options);
  if (WebPPictureInit(&e->picture) && WebPConfigInit(&e->config) && charge <= SIZE_MAX &&
      ccodecs_budget_charge(budget, (size_t)charge)) {
    e->charged = (size_t)charge;
    e->config.quality = options->quality;
    e->picture.use_argb = 1;
    e->picture.width = (int)options->width;
    e->picture.height = (int)options->height;
    e->picture.writer = on_write;
    e->picture.custom_ptr = e;
    if (WebPPictureAlloc(&e->picture)) {
      return &e->base;
    }
  }
  destroy(&e->base);
  return NULL;
}

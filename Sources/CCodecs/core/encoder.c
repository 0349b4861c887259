// The public encoder functions: which encoder, what it can take, sticky failure, pending output.

#include "encoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ccodecs_encoder_init(
    ccodecs_encoder *encoder, const ccodecs_encoder_methods *methods, const ccodecs_encode_options *options,
    ccodecs_budget *budget) {
  memset(encoder, 0, sizeof *encoder);
  encoder->methods = methods;
  encoder->budget = budget;
  encoder->options = *options;
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(options); i++) {
    encoder->rows_left[i] = ccodecs_encoder_plane_height(options, i);
  }
}

ccodecs_status ccodecs_encoder_fail(ccodecs_encoder *encoder, ccodecs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(encoder->message, sizeof encoder->message, format, arguments);
  va_end(arguments);
  encoder->failure = status;
  return status;
}

uint32_t ccodecs_encoder_plane_count(const ccodecs_encode_options *options) {
  return options->pixels == CCODECS_PIXELS_YCC8 ? 3 : 1;
}

uint32_t ccodecs_encoder_plane_width(const ccodecs_encode_options *options, uint32_t plane) {
  const bool is_halved = plane > 0 && options->subsampling != CCODECS_SUBSAMPLING_444;
  return is_halved ? options->width / 2 + (options->width & 1) : options->width;
}

uint32_t ccodecs_encoder_plane_height(const ccodecs_encode_options *options, uint32_t plane) {
  const bool is_halved = plane > 0 && options->subsampling == CCODECS_SUBSAMPLING_420;
  return is_halved ? options->height / 2 + (options->height & 1) : options->height;
}

uint32_t ccodecs_encoder_channels(const ccodecs_encode_options *options) {
  return options->pixels == CCODECS_PIXELS_RGBA8 ? 4 : options->pixels == CCODECS_PIXELS_RGB8 ? 3 : 1;
}

bool ccodecs_format_can_encode(ccodecs_format format) {
  switch (format) {
  case CCODECS_FORMAT_JPEG:
  case CCODECS_FORMAT_PNG:
  case CCODECS_FORMAT_WEBP:
    return true;
#ifdef CCODECS_HEIF
  case CCODECS_FORMAT_AVIF:
    return true;
#endif
  default:
    return false;
  }
}

static bool can_write(ccodecs_format format, ccodecs_pixels pixels) {
  if (!ccodecs_format_can_encode(format)) {
    return false;
  }
  switch (format) {
  case CCODECS_FORMAT_JPEG:
    return pixels != CCODECS_PIXELS_RGBA8 && pixels != CCODECS_PIXELS_CMYK8;
  case CCODECS_FORMAT_PNG:
    return pixels != CCODECS_PIXELS_YCC8 && pixels != CCODECS_PIXELS_CMYK8;
  default:
    return pixels == CCODECS_PIXELS_RGB8 || pixels == CCODECS_PIXELS_RGBA8;
  }
}

/// What an APP1 segment of JPEG holds.
enum { EXIF_BYTES_MOST = 65535 - 2 - 6 };

static bool are_valid(const ccodecs_encode_options *options) {
  const uint16_t palette = options->png.palette_count;
  return options->width > 0 && options->height > 0 && options->quality >= 1 && options->quality <= 100 &&
         options->exif_count <= EXIF_BYTES_MOST && options->png.compression_level <= 9 &&
         options->png.filter <= CCODECS_PNG_FILTER_ADAPTIVE && (palette == 0 || (palette >= 2 && palette <= 256)) &&
         options->webp.near_lossless <= 100 && options->webp.method <= 6;
}

static ccodecs_status check(const ccodecs_encode_options *options) {
  if (!can_write(options->format, options->pixels) ||
      (options->format == CCODECS_FORMAT_PNG && options->png.palette_count > 0 && !ccodecs_png_has_palettes()) ||
      (options->format != CCODECS_FORMAT_JPEG && options->subsampling == CCODECS_SUBSAMPLING_422)) {
    return CCODECS_UNSUPPORTED;
  }
  const uint32_t largest = options->format == CCODECS_FORMAT_JPEG   ? 65500
                           : options->format == CCODECS_FORMAT_WEBP ? 16383
                           : options->format == CCODECS_FORMAT_AVIF ? 65535
                                                                    : 0x7FFFFFFF;
  if (options->width > largest || options->height > largest) {
    return CCODECS_LIMIT;
  }
  return are_valid(options) ? CCODECS_OK : CCODECS_MISUSE;
}

ccodecs_status ccodecs_encoder_create(
    const ccodecs_encode_options *options, ccodecs_budget *budget, ccodecs_encoder **encoder) {
  *encoder = NULL;
  const ccodecs_status status = check(options);
  if (status != CCODECS_OK) {
    return status;
  }
  switch (options->format) {
  case CCODECS_FORMAT_JPEG:
    *encoder = ccodecs_jpeg_encoder_create(options, budget);
    break;
  case CCODECS_FORMAT_PNG:
    *encoder = ccodecs_png_encoder_create(options, budget);
    break;
#ifdef CCODECS_HEIF
  case CCODECS_FORMAT_AVIF:
    *encoder = ccodecs_avif_encoder_create(options, budget);
    break;
#endif
  default:
    *encoder = ccodecs_webp_encoder_create(options, budget);
    break;
  }
  if (*encoder == NULL) {
    return CCODECS_NO_MEMORY;
  }
  (*encoder)->options.exif = NULL; // it was borrowed
  return CCODECS_OK;
}

ccodecs_status ccodecs_encoder_estimate(const ccodecs_encode_options *options, uint64_t *byte_count) {
  *byte_count = 0;
  const ccodecs_status status = check(options);
  if (status != CCODECS_OK) {
    return status;
  }
  switch (options->format) {
  case CCODECS_FORMAT_JPEG:
    *byte_count = ccodecs_jpeg_encoder_estimate(options);
    break;
  case CCODECS_FORMAT_PNG:
    *byte_count = ccodecs_png_encoder_estimate(options);
    break;
#ifdef CCODECS_HEIF
  case CCODECS_FORMAT_AVIF:
    *byte_count = ccodecs_avif_encoder_estimate(options);
    break;
#endif
  default:
    *byte_count = ccodecs_webp_encoder_estimate(options);
    break;
  }
  *byte_count += 4 * options->exif_count; // it is copied, and pending output grows by half when it grows
  return status;
}

uint64_t ccodecs_encoder_largest(const ccodecs_encode_options *options) {
  uint64_t samples = 0;
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(options); i++) {
    samples += (uint64_t)(ccodecs_encoder_plane_width(options, i) + 16) * (ccodecs_encoder_plane_height(options, i) + 16);
  }
  const bool is_indexed = options->format == CCODECS_FORMAT_PNG && options->png.palette_count > 0;
  samples *= is_indexed ? 1 : ccodecs_encoder_channels(options);
  // Of JPEG and lossy WebP, noise at the best quality takes up to 12 bits a sample. What can't be compressed is stored.
  const bool is_stored = options->format == CCODECS_FORMAT_PNG ||
                         (options->format == CCODECS_FORMAT_WEBP && options->webp.is_lossless);
  return samples + (is_stored ? samples / 64 : samples / 2) + 65536 + options->exif_count;
}

/// Makes a failure stick that came without a reason.
static ccodecs_status leave(ccodecs_encoder *encoder, ccodecs_status status) {
  if (status != CCODECS_OK && encoder->failure == CCODECS_OK) {
    return ccodecs_encoder_fail(
        encoder, status, "%s", status == CCODECS_NO_MEMORY ? "memory is exhausted" : "the picture can't be encoded");
  }
  return status;
}

ccodecs_status ccodecs_encoder_write(ccodecs_encoder *encoder, const ccodecs_rows *rows) {
  if (encoder->failure != CCODECS_OK) {
    return encoder->failure;
  }
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&encoder->options); i++) {
    if (encoder->is_finished || rows->row_counts[i] > encoder->rows_left[i]) {
      return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "more rows than the picture has");
    }
    encoder->rows_left[i] -= rows->row_counts[i];
  }
  return leave(encoder, encoder->methods->write(encoder, rows));
}

ccodecs_status ccodecs_encoder_append_exif(ccodecs_encoder *encoder, const uint8_t *exif, size_t count) {
  if (encoder->failure != CCODECS_OK) {
    return encoder->failure;
  }
  const bool fits = encoder->methods->append_exif != NULL && encoder->options.exif_count == 0 && !encoder->is_finished;
  if (!fits || count == 0 || count > EXIF_BYTES_MOST) {
    return CCODECS_UNSUPPORTED;
  }
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&encoder->options); i++) {
    if (encoder->rows_left[i] > 0) {
      return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "the picture lacks rows");
    }
  }
  encoder->options.exif_count = count;
  return leave(encoder, encoder->methods->append_exif(encoder, exif, count));
}

ccodecs_status ccodecs_encoder_finish(ccodecs_encoder *encoder) {
  if (encoder->failure != CCODECS_OK) {
    return encoder->failure;
  }
  for (uint32_t i = 0; i < ccodecs_encoder_plane_count(&encoder->options); i++) {
    if (encoder->is_finished || encoder->rows_left[i] > 0) {
      return ccodecs_encoder_fail(encoder, CCODECS_MISUSE, "the picture lacks rows, or was finished before");
    }
  }
  encoder->is_finished = true;
  return leave(encoder, encoder->methods->finish(encoder));
}

size_t ccodecs_encoder_pending(const ccodecs_encoder *encoder) {
  return encoder->output.count;
}

size_t ccodecs_encoder_read(ccodecs_encoder *encoder, uint8_t *buffer, size_t capacity) {
  const size_t count = encoder->output.count < capacity ? encoder->output.count : capacity;
  if (count > 0) {
    memcpy(buffer, ccodecs_bytes_start(&encoder->output), count);
    ccodecs_bytes_take(&encoder->output, count);
  }
  return count;
}

const char *ccodecs_encoder_message(const ccodecs_encoder *encoder) {
  return encoder->message;
}

void ccodecs_encoder_destroy(ccodecs_encoder *encoder) {
  if (encoder != NULL) {
    encoder->methods->destroy(encoder);
  }
}

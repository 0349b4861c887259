// Conversion of RGB rows to the planes of a lossy image as they arrive, by libwebp itself.
//
// libwebp's encoder would convert the whole image, from an ARGB image of four bytes a pixel and with slower code. The
// planes are the same: two rows at a time are independent of all others.

#include "webp_encoder.h"

#include <string.h>

/// The maximum number of rows that are converted at once; even.
enum { STRIP_ROWS = 16 };

bool ccodecs_webp_has_planes(const ccodecs_encode_options *options) {
  return options->pixels == CCODECS_PIXELS_RGB8 && !options->webp.is_lossless && !options->webp.sharp_chroma &&
         !options->has_frames;
}

size_t ccodecs_webp_pair_bytes(const ccodecs_encode_options *options) {
  return ccodecs_webp_has_planes(options) ? 2 * (size_t)options->width * 3 : 0;
}

static void copy_rows(const uint8_t *from, int from_stride, uint8_t *to, int to_stride, size_t width, size_t count) {
  for (size_t row = 0; row < count; row++) {
    memcpy(to + row * (size_t)to_stride, from + row * (size_t)from_stride, width);
  }
}

/// Converts at most STRIP_ROWS rows, an even number unless they are the image's last ones, and stores their planes.
static ccodecs_status convert(webp_encoder *e, const uint8_t *rows, size_t row_stride, uint32_t row_count) {
  WebPPicture *image = &e->image;
  WebPPicture strip;
  if (!WebPPictureInit(&strip)) {
    return CCODECS_UNSUPPORTED;
  }
  strip.width = image->width;
  strip.height = (int)row_count;
  if (!WebPPictureImportRGB(&strip, rows, (int)row_stride)) {
    WebPPictureFree(&strip); // some of its planes may be allocated
    return CCODECS_NO_MEMORY;
  }
  const size_t width = (size_t)image->width;
  const size_t first = e->written;
  const size_t first_chroma = first / 2 * (size_t)image->uv_stride;
  const size_t chroma_width = (width + 1) / 2;
  const size_t chroma_rows = (row_count + 1) / 2;
  copy_rows(strip.y, strip.y_stride, image->y + first * (size_t)image->y_stride, image->y_stride, width, row_count);
  copy_rows(strip.u, strip.uv_stride, image->u + first_chroma, image->uv_stride, chroma_width, chroma_rows);
  copy_rows(strip.v, strip.uv_stride, image->v + first_chroma, image->uv_stride, chroma_width, chroma_rows);
  WebPPictureFree(&strip);
  e->written += row_count;
  return CCODECS_OK;
}

ccodecs_status ccodecs_webp_write_planes(webp_encoder *e, const uint8_t *rows, size_t row_stride, uint32_t row_count) {
  const size_t row_bytes = (size_t)e->image.width * 3;
  const bool is_repeated = row_stride == 0; // one row for several, which libwebp does not take
  const uint32_t height = (uint32_t)e->image.height;
  uint32_t taken = 0;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && taken < row_count) {
    const uint8_t *next = rows + taken * row_stride;
    const uint32_t left = row_count - taken;
    const uint32_t strip = is_repeated ? 1 : left < STRIP_ROWS ? left : STRIP_ROWS;
    const bool is_end = e->written + e->has_half + strip == height;
    if (e->has_half) {
      memcpy(e->pair + row_bytes, next, row_bytes);
      e->has_half = false;
      status = convert(e, e->pair, row_bytes, 2);
      taken++;
    } else if (strip == 1 && !is_end) {
      memcpy(e->pair, next, row_bytes);
      e->has_half = true;
      taken++;
    } else {
      const uint32_t count = is_end ? strip : strip - strip % 2;
      status = convert(e, next, is_repeated ? row_bytes : row_stride, count);
      taken += count;
    }
  }
  return status;
}

// Encoding of buffered images: interlaced, with a palette, or both.
//
// Sources: PNG specification (third edition), sections 7.2, 8.1 and 11.2.

#include "../formats.h"
#include "png_chunk.h"
#include "png_encoder.h"

static const png_pass whole = {0, 0, 1, 1};

static uint64_t image_bytes(const ccodecs_encode_options *options) {
  return (uint64_t)options->width * options->height * ccodecs_encoder_pixel_bytes(options);
}

uint64_t ccodecs_png_buffered_estimate(const ccodecs_encode_options *options) {
  const bool is_buffered = options->png.is_interlaced || options->png.palette_count > 0;
  // The whole compressed file is produced at the end, into a growing block.
  return is_buffered ? image_bytes(options) + ccodecs_png_encoder_max_bytes(options) * 5 / 2 +
                           (options->png.palette_count > 0 ? ccodecs_png_palette_estimate(options) : 0)
                     : 0;
}

bool ccodecs_png_hold(png_encoder *e) {
  const uint64_t byte_count = image_bytes(&e->base.options);
  e->buffered = byte_count <= SIZE_MAX ? ccodecs_allocate(e->base.budget, (size_t)byte_count) : NULL;
  return e->buffered != NULL;
}

void ccodecs_png_buffer_rows(png_encoder *e, const ccodecs_rows *rows) {
  for (uint32_t i = 0; i < rows->row_counts[0]; i++, e->buffered_row_count++) {
    ccodecs_png_copy_row(
        e, rows->planes[0] + i * rows->row_strides[0], e->buffered + e->buffered_row_count * e->row_bytes);
  }
}

void ccodecs_png_free_buffered(png_encoder *e) {
  ccodecs_free(e->base.budget, e->buffered);
  e->buffered = NULL;
}

/// Copies pixels that are `across` apart into a contiguous row. Packs indices of less than 8 bits, the first into the
/// high bits.
static void gather(
    const uint8_t *source, uint8_t *row, uint32_t count, size_t across, size_t pixel_bytes, uint8_t depth) {
  if (depth >= 8) {
    if (across == 1) {
      memcpy(row, source, count * pixel_bytes);
      return;
    }
    for (uint32_t i = 0; i < count; i++, source += across * pixel_bytes, row += pixel_bytes) {
      memcpy(row, source, pixel_bytes);
    }
    return;
  }
  const uint32_t in_byte = 8 / depth;
  memset(row, 0, (count + in_byte - 1) / in_byte);
  for (uint32_t i = 0; i < count; i++, source += across) {
    row[i / in_byte] |= (uint8_t)(*source << (8 - depth - i % in_byte * depth));
  }
}

static ccodecs_status write_pass(png_encoder *e, png_pass pass, const uint8_t *pixels, uint8_t depth) {
  const ccodecs_encode_options *options = &e->base.options;
  if (pass.x >= options->width || pass.y >= options->height) {
    return CCODECS_OK; // a pass without columns has no rows
  }
  const uint32_t count = (options->width - pass.x + pass.across - 1) / pass.across;
  ccodecs_png_begin_pass(e, depth >= 8 ? count * e->pixel_bytes : ((size_t)count * depth + 7) / 8);
  for (uint32_t y = pass.y; y < options->height; y += pass.down) {
    const uint8_t *row = pixels + ((size_t)y * options->width + pass.x) * e->pixel_bytes;
    gather(row, e->current, count, pass.across, e->pixel_bytes, depth);
    CCODECS_TRY(ccodecs_png_write_row(e));
  }
  return CCODECS_OK;
}

ccodecs_status ccodecs_png_write_buffered(png_encoder *e) {
  const bool is_indexed = e->base.options.png.palette_count > 0;
  uint8_t depth = ccodecs_png_depth(e);
  ccodecs_status status =
      is_indexed ? ccodecs_png_write_palette(e, &depth) : ccodecs_png_write_beginning(e, depth, false);
  const bool is_interlaced = e->base.options.png.is_interlaced;
  const size_t pass_count = is_interlaced ? sizeof ccodecs_png_passes / sizeof *ccodecs_png_passes : 1;
  for (size_t i = 0; i < pass_count && status == CCODECS_OK; i++) {
    status = write_pass(e, is_interlaced ? ccodecs_png_passes[i] : whole, e->buffered, depth);
  }
  return status;
}

// PNG palettes: the buffered image becomes one of indices.

#include "png_encoder.h"

uint64_t ccodecs_png_palette_estimate(const ccodecs_encode_options *options) {
  const uint64_t building = CCODECS_PALETTE_HISTOGRAM_BYTES + CCODECS_PALETTE_BUILD_BYTES;
  const uint64_t mapping = CCODECS_PALETTE_MAPPER_BYTES + (uint64_t)CCODECS_PALETTE_MAPPER_PIXEL_BYTES * options->width;
  return building > mapping ? building : mapping;
}

ccodecs_status ccodecs_png_write_colors(png_encoder *e, const ccodecs_palette *palette) {
  uint8_t colors[3 * CCODECS_PALETTE_MAX_COLORS];
  uint8_t alphas[CCODECS_PALETTE_MAX_COLORS];
  for (uint32_t i = 0; i < palette->count; i++) {
    memcpy(colors + (size_t)3 * i, palette->colors[i], 3);
    alphas[i] = palette->colors[i][3];
  }
  const ccodecs_status status = ccodecs_png_write_chunk(e, "PLTE", colors, 3 * (size_t)palette->count);
  const uint32_t alpha_count = palette->opaque_first;
  return status == CCODECS_OK && alpha_count > 0 ? ccodecs_png_write_chunk(e, "tRNS", alphas, alpha_count) : status;
}

static const uint8_t *buffered_row(const png_encoder *e, uint32_t y) {
  return e->buffered + (size_t)y * e->base.options.width * ccodecs_encoder_channels(&e->base.options);
}

/// Returns CCODECS_INTERRUPTED, recorded as the failure, if the call must end.
static ccodecs_status check_interrupt(png_encoder *e) {
  const ccodecs_interrupt *interrupt = &e->base.interrupt;
  if (interrupt->may_continue == NULL || interrupt->may_continue(interrupt->owner)) {
    return CCODECS_OK;
  }
  return ccodecs_encoder_fail(&e->base, CCODECS_INTERRUPTED, "encoding was interrupted");
}

static ccodecs_status choose_colors(png_encoder *e, ccodecs_palette *palette) {
  const ccodecs_encode_options *options = &e->base.options;
  ccodecs_palette_histogram *histogram;
  ccodecs_status status = ccodecs_palette_histogram_create(CCODECS_PALETTE_ALPHA, e->base.budget, &histogram);
  for (uint32_t y = 0; y < options->height && status == CCODECS_OK; y++) {
    ccodecs_palette_histogram_add(histogram, buffered_row(e, y), ccodecs_encoder_channels(options), options->width);
    status = check_interrupt(e);
  }
  if (status == CCODECS_OK) {
    status = ccodecs_palette_build(histogram, options->png.palette_count, palette);
  }
  ccodecs_palette_histogram_destroy(histogram);
  return status;
}

/// Replaces pixels by indices from the start of the buffer. An index is never behind its pixel.
static ccodecs_status map_pixels(png_encoder *e, const ccodecs_palette *palette) {
  const ccodecs_encode_options *options = &e->base.options;
  ccodecs_palette_mapper *mapper;
  ccodecs_status status = ccodecs_palette_mapper_create(palette, options->width, e->base.budget, &mapper);
  for (uint32_t y = 0; y < options->height && status == CCODECS_OK; y++) {
    ccodecs_palette_mapper_map(
        mapper, buffered_row(e, y), ccodecs_encoder_channels(options), options->width, NULL,
        e->buffered + (size_t)y * options->width);
    status = check_interrupt(e);
  }
  ccodecs_palette_mapper_destroy(mapper);
  e->pixel_bytes = 1;
  return status;
}

ccodecs_status ccodecs_png_write_palette(png_encoder *e, uint8_t *depth) {
  ccodecs_palette palette;
  ccodecs_status status = choose_colors(e, &palette);
  if (status == CCODECS_OK) {
    status = map_pixels(e, &palette);
  }
  *depth = palette.count <= 2 ? 1 : palette.count <= 4 ? 2 : palette.count <= 16 ? 4 : 8;
  status = status == CCODECS_OK ? ccodecs_png_write_beginning(e, *depth, true) : status;
  return status == CCODECS_OK ? ccodecs_png_write_colors(e, &palette) : status;
}

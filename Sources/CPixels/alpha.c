// Alpha: premultiplying, unpremultiplying and flattening. All arithmetic is exact integer arithmetic, so every
// instruction set produces the same samples.

#include "kernels.h"

/// The value of 1 in premultiplied samples: 255 * 255.
enum { UNIT = 65025 };

static uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

void cpixels_premultiply_scalar(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint32_t alpha = rgba[3];
    premultiplied[0] = (uint16_t)(rgba[0] * alpha);
    premultiplied[1] = (uint16_t)(rgba[1] * alpha);
    premultiplied[2] = (uint16_t)(rgba[2] * alpha);
    premultiplied[3] = (uint16_t)(255 * alpha);
  }
}

void cpixels_unpremultiply_scalar(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint32_t alpha = smaller(premultiplied[3], UNIT);
    const uint32_t shown = (alpha + 127) / 255;
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t color = smaller(premultiplied[c], alpha);
      rgba[c] = shown == 0 ? 0 : (uint8_t)((color * 255 + alpha / 2) / alpha);
    }
    rgba[3] = (uint8_t)shown;
  }
}

void cpixels_flatten_scalar(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgb += 3, premultiplied += 4) {
    const uint32_t alpha = smaller(premultiplied[3], UNIT);
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t color = smaller(premultiplied[c], alpha);
      rgb[c] = (uint8_t)((color * 255 + background[c] * (UNIT - alpha) + UNIT / 2) / UNIT);
    }
  }
}

void cpixels_premultiply(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_CHOOSE(cpixels_premultiply, isa)(rgba, premultiplied, pixel_count);
}

void cpixels_unpremultiply(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_CHOOSE(cpixels_unpremultiply, isa)(premultiplied, rgba, pixel_count);
}

void cpixels_flatten(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_CHOOSE(cpixels_flatten, isa)(premultiplied, background, rgb, pixel_count);
}

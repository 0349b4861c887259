// Overlays: drawing RGBA pixels onto rows of RGB or RGBA. All arithmetic is exact integer arithmetic, rounded to
// nearest once, so every instruction set produces the same samples.
//
// Source: W3C Compositing and Blending Level 1, with as and ab for the alphas and cs and cb for the straight colors of
// the overlay and of the row:
//
//   alpha = as + ab * (1 - as)
//   color = (as * (1 - ab) * cs + as * ab * B(cb, cs) + (1 - as) * ab * cb) / alpha
//
// where B is cs (over), cb * cs (multiply), or cb + cs - cb * cs (screen).

#include "kernels.h"

/// The value of 1 as a product of two samples.
enum { UNIT = 65025 };

void cpixels_overlay_pack(const uint8_t *row, uint32_t channels, uint32_t opacity, uint8_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, row += channels, rgba += 4) {
    const uint32_t alpha = channels == 4 ? row[3] : 255;
    rgba[0] = row[0];
    rgba[1] = channels == 1 ? row[0] : row[1];
    rgba[2] = channels == 1 ? row[0] : row[2];
    rgba[3] = (uint8_t)((alpha * opacity + UNIT / 2) / UNIT);
  }
}

/// Returns 255 * B(under, over).
static inline uint32_t mixed(cpixels_blend blend, uint32_t over, uint32_t under) {
  switch (blend) {
  case CPIXELS_BLEND_MULTIPLY:
    return over * under;
  case CPIXELS_BLEND_SCREEN:
    return 255 * (over + under) - over * under;
  case CPIXELS_BLEND_OVER:
    break;
  }
  return 255 * over;
}

static inline void blend_rgb(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, row += 3) {
    const uint32_t alpha = rgba[3];
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t sum = alpha * mixed(blend, rgba[c], row[c]) + (255 - alpha) * 255 * row[c];
      row[c] = (uint8_t)((sum + UNIT / 2) / UNIT);
    }
  }
}

static inline void blend_rgba(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, row += 4) {
    const uint32_t over = rgba[3];
    const uint32_t under = row[3];
    const uint32_t alpha = 255 * over + under * (255 - over);
    if (alpha == 0) {
      row[0] = row[1] = row[2] = 0;
      continue;
    }
    const uint32_t divisor = 255 * alpha;
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t sum = over * (255 - under) * 255 * rgba[c] + over * under * mixed(blend, rgba[c], row[c]) +
                           (255 - over) * under * 255 * row[c]; // at most 255^4, below 2^32 with half of the divisor
      row[c] = (uint8_t)((sum + divisor / 2) / divisor);
    }
    row[3] = (uint8_t)((alpha + 127) / 255);
  }
}

void cpixels_overlay_scalar(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
  // The constants let the compiler choose the formula outside of the loops.
  switch (blend) {
  case CPIXELS_BLEND_OVER:
    channels == 3 ? blend_rgb(CPIXELS_BLEND_OVER, rgba, row, pixel_count)
                  : blend_rgba(CPIXELS_BLEND_OVER, rgba, row, pixel_count);
    break;
  case CPIXELS_BLEND_MULTIPLY:
    channels == 3 ? blend_rgb(CPIXELS_BLEND_MULTIPLY, rgba, row, pixel_count)
                  : blend_rgba(CPIXELS_BLEND_MULTIPLY, rgba, row, pixel_count);
    break;
  case CPIXELS_BLEND_SCREEN:
    channels == 3 ? blend_rgb(CPIXELS_BLEND_SCREEN, rgba, row, pixel_count)
                  : blend_rgba(CPIXELS_BLEND_SCREEN, rgba, row, pixel_count);
    break;
  }
}

void cpixels_overlay(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_CHOOSE(cpixels_overlay, isa)(blend, rgba, row, channels, pixel_count);
}

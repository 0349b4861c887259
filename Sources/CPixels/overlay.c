// Overlays: drawing RGBA pixels onto rows of RGB or RGBA. All arithmetic is exact, rounded to nearest once, so every
// instruction set produces the same samples. Divisions are done in floating point and are still exact: see alpha.c.
// Dividends above 2^24, which only blending with transparent rows has, are divided in double precision.
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
CPIXELS_INLINE uint32_t mixed(cpixels_blend blend, uint32_t over, uint32_t under) {
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

/// Returns (x + 127) / 255 of numbers up to 65025: no quotient lies halfway between two levels.
CPIXELS_INLINE uint8_t divide_by_255(uint32_t x) {
  const uint16_t shifted = (uint16_t)(x + 128);
  return (uint8_t)((shifted + (shifted >> 8)) >> 8);
}

/// Draws over a row of RGB.
CPIXELS_INLINE void draw_rgb(const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, row += 3) {
    const uint32_t alpha = rgba[3];
    for (uint32_t c = 0; c < 3; c++) {
      row[c] = divide_by_255(rgba[c] * alpha + row[c] * (255 - alpha));
    }
  }
}

/// Blends with a row of RGB. `blend` is known when it is compiled, as in blend_rgba.
CPIXELS_INLINE void blend_rgb(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, row += 3) {
    const uint32_t alpha = rgba[3];
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t sum = alpha * mixed(blend, rgba[c], row[c]) + (255 - alpha) * 255 * row[c] + UNIT / 2;
      row[c] = (uint8_t)((float)(int32_t)sum / (float)UNIT);
    }
  }
}

CPIXELS_INLINE void blend_rgba(cpixels_blend blend, const uint8_t *rgba, uint8_t *row, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, row += 4) {
    const uint32_t over = rgba[3];
    const uint32_t under = row[3];
    const uint32_t alpha = 255 * over + under * (255 - over);
    // Where both are transparent, the dividend is 0, and the divisor 1 in place of 0.
    const uint32_t divisor = 255 * alpha + (alpha == 0);
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t sum = over * (255 - under) * 255 * rgba[c] + over * under * mixed(blend, rgba[c], row[c]) +
                           (255 - over) * under * 255 * row[c]; // at most 255^4, below 2^32 with half of the divisor
      row[c] = (uint8_t)((double)(sum + divisor / 2) / (double)(int32_t)divisor);
    }
    row[3] = divide_by_255(alpha);
  }
}

CPIXELS_INLINE void overlay(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
  // The constants let the compiler choose the formula outside of the loops.
  switch (blend) {
  case CPIXELS_BLEND_OVER:
    channels == 3 ? draw_rgb(rgba, row, pixel_count) : blend_rgba(CPIXELS_BLEND_OVER, rgba, row, pixel_count);
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

CPIXELS_AVX2 static void overlay_avx2(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count) {
  overlay(blend, rgba, row, channels, pixel_count);
}

void cpixels_overlay(
    cpixels_blend blend, const uint8_t *rgba, uint8_t *row, uint32_t channels, size_t pixel_count, cpixels_isa isa) {
  CPIXELS_VECTORIZED(overlay, isa)(blend, rgba, row, channels, pixel_count);
}

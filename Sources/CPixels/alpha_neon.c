// Alpha for NEON. Divisions are done in single precision and are still exact, as alpha_avx2.c explains.

#if defined(__aarch64__)

#include "kernels.h"

#include <arm_neon.h>

enum { UNIT = 65025 };

/// Eight 32-bit numbers.
typedef struct eight {
  uint32x4_t low;
  uint32x4_t high;
} eight;

static inline eight widen(uint16x8_t x) {
  return (eight){vmovl_u16(vget_low_u16(x)), vmovl_u16(vget_high_u16(x))};
}

static inline uint32x4_t divide_4(uint32x4_t dividend, uint32x4_t divisor) {
  return vcvtq_u32_f32(vdivq_f32(vcvtq_f32_u32(dividend), vcvtq_f32_u32(divisor)));
}

/// Returns quotients, which are below 256.
static inline uint8x8_t divide(eight dividend, eight divisor) {
  const uint16x4_t low = vmovn_u32(divide_4(dividend.low, divisor.low));
  const uint16x4_t high = vmovn_u32(divide_4(dividend.high, divisor.high));
  return vmovn_u16(vcombine_u16(low, high));
}

void cpixels_premultiply_neon(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const uint8x8x4_t pixels = vld4_u8(rgba + 4 * i);
    const uint8x8_t alpha = pixels.val[3];
    const uint16x8x4_t products = {
        {vmull_u8(pixels.val[0], alpha), vmull_u8(pixels.val[1], alpha), vmull_u8(pixels.val[2], alpha),
         vmull_u8(alpha, vdup_n_u8(255))}};
    vst4q_u16(premultiplied + 4 * i, products);
  }
  cpixels_premultiply_scalar(rgba + 4 * i, premultiplied + 4 * i, pixel_count - i);
}

void cpixels_unpremultiply_neon(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const uint16x8x4_t pixels = vld4q_u16(premultiplied + 4 * i);
    const uint16x8_t alpha = vminq_u16(pixels.val[3], vdupq_n_u16(UNIT));
    const eight divisor = widen(alpha);
    const eight shown_dividend = {vaddq_u32(divisor.low, vdupq_n_u32(127)), vaddq_u32(divisor.high, vdupq_n_u32(127))};
    const eight shown_divisor = {vdupq_n_u32(255), vdupq_n_u32(255)};
    uint8x8x4_t result;
    result.val[3] = divide(shown_dividend, shown_divisor);
    const uint8x8_t is_shown = vtst_u8(result.val[3], result.val[3]);
    for (uint32_t c = 0; c < 3; c++) {
      const eight color = widen(vminq_u16(pixels.val[c], alpha));
      const eight dividend = {
          vmlaq_n_u32(vshrq_n_u32(divisor.low, 1), color.low, 255),
          vmlaq_n_u32(vshrq_n_u32(divisor.high, 1), color.high, 255)};
      result.val[c] = vand_u8(divide(dividend, divisor), is_shown);
    }
    vst4_u8(rgba + 4 * i, result);
  }
  cpixels_unpremultiply_scalar(premultiplied + 4 * i, rgba + 4 * i, pixel_count - i);
}

void cpixels_flatten_neon(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count) {
  const uint32x4_t unit = vdupq_n_u32(UNIT);
  const eight divisor = {unit, unit};
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const uint16x8x4_t pixels = vld4q_u16(premultiplied + 4 * i);
    const uint16x8_t alpha = vminq_u16(pixels.val[3], vdupq_n_u16(UNIT));
    const eight clear = widen(vsubq_u16(vdupq_n_u16(UNIT), alpha));
    uint8x8x3_t result;
    for (uint32_t c = 0; c < 3; c++) {
      const eight color = widen(vminq_u16(pixels.val[c], alpha));
      const uint32x4_t under_low = vmlaq_n_u32(vdupq_n_u32(UNIT / 2), clear.low, background[c]);
      const uint32x4_t under_high = vmlaq_n_u32(vdupq_n_u32(UNIT / 2), clear.high, background[c]);
      const eight dividend = {vmlaq_n_u32(under_low, color.low, 255), vmlaq_n_u32(under_high, color.high, 255)};
      result.val[c] = divide(dividend, divisor);
    }
    vst3_u8(rgb + 3 * i, result);
  }
  cpixels_flatten_scalar(premultiplied + 4 * i, background, rgb + 3 * i, pixel_count - i);
}

#endif

// Color conversions for NEON.

#if defined(__aarch64__)

#include "kernels.h"

#include <arm_neon.h>

static inline int16x8_t load_8(const uint8_t *samples, int16_t center) {
  return vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(vld1_u8(samples))), vdupq_n_s16(center));
}

/// Sums the products of two 16-bit numbers and Q15 fractions, and rounds once.
static inline int16x8_t scale_both(int16x8_t x, int16_t fraction_x, int16x8_t y, int16_t fraction_y) {
  const int32x4_t low = vmlal_n_s16(vmull_n_s16(vget_low_s16(x), fraction_x), vget_low_s16(y), fraction_y);
  const int32x4_t high = vmlal_n_s16(vmull_n_s16(vget_high_s16(x), fraction_x), vget_high_s16(y), fraction_y);
  return vcombine_s16(vrshrn_n_s32(low, 15), vrshrn_n_s32(high, 15));
}

void cpixels_ycc_to_rgb_neon(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count) {
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const int16x8_t luma = load_8(y + i, 0);
    const int16x8_t blue = load_8(cb + i, 128);
    const int16x8_t red = load_8(cr + i, 128);
    // Products with a Q15 fraction, rounded.
    const int16x8_t r = vaddq_s16(vaddq_s16(luma, red), vqrdmulhq_n_s16(red, CPIXELS_RED_OF_CR));
    const int16x8_t g =
        vaddq_s16(vsubq_s16(luma, red), scale_both(blue, CPIXELS_GREEN_OF_CB, red, CPIXELS_GREEN_OF_CR));
    const int16x8_t b = vaddq_s16(vaddq_s16(luma, vshlq_n_s16(blue, 1)), vqrdmulhq_n_s16(blue, CPIXELS_BLUE_OF_CB));
    const uint8x8x3_t pixels = {{vqmovun_s16(r), vqmovun_s16(g), vqmovun_s16(b)}};
    vst3_u8(rgb + 3 * i, pixels);
  }
  cpixels_ycc_to_rgb_scalar(y + i, cb + i, cr + i, rgb + 3 * i, pixel_count - i);
}

#endif

// The filter kernels for NEON.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET
#define LANES 4

#include "filter_lanes.h"

INLINE lanes clamp_lanes(lanes x) {
  return vminq_f32(vmaxq_f32(x, vdupq_n_f32(0)), vdupq_n_f32(1));
}

INLINE lanes root_lanes(lanes x) {
  return vsqrtq_f32(x);
}

// MARK: Color

/// Looks up 16 levels in a table of 256 entries, 64 entries at a time; levels outside those 64 give 0 or keep the
/// previous value.
INLINE uint8x16_t look_up(const uint8x16x4_t parts[4], uint8x16_t levels) {
  uint8x16_t entries = vqtbl4q_u8(parts[0], levels);
  for (uint8_t part = 1; part < 4; part++) {
    levels = vsubq_u8(levels, vdupq_n_u8(64));
    entries = vqtbx4q_u8(entries, parts[part], levels);
  }
  return entries;
}

static void map_levels(
    const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count) {
  uint8x16x4_t parts[4];
  for (int part = 0; part < 4; part++) {
    parts[part] = vld1q_u8_x4(table + 64 * part);
  }
  const uint8x16_t is_kept = vreinterpretq_u8_u32(vdupq_n_u32(channels == 4 ? 0xFF000000 : 0));
  const size_t count = pixel_count * channels;
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t levels = vld1q_u8(source + i);
    vst1q_u8(destination + i, vbslq_u8(is_kept, levels, look_up(parts, levels)));
  }
  for (; i < count; i++) { // 16 is a multiple of 4, so alpha keeps its position
    destination[i] = channels == 4 && i % 4 == 3 ? source[i] : table[source[i]];
  }
}

static void load_block(
    const float *table, uint32_t channels, const uint8_t *source, size_t pixel_count, cpixels_color_block *block) {
  cpixels_split_scalar(source, pixel_count, channels, block->levels[0], CPIXELS_COLOR_BLOCK);
  clear_rest(pixel_count, block);
  for (uint32_t c = 0; c < 3; c++) {
    const uint8_t *levels = block->levels[c];
    float *plane = block->planes[c];
    for (size_t i = 0; i < pixel_count; i += 4) {
      for (size_t lane = i; lane < i + 4; lane++) {
        plane[lane] = table != NULL ? table[levels[lane]] : (float)levels[lane] * (1 / 255.0f);
      }
    }
  }
}

static void store_block(cpixels_color_block *block, uint32_t channels, size_t pixel_count, uint8_t *destination) {
  cpixels_filter_scalar.store_block(block, channels, pixel_count, destination); // vectorized by the compiler
}

// MARK: Area

static void widen(const uint8_t *samples, size_t sample_count, int16_t *wide) {
  cpixels_filter_scalar.widen(samples, sample_count, wide); // vectorized by the compiler
}

static void premultiply(const uint8_t *rgba, size_t pixel_count, int16_t *wide) {
  size_t i = 0;
  for (; i + 8 <= pixel_count; i += 8) {
    const uint8x8x4_t pixels = vld4_u8(rgba + 4 * i);
    int16x8x4_t products;
    for (int c = 0; c < 4; c++) {
      const uint8x8_t factor = c == 3 ? vdup_n_u8(255) : pixels.val[c];
      products.val[c] = vreinterpretq_s16_u16(vrshrq_n_u16(vmull_u8(factor, pixels.val[3]), 2));
    }
    vst4q_s16(wide + 4 * i, products);
  }
  cpixels_filter_scalar.premultiply(rgba + 4 * i, pixel_count - i, wide + 4 * i);
}

static void accumulate(const int16_t *wide, size_t sample_count, uint32_t *sums) {
  cpixels_filter_scalar.accumulate(wide, sample_count, sums); // vectorized by the compiler
}

static void convolve(const cpixels_taps *taps, size_t sample_count, int16_t *wide) {
  const int32x4_t half = vdupq_n_s32(1 << (taps->bits - 1));
  const int32x4_t shift = vdupq_n_s32(-(int32_t)taps->bits);
  for (size_t x = 0; x < sample_count; x += 16) {
    int32x4_t sums[4] = {half, half, half, half};
    for (uint32_t t = 0; t < taps->count; t++) {
      const int16_t *before = taps->before[t] + x;
      const int16_t *after = taps->after[t] + x;
      const int16x8_t left = vaddq_s16(vld1q_s16(before), vld1q_s16(after));
      const int16x8_t right = vaddq_s16(vld1q_s16(before + 8), vld1q_s16(after + 8));
      sums[0] = vmlal_n_s16(sums[0], vget_low_s16(left), taps->weights[t]);
      sums[1] = vmlal_high_n_s16(sums[1], left, taps->weights[t]);
      sums[2] = vmlal_n_s16(sums[2], vget_low_s16(right), taps->weights[t]);
      sums[3] = vmlal_high_n_s16(sums[3], right, taps->weights[t]);
    }
    for (int i = 0; i < 4; i += 2) {
      const int16x4_t low = vqmovn_s32(vshlq_s32(sums[i], shift));
      vst1q_s16(wide + x + 4 * i, vqmovn_high_s32(low, vshlq_s32(sums[i + 1], shift)));
    }
  }
}

/// Blends four samples in 32 bits: `source` is 8-bit, `filtered` is Q6; the result is not clamped.
INLINE int32x4_t blended(int32x4_t source, int32x4_t filtered, int32_t gain, int32x4_t threshold) {
  const int32x4_t all = vsubq_s32(vshlq_n_s32(source, CPIXELS_AREA_BITS), filtered);
  const uint32x4_t is_large = vcgtq_s32(vabsq_s32(all), threshold);
  const int32x4_t difference = vandq_s32(all, vreinterpretq_s32_u32(is_large));
  const int32x4_t base = vshlq_n_s32(source, CPIXELS_AREA_BITS + CPIXELS_GAIN_BITS);
  return vrshrq_n_s32(vmlaq_n_s32(base, difference, gain), CPIXELS_AREA_BITS + CPIXELS_GAIN_BITS);
}

INLINE int16x8_t eight_levels(const uint8_t *levels) {
  return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(levels)));
}

INLINE uint8x8_t bytes_of(int32x4_t low, int32x4_t high) {
  return vqmovun_s16(vqmovn_high_s32(vqmovn_s32(low), high));
}

static void blend(
    const uint8_t *source, const int16_t *wide, size_t sample_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  const int32x4_t thresholds = vdupq_n_s32(threshold);
  size_t i = 0;
  for (; i + 8 <= sample_count; i += 8) {
    const int16x8_t levels = eight_levels(source + i);
    const int16x8_t samples = vld1q_s16(wide + i);
    const int32x4_t low = blended(vmovl_s16(vget_low_s16(levels)), vmovl_s16(vget_low_s16(samples)), gain, thresholds);
    const int32x4_t high = blended(vmovl_high_s16(levels), vmovl_high_s16(samples), gain, thresholds);
    vst1_u8(destination + i, bytes_of(low, high));
  }
  cpixels_filter_scalar.blend(source + i, wide + i, sample_count - i, gain, threshold, destination + i);
}

/// Divides one filtered pixel by its alpha, in Q6; returns the source where alpha is 0.
INLINE int32x4_t straightened(int32x4_t source, int32x4_t filtered) {
  const int32x4_t alphas = vdupq_laneq_s32(filtered, 3);
  const float32x4_t product = vmulq_n_f32(vcvtq_f32_s32(filtered), (float)CPIXELS_AREA_WHITE);
  const float32x4_t quotient = vdivq_f32(product, vcvtq_f32_s32(vmaxq_s32(alphas, vdupq_n_s32(1))));
  const int32x4_t colors = vcvtq_s32_f32(vaddq_f32(quotient, vdupq_n_f32(0.5f)));
  const int32x4_t limited = vminq_s32(colors, vdupq_n_s32(CPIXELS_AREA_WHITE));
  return vbslq_s32(vcltq_s32(alphas, vdupq_n_s32(1)), vshlq_n_s32(source, CPIXELS_AREA_BITS), limited);
}

static void blend_over_alpha(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, int32_t threshold,
    uint8_t *destination) {
  const int32x4_t thresholds = vdupq_n_s32(threshold);
  const uint8x8_t is_alpha = vreinterpret_u8_u32(vdup_n_u32(0xFF000000));
  size_t i = 0;
  for (; i + 2 <= pixel_count; i += 2) {
    const int16x8_t levels = eight_levels(rgba + 4 * i);
    const int16x8_t samples = vld1q_s16(wide + 4 * i);
    const int32x4_t first = vmovl_s16(vget_low_s16(levels));
    const int32x4_t second = vmovl_high_s16(levels);
    const int32x4_t low = blended(first, straightened(first, vmovl_s16(vget_low_s16(samples))), gain, thresholds);
    const int32x4_t high = blended(second, straightened(second, vmovl_high_s16(samples)), gain, thresholds);
    vst1_u8(destination + 4 * i, vbsl_u8(is_alpha, vld1_u8(rgba + 4 * i), bytes_of(low, high)));
  }
  cpixels_filter_scalar.blend_over_alpha(
      rgba + 4 * i, wide + 4 * i, pixel_count - i, gain, threshold, destination + 4 * i);
}

static void blend_premultiplied(
    const uint8_t *rgba, const int16_t *wide, size_t pixel_count, int32_t gain, uint16_t *premultiplied) {
  size_t i = 0;
  for (; i + 2 <= pixel_count; i += 2) {
    int16_t pixels[8];
    cpixels_filter_scalar.premultiply(rgba + 4 * i, 2, pixels);
    const int16x8_t source = vld1q_s16(pixels);
    const int16x8_t difference = vsubq_s16(source, vld1q_s16(wide + 4 * i));
    const int32x4_t low = vrshrq_n_s32(vmulq_n_s32(vmovl_s16(vget_low_s16(difference)), gain), CPIXELS_GAIN_BITS);
    const int32x4_t high = vrshrq_n_s32(vmulq_n_s32(vmovl_high_s16(difference), gain), CPIXELS_GAIN_BITS);
    const int16x8_t sum = vaddq_s16(source, vcombine_s16(vmovn_s32(low), vmovn_s32(high)));
    const int16x8_t limited = vminq_s16(vmaxq_s16(sum, vdupq_n_s16(0)), vdupq_n_s16(16256));
    vst1q_u16(premultiplied + 4 * i, vreinterpretq_u16_s16(vshlq_n_s16(limited, 2)));
  }
  cpixels_filter_scalar.blend_premultiplied(rgba + 4 * i, wide + 4 * i, pixel_count - i, gain, premultiplied + 4 * i);
}

const cpixels_filter_kernels cpixels_filter_neon = CPIXELS_FILTER_KERNELS;

#endif

// The filter kernels for NEON.

#if defined(__aarch64__)

#include <arm_neon.h>

#define TARGET
#define LANES 4

#include "filter_area_lanes.h"
#include "filter_lanes.h"

INLINE lanes clamp_lanes(lanes x) {
  return vminq_f32(vmaxq_f32(x, vdupq_n_f32(0)), vdupq_n_f32(1));
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
  cpixels_filter_scalar.load_block(table, channels, source, pixel_count, block); // lookups, not arithmetic
}

static void store_block(cpixels_color_block *block, uint32_t channels, size_t pixel_count, uint8_t *destination) {
  cpixels_filter_scalar.store_block(block, channels, pixel_count, destination); // vectorized by the compiler
}

// MARK: Area

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

const cpixels_filter_kernels cpixels_filter_neon = CPIXELS_FILTER_KERNELS;

#endif

// The kernels of raw results with NEON, whose conversion to binary16 rounds as half_of in raw_rows.c does.

#include "raw_rows.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#pragma STDC FP_CONTRACT OFF

enum { LANES = 4 };

static void split(const uint8_t *pixels, size_t count, uint8_t *first, uint8_t *second, uint8_t *third) {
  raw_split(pixels, count, first, second, third);
}

static inline void store(float32x4_t values, ccodecs_raw_element element, uint8_t *output) {
  if (element == CCODECS_RAW_F32) {
    vst1q_u8(output, vreinterpretq_u8_f32(values));
  } else if (element == CCODECS_RAW_F16) {
    vst1_u8(output, vreinterpret_u8_f16(vcvt_f16_f32(values)));
  } else {
    const uint32x4_t bits = vreinterpretq_u32_f32(values);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    vst1_u8(output, vreinterpret_u8_u16(vshrn_n_u32(rounded, 16)));
  }
}

/// Converts RAW_PERIOD samples.
static inline void convert_period(
    const uint8_t *samples, const raw_scaling *scaling, ccodecs_raw_element element, uint8_t *output) {
  const size_t size = raw_element_bytes(element);
  for (size_t i = 0; i < RAW_PERIOD; i += 2 * LANES) {
    const uint16x8_t wide = vmovl_u8(vld1_u8(samples + i));
    const float32x4_t low = vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide)));
    const float32x4_t high = vcvtq_f32_u32(vmovl_u16(vget_high_u16(wide)));
    const float32x4_t low_product = vmulq_f32(low, vld1q_f32(scaling->scales + i));
    const float32x4_t high_product = vmulq_f32(high, vld1q_f32(scaling->scales + i + LANES));
    store(vaddq_f32(low_product, vld1q_f32(scaling->offsets + i)), element, output + i * size);
    store(vaddq_f32(high_product, vld1q_f32(scaling->offsets + i + LANES)), element, output + (i + LANES) * size);
  }
}

static void convert(
    const uint8_t *samples, size_t count, const raw_scaling *scaling, ccodecs_raw_element element, uint8_t *output) {
  const size_t size = raw_element_bytes(element);
  size_t i = 0;
  for (; i + RAW_PERIOD <= count; i += RAW_PERIOD) {
    convert_period(samples + i, scaling, element, output + i * size);
  }
  if (i < count) {
    uint8_t rest[RAW_PERIOD] = {0}, converted[4 * RAW_PERIOD];
    memcpy(rest, samples + i, count - i);
    convert_period(rest, scaling, element, converted);
    memcpy(output + i * size, converted, (count - i) * size);
  }
}

const raw_kernels ccodecs_raw_neon = {.split = split, .convert = convert};

#endif

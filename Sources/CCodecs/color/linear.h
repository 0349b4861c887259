// Conversion of linear light to the sRGB signal, and of samples of 16 bits to 8. Private to CCodecs.

#pragma once

#include <math.h>
#include <stdint.h>

enum { CCODECS_LINEAR_STEPS = 4096 };

/// A table of the sRGB signal, 0 to 65535, at equal steps of linear light from 0 to 1.
typedef struct ccodecs_linear {
  float signals[CCODECS_LINEAR_STEPS + 1];
} ccodecs_linear;

/// Returns the sRGB signal of linear light, both 0 to 1. Source: IEC 61966-2-1.
static inline double ccodecs_srgb_signal(double light) {
  return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

/// Fills the table.
void ccodecs_linear_fill(ccodecs_linear *linear);

/// Returns the sRGB signal of `light`, with an error of at most two of 65535. Values outside 0 to 1 are clamped; NaN
/// returns 0.
static inline uint16_t ccodecs_linear_signal(const ccodecs_linear *linear, float light) {
  const float wanted = CCODECS_LINEAR_STEPS * light;
  const float above = wanted > 0 ? wanted : 0; // also for NaN
  const float place = above < CCODECS_LINEAR_STEPS ? above : CCODECS_LINEAR_STEPS;
  const int step = place < CCODECS_LINEAR_STEPS ? (int)place : CCODECS_LINEAR_STEPS - 1;
  const float *signals = linear->signals + step;
  return (uint16_t)(signals[0] + (signals[1] - signals[0]) * (place - (float)step) + 0.5f);
}

/// Returns the level of 8 bits that is nearest to a sample of 16 bits.
static inline uint8_t ccodecs_narrow(uint32_t sample) {
  return (uint8_t)((sample * 255 + 32895) >> 16);
}

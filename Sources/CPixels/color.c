// Alpha and colour. Each loop is written once and compiled twice: plainly, and for AVX2, where the compiler makes
// vectors of it. The arithmetic is in integers, so both give the same samples.

#include "kernels.h"

#define LOOP static inline __attribute__((always_inline)) void
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
/// Defines NAME to run LOOP_NAME compiled for `isa`.
#define DISPATCH(NAME, PARAMETERS, CALL)                                                                               \
  AVX2 static void NAME##_avx2 PARAMETERS { NAME##_loop CALL; }                                                        \
  static void NAME##_scalar PARAMETERS { NAME##_loop CALL; }
#define RUN(NAME, ISA, CALL)                                                                                           \
  if (cpixels_isa_resolve(ISA) == CPIXELS_ISA_AVX2) {                                                                  \
    NAME##_avx2 CALL;                                                                                                  \
  } else {                                                                                                             \
    NAME##_scalar CALL;                                                                                                \
  }
#else
#define DISPATCH(NAME, PARAMETERS, CALL)                                                                               \
  static void NAME##_scalar PARAMETERS { NAME##_loop CALL; }
#define RUN(NAME, ISA, CALL)                                                                                           \
  (void)(ISA);                                                                                                         \
  NAME##_scalar CALL;
#endif

/// What 1 is in premultiplied samples: 255 x 255.
enum { UNIT = 65025 };

LOOP premultiply_loop(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint16_t alpha = rgba[3];
    premultiplied[0] = (uint16_t)(rgba[0] * alpha);
    premultiplied[1] = (uint16_t)(rgba[1] * alpha);
    premultiplied[2] = (uint16_t)(rgba[2] * alpha);
    premultiplied[3] = (uint16_t)(255 * alpha);
  }
}
DISPATCH(premultiply, (const uint8_t *in, uint16_t *out, size_t count), (in, out, count))

void cpixels_premultiply(const uint8_t *rgba, uint16_t *premultiplied, size_t pixel_count, cpixels_isa isa) {
  RUN(premultiply, isa, (rgba, premultiplied, pixel_count))
}

LOOP unpremultiply_loop(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgba += 4, premultiplied += 4) {
    const uint32_t alpha = premultiplied[3] < UNIT ? premultiplied[3] : UNIT;
    const uint32_t rounded = (alpha + 127) / 255;
    for (int c = 0; c < 3; c++) {
      const uint32_t color = premultiplied[c] < alpha ? premultiplied[c] : alpha;
      rgba[c] = rounded == 0 ? 0 : (uint8_t)((color * 255 + alpha / 2) / alpha);
    }
    rgba[3] = (uint8_t)rounded;
  }
}
DISPATCH(unpremultiply, (const uint16_t *in, uint8_t *out, size_t count), (in, out, count))

void cpixels_unpremultiply(const uint16_t *premultiplied, uint8_t *rgba, size_t pixel_count, cpixels_isa isa) {
  RUN(unpremultiply, isa, (premultiplied, rgba, pixel_count))
}

LOOP flatten_loop(const uint16_t *premultiplied, const uint8_t *background, uint8_t *rgb, size_t pixel_count) {
  const uint32_t under[3] = {background[0], background[1], background[2]};
  for (size_t i = 0; i < pixel_count; i++, rgb += 3, premultiplied += 4) {
    const uint32_t alpha = premultiplied[3] < UNIT ? premultiplied[3] : UNIT;
    for (int c = 0; c < 3; c++) {
      const uint32_t color = premultiplied[c] < alpha ? premultiplied[c] : alpha;
      rgb[c] = (uint8_t)((color * 255 + under[c] * (UNIT - alpha) + UNIT / 2) / UNIT);
    }
  }
}
DISPATCH(
    flatten, (const uint16_t *in, const uint8_t *background, uint8_t *out, size_t count),
    (in, background, out, count))

void cpixels_flatten(
    const uint16_t *premultiplied, const uint8_t background[3], uint8_t *rgb, size_t pixel_count, cpixels_isa isa) {
  RUN(flatten, isa, (premultiplied, background, rgb, pixel_count))
}

static inline uint8_t clamp_to_byte(int32_t value) {
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/// Weights in Q16: 1.402, 0.344136, 0.714136, 1.772. Source: JFIF 1.02, "Conversion to and from RGB".
LOOP ycc_to_rgb_loop(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++) {
    const int32_t luma = (y[i] << 16) + (1 << 15);
    const int32_t blue = cb[i] - 128;
    const int32_t red = cr[i] - 128;
    rgb[3 * i] = clamp_to_byte((luma + 91881 * red) >> 16);
    rgb[3 * i + 1] = clamp_to_byte((luma - 22554 * blue - 46802 * red) >> 16);
    rgb[3 * i + 2] = clamp_to_byte((luma + 116130 * blue) >> 16);
  }
}
DISPATCH(
    ycc_to_rgb, (const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t count),
    (y, cb, cr, rgb, count))

void cpixels_ycc_to_rgb(
    const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *rgb, size_t pixel_count, cpixels_isa isa) {
  RUN(ycc_to_rgb, isa, (y, cb, cr, rgb, pixel_count))
}

void cpixels_gray_to_rgb(const uint8_t *gray, uint8_t *rgb, size_t pixel_count) {
  for (size_t i = 0; i < pixel_count; i++, rgb += 3) {
    rgb[0] = rgb[1] = rgb[2] = gray[i];
  }
}

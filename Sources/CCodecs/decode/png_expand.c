// Rows of a PNG as stored to 8 bits a sample in gray, RGB or RGBA.

#include "png.h"

#include "../bytes.h"

#include <string.h>

/// 16 bits to 8, rounded. Exact: the same as v * 255 / 65535 to the nearest.
static inline uint8_t narrow(uint32_t v) {
  return (uint8_t)((v * 255 + 32895) >> 16);
}

/// Sample `x` of a row with less than 8 bits a sample.
static inline uint32_t packed(const uint8_t *stored, uint32_t x, uint32_t bits) {
  const uint32_t at = x * bits;
  return (stored[at >> 3] >> (8 - bits - (at & 7))) & ((1u << bits) - 1);
}

bool ccodecs_png_is_plain(const png_expansion *e) {
  return e->bit_depth == 8 && !e->has_key && (e->color_type == 0 || e->color_type == 2 || e->color_type == 6);
}

static void expand_gray(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  const uint32_t bits = e->bit_depth;
  const uint32_t factor = bits >= 8 ? 1 : 255 / ((1u << bits) - 1);
  for (uint32_t x = 0; x < width; x++) {
    const uint32_t sample = bits == 16 ? ccodecs_be16(stored + 2 * (size_t)x) : bits == 8 ? stored[x] : packed(stored, x, bits);
    const uint8_t gray = bits == 16 ? narrow(sample) : (uint8_t)(sample * factor);
    if (e->channels == 1) {
      given[x] = gray;
      continue;
    }
    uint8_t *pixel = given + 4 * (size_t)x;
    pixel[0] = pixel[1] = pixel[2] = gray;
    pixel[3] = e->has_key && sample == e->key[0] ? 0 : 255;
  }
}

static void expand_rgb(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  const size_t sample_bytes = e->bit_depth / 8;
  for (uint32_t x = 0; x < width; x++) {
    const uint8_t *p = stored + 3 * sample_bytes * x;
    uint8_t *pixel = given + (size_t)e->channels * x;
    bool is_key = e->has_key;
    for (size_t i = 0; i < 3; i++) {
      const uint32_t sample = sample_bytes == 2 ? ccodecs_be16(p + 2 * i) : p[i];
      is_key = is_key && sample == e->key[i];
      pixel[i] = sample_bytes == 2 ? narrow(sample) : (uint8_t)sample;
    }
    if (e->channels == 4) {
      pixel[3] = is_key ? 0 : 255;
    }
  }
}

static bool expand_palette(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  uint32_t largest = 0;
  for (uint32_t x = 0; x < width; x++) {
    const uint32_t index = e->bit_depth == 8 ? stored[x] : packed(stored, x, e->bit_depth);
    largest = index > largest ? index : largest;
    memcpy(given + (size_t)e->channels * x, e->palette[index], e->channels == 4 ? 4 : 3);
  }
  return largest < e->palette_count;
}

static void expand_gray_alpha(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  const bool is_wide = e->bit_depth == 16;
  for (uint32_t x = 0; x < width; x++) {
    const uint8_t *p = stored + (is_wide ? 4 : 2) * (size_t)x;
    uint8_t *pixel = given + 4 * (size_t)x;
    pixel[0] = pixel[1] = pixel[2] = is_wide ? narrow(ccodecs_be16(p)) : p[0];
    pixel[3] = is_wide ? narrow(ccodecs_be16(p + 2)) : p[1];
  }
}

static void expand_rgba(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  for (size_t i = 0; i < 4 * (size_t)width; i++) {
    given[i] = e->bit_depth == 16 ? narrow(ccodecs_be16(stored + 2 * i)) : stored[i];
  }
}

bool ccodecs_png_expand(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  switch (e->color_type) {
  case 0:
    expand_gray(e, stored, given, width);
    return true;
  case 2:
    expand_rgb(e, stored, given, width);
    return true;
  case 3:
    return expand_palette(e, stored, given, width);
  case 4:
    expand_gray_alpha(e, stored, given, width);
    return true;
  default:
    expand_rgba(e, stored, given, width);
    return true;
  }
}

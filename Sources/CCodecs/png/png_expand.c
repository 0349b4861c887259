// Expansion of stored PNG rows to gray, RGB or RGBA, with 8 bits per sample, or 16 in native byte order.

#include "png_decoder.h"

#include "../memory/bytes.h"

#include <string.h>

/// Returns sample `x` of a row with less than 8 bits per sample.
static inline uint32_t packed(const uint8_t *stored, uint32_t x, uint32_t bits) {
  const uint32_t at = x * bits;
  return (stored[at >> 3] >> (8 - bits - (at & 7))) & ((1u << bits) - 1);
}

bool ccodecs_png_is_plain(const png_expansion *e) {
  const uint8_t channels = e->color_type == 0 ? 1 : e->color_type == 2 ? 3 : e->color_type == 6 ? 4 : 0;
  return e->bit_depth == 8 && !e->has_key && channels == e->channels;
}

static void expand_gray(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  const uint32_t bits = e->bit_depth;
  const uint32_t factor = bits >= 8 ? 1 : 255 / ((1u << bits) - 1);
  for (uint32_t x = 0; x < width; x++) {
    const uint32_t sample = bits == 8 ? stored[x] : packed(stored, x, bits);
    const uint8_t gray = (uint8_t)(sample * factor);
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
  for (uint32_t x = 0; x < width; x++) {
    const uint8_t *p = stored + 3 * (size_t)x;
    uint8_t *pixel = given + (size_t)e->channels * x;
    bool is_key = e->has_key;
    for (size_t i = 0; i < 3; i++) {
      is_key = is_key && p[i] == e->key[i];
      pixel[i] = p[i];
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

static void expand_gray_alpha(const uint8_t *stored, uint8_t *given, uint32_t width) {
  for (size_t x = 0; x < width; x++) {
    memset(given + 4 * x, stored[2 * x], 3);
    given[4 * x + 3] = stored[2 * x + 1];
  }
}

/// Expands rows with 16 bits per sample, of any color type except palette.
static void expand_16bit(const png_expansion *e, const uint8_t *stored, uint16_t *given, uint32_t width) {
  const uint32_t colors = e->color_type == 0 || e->color_type == 4 ? 1 : 3;
  const uint32_t samples = colors + (e->color_type >= 4 ? 1 : 0);
  if (samples == e->channels) {
    for (size_t i = 0; i < (size_t)samples * width; i++) {
      given[i] = (uint16_t)ccodecs_be16(stored + 2 * i);
    }
    return;
  }
  for (uint32_t x = 0; x < width; x++, stored += 2 * (size_t)samples, given += e->channels) {
    bool is_key = e->has_key;
    for (uint32_t i = 0; i < 3; i++) {
      given[i] = (uint16_t)ccodecs_be16(stored + (i < colors ? 2 * i : 0));
      is_key = is_key && (i >= colors || given[i] == e->key[i]);
    }
    given[3] = samples > colors ? (uint16_t)ccodecs_be16(stored + 2 * colors) : is_key ? 0 : 65535;
  }
}

bool ccodecs_png_expand(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  if (e->bit_depth == 16) {
    expand_16bit(e, stored, (uint16_t *)(void *)given, width);
    return true;
  }
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
    expand_gray_alpha(stored, given, width);
    return true;
  default:
    memcpy(given, stored, 4 * (size_t)width);
    return true;
  }
}

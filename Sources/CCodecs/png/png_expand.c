// Expansion of stored PNG rows to gray, RGB or RGBA, with 8 bits per sample, or 16 in native byte order.

#include "png_decoder.h"

#include "../memory/bytes.h"

#include <string.h>

/// The number of samples with less than 8 bits that are unpacked at once, a multiple of 8.
enum { UNPACKED = 512 };

/// Unpacks samples with less than 8 bits, of whole bytes: up to 3 more samples are written.
static void unpack(const uint8_t *stored, uint32_t bits, uint32_t count, uint8_t *samples) {
  switch (bits) {
  case 1:
    for (uint32_t x = 0; x < count; x++) {
      samples[x] = stored[x >> 3] >> (~x & 7) & 1;
    }
    break;
  case 2:
    for (uint32_t x = 0; x < count; x += 4, stored++) {
      for (uint32_t i = 0; i < 4; i++) {
        samples[x + i] = *stored >> (6 - 2 * i) & 3;
      }
    }
    break;
  default:
    for (uint32_t x = 0; x < count; x += 2, stored++) {
      samples[x] = *stored >> 4;
      samples[x + 1] = *stored & 15;
    }
    break;
  }
}

bool ccodecs_png_is_plain(const png_expansion *e) {
  const uint8_t channels = e->color_type == 0 ? 1 : e->color_type == 2 ? 3 : e->color_type == 6 ? 4 : 0;
  return e->bit_depth == 8 && !e->has_key && channels == e->channels;
}

/// Expands gray samples, one byte each and not yet scaled.
static void expand_gray(const png_expansion *e, const uint8_t *samples, uint8_t *given, uint32_t width) {
  const uint32_t factor = e->bit_depth >= 8 ? 1 : 255 / ((1u << e->bit_depth) - 1);
  if (e->channels == 1) {
    for (uint32_t x = 0; x < width; x++) {
      given[x] = (uint8_t)(samples[x] * factor);
    }
    return;
  }
  for (uint32_t x = 0; x < width; x++) {
    uint8_t *pixel = given + 4 * (size_t)x;
    pixel[0] = pixel[1] = pixel[2] = (uint8_t)(samples[x] * factor);
    pixel[3] = e->has_key && samples[x] == e->key[0] ? 0 : 255;
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

/// Expands indices, one byte each. Returns false if one is outside the palette.
static bool expand_palette(const png_expansion *e, const uint8_t *indices, uint8_t *given, uint32_t width) {
  const size_t channels = e->channels;
  uint32_t largest = 0;
  for (uint32_t x = 0; x < width; x++) {
    largest = indices[x] > largest ? indices[x] : largest;
  }
  // Four bytes are copied also of the pixels that have three, except the last one.
  for (uint32_t x = 0; x + 1 < width; x++) {
    memcpy(given + channels * x, e->palette[indices[x]], 4);
  }
  for (size_t i = 0; i < channels; i++) {
    given[channels * (width - 1) + i] = e->palette[indices[width - 1]][i];
  }
  return largest < e->palette_count;
}

/// Expands a row of gray samples or indices, of which several may share a byte. Returns false if an index is outside
/// the palette.
static bool expand_samples(const png_expansion *e, const uint8_t *stored, uint8_t *given, uint32_t width) {
  uint8_t unpacked[UNPACKED];
  bool is_good = true;
  const uint32_t maximum = e->bit_depth == 8 ? width : UNPACKED;
  for (uint32_t x = 0; x < width; x += maximum) {
    const uint32_t count = width - x < maximum ? width - x : maximum;
    const uint8_t *samples = stored + x * (size_t)e->bit_depth / 8;
    if (e->bit_depth < 8) {
      unpack(samples, e->bit_depth, count, unpacked);
      samples = unpacked;
    }
    uint8_t *to = given + (size_t)e->channels * x;
    if (e->color_type == 0) {
      expand_gray(e, samples, to, count);
    } else {
      is_good = expand_palette(e, samples, to, count) && is_good;
    }
  }
  return is_good;
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
  case 3:
    return expand_samples(e, stored, given, width);
  case 2:
    expand_rgb(e, stored, given, width);
    return true;
  case 4:
    expand_gray_alpha(stored, given, width);
    return true;
  default:
    memcpy(given, stored, 4 * (size_t)width);
    return true;
  }
}

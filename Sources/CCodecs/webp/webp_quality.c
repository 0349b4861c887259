// Estimates the quality that a WebP was compressed with from its header.

#include "webp_quality.h"

#include <math.h>
#include <stdbool.h>

uint8_t ccodecs_webp_quality(uint32_t index) {
  uint8_t quality = 1;
  for (; quality < 100; quality++) {
    // libwebp's QualityToCompression, and the index that libwebp derives from it.
    const double linear = quality < 75 ? quality / 100.0 * 2 / 3 : 2 * quality / 100.0 - 1;
    if ((uint32_t)(127 * (1 - cbrt(linear))) <= index) {
      break;
    }
  }
  return quality;
}

/// The boolean decoder of RFC 6386, section 7.3, for bits of equal probability. Zeros follow the last byte.
typedef struct bool_reader {
  const uint8_t *bytes;
  size_t count;
  uint32_t value; ///< Two bytes.
  uint32_t range;
  int bits; ///< Bits shifted since the last byte was read.
} bool_reader;

static uint32_t next_byte(bool_reader *r) {
  if (r->count == 0) {
    return 0;
  }
  r->count--;
  return *r->bytes++;
}

static uint32_t read_bits(bool_reader *r, int count) {
  uint32_t result = 0;
  for (; count > 0; count--) {
    const uint32_t split = 1 + ((r->range - 1) >> 1);
    const bool bit = r->value >= split << 8;
    r->value -= bit ? split << 8 : 0;
    r->range = bit ? r->range - split : split;
    while (r->range < 128) {
      r->value <<= 1;
      r->range <<= 1;
      if (++r->bits == 8) {
        r->bits = 0;
        r->value |= next_byte(r);
      }
    }
    result = result << 1 | bit;
  }
  return result;
}

/// Reads a flag and, if it is set, a magnitude of `count` bits and its sign.
static int32_t read_optional(bool_reader *r, int count) {
  if (read_bits(r, 1) == 0) {
    return 0;
  }
  const int32_t magnitude = (int32_t)read_bits(r, count);
  return read_bits(r, 1) != 0 ? -magnitude : magnitude;
}

int32_t ccodecs_vp8_quantizer(const uint8_t *bytes, size_t count) {
  enum { FRAME_HEADER_BYTES = 10, NEEDED_BYTES = CCODECS_VP8_HEADER_BYTES };
  if (count < NEEDED_BYTES || (bytes[0] & 1) != 0 || bytes[3] != 0x9D || bytes[4] != 0x01 || bytes[5] != 0x2A) {
    return -1;
  }
  bool_reader r = {.bytes = bytes + FRAME_HEADER_BYTES, .count = NEEDED_BYTES - FRAME_HEADER_BYTES, .range = 255};
  r.value = next_byte(&r) << 8;
  r.value |= next_byte(&r);
  read_bits(&r, 2); // color space, clamping
  int32_t segments[4] = {0};
  bool has_quantizers = false;
  bool is_absolute = false;
  if (read_bits(&r, 1) != 0) { // 9.3
    const bool has_map = read_bits(&r, 1) != 0;
    has_quantizers = read_bits(&r, 1) != 0;
    is_absolute = has_quantizers && read_bits(&r, 1) != 0;
    for (int i = 0; has_quantizers && i < 4; i++) {
      segments[i] = read_optional(&r, 7);
    }
    for (int i = 0; has_quantizers && i < 4; i++) {
      read_optional(&r, 6); // loop filter levels
    }
    for (int i = 0; has_map && i < 3; i++) {
      if (read_bits(&r, 1) != 0) {
        read_bits(&r, 8);
      }
    }
  }
  read_bits(&r, 1 + 6 + 3); // 9.6: filter type, level, sharpness
  if (read_bits(&r, 1) != 0 && read_bits(&r, 1) != 0) {
    for (int i = 0; i < 8; i++) {
      read_optional(&r, 6);
    }
  }
  read_bits(&r, 2); // 9.5: partitions
  const int32_t base = (int32_t)read_bits(&r, 7);
  int32_t sum = 0;
  for (int i = 0; i < 4; i++) {
    const int32_t index = is_absolute ? segments[i] : base + segments[i];
    sum += index < 0 ? 0 : index > 127 ? 127 : index;
  }
  return (sum + 3) / 4;
}

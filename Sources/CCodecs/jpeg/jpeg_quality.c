// The quality that a picture was compressed with, as far as its header tells.

#include "../core/rewriter.h"

#include <math.h>

// MARK: JPEG

/// T.81 annex K.1, as libjpeg scales it for a quality (its order does not matter to a sum).
static uint32_t table_sum(const uint8_t table[64], uint32_t quality) {
  const uint32_t scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  uint32_t sum = 0;
  for (int i = 0; i < 64; i++) {
    const uint32_t entry = (table[i] * scale + 50) / 100;
    sum += entry < 1 ? 1 : entry > 255 ? 255 : entry;
  }
  return sum;
}

uint8_t ccodecs_jpeg_quality(uint32_t luma_sum, uint32_t chroma_sum) {
  static const uint8_t luma[64] = {
      16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
      14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
      18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
      49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
  };
  static const uint8_t chroma[64] = {
      17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
      24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
      99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
      99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
  };
  uint8_t quality = 1;
  while (quality < 100 && (table_sum(luma, quality) > luma_sum || table_sum(chroma, quality) > chroma_sum)) {
    quality++;
  }
  return quality;
}

// MARK: WebP

uint8_t ccodecs_webp_quality(uint32_t index) {
  uint8_t quality = 1;
  for (; quality < 100; quality++) {
    // libwebp's QualityToCompression, and the index that it makes of it.
    const double linear = quality < 75 ? quality / 100.0 * 2 / 3 : 2 * quality / 100.0 - 1;
    if ((uint32_t)(127 * (1 - cbrt(linear))) <= index) {
      break;
    }
  }
  return quality;
}

/// The boolean decoder of RFC 6386, section 7.3, for bits that are as likely as not. Zeros follow the last byte.
typedef struct bool_reader {
  const uint8_t *bytes;
  size_t count;
  uint32_t value; ///< Two bytes.
  uint32_t range;
  int bits;       ///< Shifted since the last byte was taken.
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

/// A flag, and where it is set a magnitude of `count` bits and its sign.
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
  read_bits(&r, 2); // colour space, clamping
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

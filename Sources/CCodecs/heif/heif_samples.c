// Interleaves planes, and scales their samples to 8 or 16 bits. libheif would do it for the whole bitmap, with two more
// copies of it.

#include "heif_samples.h"

#ifdef CCODECS_HEIF

#include "../memory/bytes.h"

bool heif_planes_open(
    const struct heif_image *image, bool is_gray, uint32_t width, uint32_t height, heif_planes *planes) {
  static const enum heif_channel colors[4] = {heif_channel_R, heif_channel_G, heif_channel_B, heif_channel_Alpha};
  static const enum heif_channel gray[1] = {heif_channel_Y};
  const enum heif_channel *channels = is_gray ? gray : colors;
  *planes = (heif_planes){0};
  for (int i = 0; i < (is_gray ? 1 : 4); i++) {
    const int bits = heif_image_get_bits_per_pixel_range(image, channels[i]);
    int stride = 0;
    const uint8_t *bytes = heif_image_get_plane_readonly(image, channels[i], &stride);
    const bool is_large = heif_image_get_width(image, channels[i]) >= (int)width &&
                          heif_image_get_height(image, channels[i]) >= (int)height && bits >= 1 && bits <= 16 &&
                          (size_t)stride >= (size_t)width * (bits > 8 ? 2 : 1);
    if (bytes == NULL && channels[i] == heif_channel_Alpha) {
      break;
    }
    if (bytes == NULL || stride < 0 || !is_large) {
      return false;
    }
    planes->bytes[i] = bytes;
    planes->row_strides[i] = (size_t)stride;
    planes->largest[i] = (1u << bits) - 1;
  }
  return true;
}

/// Expands a sample of limited range to full range; both have a maximum of `largest`.
static uint32_t expand_range(uint32_t sample, uint32_t largest) {
  const uint32_t unit = (largest + 1) / 256;
  const uint32_t above = sample > 16 * unit ? sample - 16 * unit : 0;
  const uint32_t full = (uint32_t)(((uint64_t)above * largest + 219 * unit / 2) / (219 * unit));
  return full > largest ? largest : full;
}

/// Writes one channel of a row, with every sample scaled to `most`, the maximum of the result.
static void put_channel(
    const heif_planes *planes, const heif_samples *s, uint32_t channel, const uint8_t *row, uint32_t count,
    uint8_t *out) {
  const uint32_t largest = planes->largest[channel];
  const uint32_t maximum = s->is_16bit ? 65535 : 255;
  const bool is_limited = s->is_limited_gray && channel < 3;
  uint16_t *out16 = (uint16_t *)(void *)out;
  for (uint32_t x = 0; x < count; x++) {
    uint32_t sample = largest > 255 ? ccodecs_le16(row + 2 * (size_t)x) : row[x];
    if (is_limited) {
      sample = expand_range(sample, largest);
    }
    if (largest != maximum) {
      sample = sample >= largest ? maximum : (sample * maximum + largest / 2) / largest;
    }
    const size_t at = (size_t)x * s->channels + channel;
    if (s->is_16bit) {
      out16[at] = (uint16_t)sample;
    } else {
      out[at] = (uint8_t)sample;
    }
  }
}

static void put_opaque(const heif_samples *s, uint32_t count, uint8_t *out) {
  for (uint32_t x = 0; x < count; x++) {
    memset(out + ((size_t)x * 4 + 3) * (s->is_16bit ? 2 : 1), 0xFF, s->is_16bit ? 2 : 1);
  }
}

/// Interleaves samples of eight bits, which is the usual case.
static void put_bytes(const uint8_t *const rows[4], uint32_t channels, uint32_t count, uint8_t *out) {
  for (uint32_t x = 0; x < count; x++, out += channels) {
    out[0] = rows[0][x];
    out[1] = rows[1][x];
    out[2] = rows[2][x];
    if (channels == 4) {
      out[3] = rows[3][x];
    }
  }
}

/// Converts premultiplied colors to straight alpha.
static void divide_alpha(const heif_samples *s, uint32_t count, uint8_t *out) {
  uint16_t *out16 = (uint16_t *)(void *)out;
  const uint32_t maximum = s->is_16bit ? 65535 : 255;
  for (size_t i = 0; i < (size_t)count * 4; i += 4) {
    const uint32_t alpha = s->is_16bit ? out16[i + 3] : out[i + 3];
    for (size_t c = i; c < i + 3 && alpha > 0; c++) {
      const uint32_t sample = s->is_16bit ? out16[c] : out[c];
      const uint32_t quotient = (sample * maximum + alpha / 2) / alpha;
      const uint32_t straight = quotient > maximum ? maximum : quotient;
      if (s->is_16bit) {
        out16[c] = (uint16_t)straight;
      } else {
        out[c] = (uint8_t)straight;
      }
    }
  }
}

void heif_planes_put(
    const heif_planes *planes, const heif_samples *s, uint32_t x, uint32_t y, uint32_t count, uint8_t *out) {
  const uint8_t *rows[4] = {NULL};
  bool is_plain = !s->is_16bit && !s->is_limited_gray;
  for (uint32_t i = 0; i < s->channels; i++) {
    if (planes->bytes[i] != NULL) {
      rows[i] = planes->bytes[i] + y * planes->row_strides[i] + (size_t)x * (planes->largest[i] > 255 ? 2 : 1);
    }
    is_plain = is_plain && rows[i] != NULL && planes->largest[i] == 255;
  }
  if (is_plain && s->channels == 1) {
    memcpy(out, rows[0], count);
  } else if (is_plain) {
    put_bytes(rows, s->channels, count, out);
  }
  for (uint32_t i = 0; i < s->channels && !is_plain; i++) {
    if (rows[i] != NULL) {
      put_channel(planes, s, i, rows[i], count, out);
    } else {
      put_opaque(s, count, out);
    }
  }
  if (s->is_premultiplied && s->channels == 4) {
    divide_alpha(s, count, out);
  }
}

#endif

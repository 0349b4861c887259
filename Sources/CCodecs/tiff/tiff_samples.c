// Conversion of libtiff's samples to those of the band, and of the band to rows with 8 bits per sample, or with 16 if
// the samples have more than 8. Source: TIFF 6.0, with Adobe's Technical Notes.

#include "../memory/bytes.h"
#include "tiff_decoder.h"

#ifdef CCODECS_TIFF

#include <math.h>

static float half_to_float(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const float fraction = (float)(half & 1023);
  const float value = exponent == 0    ? ldexpf(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                       : ldexpf(fraction + 1024, exponent - 25);
  return (half & 0x8000) != 0 ? -value : value;
}

/// Converts a floating-point sample. RGB is linear light, with 1 as white, unless a profile with linear light describes
/// it. Gray has no defined white, and is read as 0 to 255 (both as in libvips).
static uint16_t float_to_sample(const tiff_decoder *d, float value, bool is_alpha) {
  const bool is_light = !is_alpha && d->colors == 3;
  if (is_light && !d->has_linear_profile) {
    return ccodecs_linear_signal(&d->linear, value);
  }
  const float scaled = value * (is_alpha || is_light ? 65535 : 257) + 0.5f;
  return (uint16_t)(!(scaled > 0) ? 0 : scaled > 65535 ? 65535 : scaled); // NaN becomes 0
}

/// Returns `bits` bits from bit `at` on, most significant first.
static uint32_t read_bits(const uint8_t *bytes, uint64_t at, uint32_t bits) {
  uint64_t value = 0;
  uint32_t buffered = 0;
  const uint8_t *p = bytes + at / 8;
  const uint32_t skipped = (uint32_t)(at % 8);
  for (; buffered < bits + skipped; buffered += 8) {
    value = value << 8 | *p++;
  }
  return (uint32_t)(value >> (buffered - bits - skipped)) & (uint32_t)(0xFFFFFFFFu >> (32 - bits));
}

/// Returns a sample of at most eight bits: the index of a color, or a value of 0 to 255.
static uint8_t read_sample(const tiff_decoder *d, const uint8_t *row, size_t index, bool is_alpha) {
  if (d->bits == 8) {
    return row[index];
  }
  const uint32_t value = read_bits(row, (uint64_t)index * d->bits, d->bits);
  const uint32_t largest = (1u << d->bits) - 1;
  const bool is_index = d->photometric == PHOTOMETRIC_PALETTE && !is_alpha;
  return (uint8_t)(is_index ? value : (value * 255 + largest / 2) / largest);
}

/// Converts an integer of more than eight bits. Negative values of signed integers are black, as in Pillow. For eight
/// bits the sign is ignored.
static uint16_t integer_to_16bit(const tiff_decoder *d, uint32_t value) {
  const bool is_signed = d->sample_format == SAMPLEFORMAT_INT;
  const uint32_t bits = d->bits - (is_signed ? 1 : 0);
  if (bits == 16) {
    return (uint16_t)value;
  }
  const uint64_t largest = (UINT64_C(1) << bits) - 1;
  return value > largest ? 0 : (uint16_t)((value * UINT64_C(65535) + largest / 2) / largest);
}

/// Returns a sample of more than eight bits. libtiff has already converted 16 and 32 bits to the native byte order.
static uint16_t read_16bit_sample(const tiff_decoder *d, const uint8_t *row, size_t index, bool is_alpha) {
  const bool is_float = d->sample_format == SAMPLEFORMAT_IEEEFP;
  uint16_t value16;
  uint32_t value32;
  float number;
  switch (d->bits) {
  case 16:
    memcpy(&value16, row + 2 * index, 2);
    return is_float ? float_to_sample(d, half_to_float(value16), is_alpha) : integer_to_16bit(d, value16);
  case 32:
    memcpy(&value32, row + 4 * index, 4);
    memcpy(&number, row + 4 * index, 4);
    return is_float ? float_to_sample(d, number, is_alpha) : integer_to_16bit(d, value32);
  default:
    return integer_to_16bit(d, read_bits(row, (uint64_t)index * d->bits, d->bits));
  }
}

void ccodecs_tiff_keep_row(
    const tiff_decoder *d, uint32_t band_row, uint32_t first_x, const uint8_t *row, uint32_t count, uint32_t sample) {
  const size_t place = ((size_t)band_row * d->base.header.width + first_x) * d->kept;
  for (uint32_t k = 0; k < d->kept; k++) {
    const uint32_t source = k < d->colors ? k : d->alpha;
    if (d->is_separate && source != sample) {
      continue;
    }
    const uint32_t stride = d->is_separate ? 1 : d->samples;
    const uint32_t first = d->is_separate ? 0 : source;
    if (d->base.header.is_16bit) {
      uint16_t *out = (uint16_t *)d->band + place + k;
      for (uint32_t x = 0; x < count; x++) {
        out[(size_t)x * d->kept] = read_16bit_sample(d, row, (size_t)x * stride + first, k >= d->colors);
      }
    } else {
      uint8_t *out = (uint8_t *)d->band + place + k;
      for (uint32_t x = 0; x < count; x++) {
        const size_t index = (size_t)x * stride + first;
        out[(size_t)x * d->kept] = d->bits > 8 ? ccodecs_narrow(read_16bit_sample(d, row, index, k >= d->colors))
                                               : read_sample(d, row, index, k >= d->colors);
      }
    }
  }
}

/// Returns a premultiplied sample without its alpha; both are at most `maximum`.
static uint32_t divide_alpha(uint32_t value, uint32_t alpha, uint32_t maximum) {
  const uint32_t quotient = alpha == 0 ? 0 : (value * maximum + alpha / 2u) / alpha;
  return quotient > maximum ? maximum : quotient;
}

/// Writes CMYK in the output convention: 255 means no ink.
static void put_cmyk(const tiff_decoder *d, uint8_t *out, const uint8_t *kept) {
  for (size_t i = 0; i < (size_t)d->base.header.width * 4; i++) {
    out[i] = (uint8_t)(255 - kept[i]);
  }
}

static float lab_light(float f) {
  return f > 6.0f / 29 ? f * f * f : (f - 4.0f / 29) * (108.0f / 841);
}

/// Converts CIELAB, whose white point is D50 or assumed to be, to sRGB, whose white point is D65. The colors are
/// adapted as for ICC profiles (Bradford). Sources: TIFF 6.0, section 23; ICC.1; Lindbloom, "RGB/XYZ matrices".
static void convert_lab(const tiff_decoder *d, float lightness, float a, float b, uint16_t *rgb) {
  static const float white[3] = {0.96422f, 1, 0.82521f};
  static const float matrix[3][3] = {
      {3.1338561f, -1.6168667f, -0.4906146f},
      {-0.9787684f, 1.9161415f, 0.0334540f},
      {0.0719453f, -0.2289914f, 1.4052427f},
  };
  const float y = (lightness + 16) / 116;
  const float light[3] = {
      white[0] * lab_light(y + a / 500), white[1] * lab_light(y), white[2] * lab_light(y - b / 200)};
  for (int i = 0; i < 3; i++) {
    const float value = matrix[i][0] * light[0] + matrix[i][1] * light[1] + matrix[i][2] * light[2];
    rgb[i] = ccodecs_linear_signal(&d->linear, value);
  }
}

static void convert_8bit_lab(const tiff_decoder *d, const uint8_t *lab, uint8_t *rgb) {
  const float a = d->has_signed_lab ? (int8_t)lab[1] : lab[1] - 128;
  const float b = d->has_signed_lab ? (int8_t)lab[2] : lab[2] - 128;
  uint16_t color[3];
  convert_lab(d, (float)lab[0] * (100.0f / 255), a, b, color);
  for (int i = 0; i < 3; i++) {
    rgb[i] = ccodecs_narrow(color[i]);
  }
}

/// The lightness of ICCLAB ends at 0xFF00. Source: Adobe Photoshop TIFF Technical Notes.
static void convert_16bit_lab(const tiff_decoder *d, const uint16_t *lab, uint16_t *rgb) {
  const float a = d->has_signed_lab ? (int16_t)lab[1] : lab[1] - 32768;
  const float b = d->has_signed_lab ? (int16_t)lab[2] : lab[2] - 32768;
  convert_lab(d, (float)lab[0] * (d->has_signed_lab ? 100.0f / 65535 : 100.0f / 65280), a / 256, b / 256, rgb);
}

static void put_shallow_row(const tiff_decoder *d, uint8_t *out, const uint8_t *kept) {
  for (uint32_t x = 0; x < d->base.header.width; x++, kept += d->kept, out += d->channels) {
    uint8_t color[3];
    if (d->is_lab) {
      convert_8bit_lab(d, kept, color);
    } else if (d->mode == MODE_RGBA || d->colors == 3) {
      memcpy(color, kept, 3);
    } else if (d->photometric == PHOTOMETRIC_PALETTE) {
      memcpy(color, d->palette[kept[0]], 3);
    } else if (d->colors == 4) {
      for (int i = 0; i < 3; i++) {
        color[i] = (uint8_t)(((255 - kept[i]) * (255 - kept[3]) + 127) / 255);
      }
    } else {
      memset(color, d->photometric == PHOTOMETRIC_MINISWHITE ? 255 - kept[0] : kept[0], 3);
    }
    if (d->channels == 4) {
      out[3] = kept[d->kept - 1];
      for (int i = 0; i < 3 && d->is_premultiplied; i++) {
        color[i] = (uint8_t)divide_alpha(color[i], out[3], 255);
      }
    }
    memcpy(out, color, d->channels < 3 ? 1 : 3);
  }
}

static void put_16bit_row(const tiff_decoder *d, uint16_t *out, const uint16_t *kept) {
  for (uint32_t x = 0; x < d->base.header.width; x++, kept += d->kept, out += d->channels) {
    uint16_t color[3];
    if (d->is_lab) {
      convert_16bit_lab(d, kept, color);
    }
    for (int i = 0; i < 3 && !d->is_lab; i++) {
      const uint32_t sample = kept[d->colors == 1 ? 0 : i];
      color[i] = d->colors == 4 ? (uint16_t)(((65535 - sample) * (65535u - kept[3]) + 32767) / 65535)
                 : d->photometric == PHOTOMETRIC_MINISWHITE ? (uint16_t)(65535 - sample)
                                                            : (uint16_t)sample;
    }
    if (d->channels == 4) {
      out[3] = kept[d->kept - 1];
      for (int i = 0; i < 3 && d->is_premultiplied; i++) {
        color[i] = (uint16_t)divide_alpha(color[i], out[3], 65535);
      }
    }
    memcpy(out, color, d->channels < 3 ? sizeof *color : sizeof color);
  }
}

void ccodecs_tiff_put_row(const tiff_decoder *d, uint8_t *out, const uint8_t *kept) {
  if (d->keeps_cmyk) {
    put_cmyk(d, out, kept);
  } else if (d->base.header.is_16bit) {
    put_16bit_row(d, (uint16_t *)(void *)out, (const uint16_t *)(const void *)kept);
  } else {
    put_shallow_row(d, out, kept);
  }
}

#endif

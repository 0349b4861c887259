#include "bytes.h"

#include <string.h>

typedef struct magic {
  ccodecs_format format;
  uint8_t offset;
  uint8_t count;
  const char *bytes;
} magic;

/// Formats with a signature, more telling ones first. Sources: the formats' specifications.
static const magic magics[] = {
    {CCODECS_FORMAT_JPEG, 0, 3, "\xFF\xD8\xFF"},
    {CCODECS_FORMAT_PNG, 0, 8, "\x89PNG\r\n\x1A\n"},
    {CCODECS_FORMAT_GIF, 0, 6, "GIF87a"},
    {CCODECS_FORMAT_GIF, 0, 6, "GIF89a"},
    {CCODECS_FORMAT_PSD, 0, 4, "8BPS"},
    {CCODECS_FORMAT_HDR, 0, 10, "#?RADIANCE"},
    {CCODECS_FORMAT_HDR, 0, 6, "#?RGBE"},
    {CCODECS_FORMAT_TIFF, 0, 4, "II*\0"},
    {CCODECS_FORMAT_TIFF, 0, 4, "MM\0*"},
    {CCODECS_FORMAT_TIFF, 0, 4, "II+\0"},
    {CCODECS_FORMAT_TIFF, 0, 4, "MM\0+"},
    {CCODECS_FORMAT_JXL, 0, 2, "\xFF\x0A"},
    {CCODECS_FORMAT_JXL, 0, 12, "\0\0\0\x0CJXL \r\n\x87\n"},
    {CCODECS_FORMAT_JPEG2000, 0, 12, "\0\0\0\x0CjP  \r\n\x87\n"},
    {CCODECS_FORMAT_JPEG2000, 0, 4, "\xFF\x4F\xFF\x51"},
    {CCODECS_FORMAT_QOI, 0, 4, "qoif"},
    {CCODECS_FORMAT_BMP, 0, 2, "BM"},
};

static bool is_one_of(const uint8_t *brand, const char *brands) {
  for (; *brands != 0; brands += 4) {
    if (memcmp(brand, brands, 4) == 0) {
      return true;
    }
  }
  return false;
}

/// ISO base media files name their kind by brands: the major one, and compatible ones after a version.
static ccodecs_format sniff_brands(const uint8_t *bytes, size_t count) {
  const size_t box = ccodecs_be32(bytes);
  const size_t end = box < count ? box : count;
  for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
    if (is_one_of(bytes + at, "avifavis")) {
      return CCODECS_FORMAT_AVIF;
    }
    if (is_one_of(bytes + at, "heicheixhevchevxheimheis")) {
      return CCODECS_FORMAT_HEIC;
    }
  }
  return is_one_of(bytes + 8, "mif1msf1") ? CCODECS_FORMAT_HEIC : CCODECS_FORMAT_UNKNOWN;
}

/// Portable anymap: P1 to P7, then white space or a comment.
static bool is_pnm(const uint8_t *bytes, size_t count) {
  return count >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         (bytes[2] == ' ' || bytes[2] == '\t' || bytes[2] == '\n' || bytes[2] == '\r' || bytes[2] == '#');
}

/// Targa has no signature: every field of its header must make sense. Source: Truevision TGA 2.0, section C.2.
static bool is_tga(const uint8_t *bytes, size_t count) {
  if (count < 18) {
    return false;
  }
  const uint8_t map_type = bytes[1];
  const uint8_t type = bytes[2] & ~8; // run-length coding is bit 3
  const uint8_t depth = bytes[16];
  const bool is_mapped = type == 1 && map_type == 1 && depth == 8;
  const bool is_true_color = type == 2 && map_type <= 1 && (depth == 15 || depth == 16 || depth == 24 || depth == 32);
  const bool is_gray = type == 3 && map_type <= 1 && (depth == 8 || depth == 16);
  const bool map_fits =
      map_type == 0 || bytes[7] == 15 || bytes[7] == 16 || bytes[7] == 24 || bytes[7] == 32;
  return (is_mapped || is_true_color || is_gray) && map_fits && ccodecs_le16(bytes + 12) > 0 &&
         ccodecs_le16(bytes + 14) > 0 && (bytes[17] & 0xC0) == 0;
}

ccodecs_format ccodecs_sniff(const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
    const magic *m = &magics[i];
    if (count >= (size_t)m->offset + m->count && memcmp(bytes + m->offset, m->bytes, m->count) == 0) {
      return m->format;
    }
  }
  if (count >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0) {
    return CCODECS_FORMAT_WEBP;
  }
  if (count >= 12 && memcmp(bytes + 4, "ftyp", 4) == 0) {
    return sniff_brands(bytes, count);
  }
  if (is_pnm(bytes, count)) {
    return CCODECS_FORMAT_PNM;
  }
  if (count >= 6 && memcmp(bytes, "\0\0\1\0", 4) == 0 && ccodecs_le16(bytes + 4) > 0) {
    return CCODECS_FORMAT_ICO;
  }
  return is_tga(bytes, count) ? CCODECS_FORMAT_TGA : CCODECS_FORMAT_UNKNOWN;
}

const char *ccodecs_format_name(ccodecs_format format) {
  switch (format) {
  case CCODECS_FORMAT_JPEG: return "jpeg";
  case CCODECS_FORMAT_PNG: return "png";
  case CCODECS_FORMAT_WEBP: return "webp";
  case CCODECS_FORMAT_GIF: return "gif";
  case CCODECS_FORMAT_BMP: return "bmp";
  case CCODECS_FORMAT_TGA: return "tga";
  case CCODECS_FORMAT_PSD: return "psd";
  case CCODECS_FORMAT_PNM: return "pnm";
  case CCODECS_FORMAT_HDR: return "hdr";
  case CCODECS_FORMAT_TIFF: return "tiff";
  case CCODECS_FORMAT_AVIF: return "avif";
  case CCODECS_FORMAT_HEIC: return "heic";
  case CCODECS_FORMAT_JXL: return "jxl";
  case CCODECS_FORMAT_JPEG2000: return "jpeg2000";
  case CCODECS_FORMAT_ICO: return "ico";
  case CCODECS_FORMAT_QOI: return "qoi";
  case CCODECS_FORMAT_UNKNOWN: break;
  }
  return "unknown";
}

bool ccodecs_format_can_decode(ccodecs_format format) {
  switch (format) {
  case CCODECS_FORMAT_TIFF:
#ifdef CCODECS_TIFF
    return true;
#else
    return false;
#endif
  case CCODECS_FORMAT_AVIF:
  case CCODECS_FORMAT_HEIC:
#ifdef CCODECS_HEIF
    return true;
#else
    return false;
#endif
  case CCODECS_FORMAT_JXL:
#ifdef CCODECS_JXL
    return true;
#else
    return false;
#endif
  default:
    return format >= CCODECS_FORMAT_JPEG && format <= CCODECS_FORMAT_ICO;
  }
}

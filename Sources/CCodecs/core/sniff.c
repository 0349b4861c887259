#include "sniff.h"

#include "../memory/bytes.h"

#include <string.h>

bool ccodecs_is_webp(const uint8_t *bytes, size_t count) {
  return count >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

// MARK: ISO base media

typedef enum brand_kind { BRAND_OTHER, BRAND_AVIF, BRAND_HEIC } brand_kind;

static bool is_one_of(const uint8_t *brand, const char *brands) {
  for (; *brands != 0; brands += 4) {
    if (memcmp(brand, brands, 4) == 0) {
      return true;
    }
  }
  return false;
}

/// Returns the kind of the first known brand. The major brand comes first, the compatible brands follow the version.
static brand_kind read_brands(const uint8_t *bytes, size_t count) {
  if (!ccodecs_is_base_media(bytes, count)) {
    return BRAND_OTHER;
  }
  const size_t box = ccodecs_be32(bytes);
  const size_t end = box < count ? box : count;
  for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4) {
    if (is_one_of(bytes + at, "avifavis")) {
      return BRAND_AVIF;
    }
    if (is_one_of(bytes + at, "heicheixhevchevxheimheis")) {
      return BRAND_HEIC;
    }
  }
  return is_one_of(bytes + 8, "mif1msf1") ? BRAND_HEIC : BRAND_OTHER;
}

bool ccodecs_is_base_media(const uint8_t *bytes, size_t count) {
  return count >= 12 && memcmp(bytes + 4, "ftyp", 4) == 0;
}

bool ccodecs_is_avif(const uint8_t *bytes, size_t count) {
  return read_brands(bytes, count) == BRAND_AVIF;
}

bool ccodecs_is_heic(const uint8_t *bytes, size_t count) {
  return read_brands(bytes, count) == BRAND_HEIC;
}

// MARK: Simple formats

/// Portable anymap: P1 to P7, then whitespace or a comment.
bool ccodecs_is_pnm(const uint8_t *bytes, size_t count) {
  return count >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         (bytes[2] == ' ' || bytes[2] == '\t' || bytes[2] == '\n' || bytes[2] == '\r' || bytes[2] == '#');
}

bool ccodecs_is_ico(const uint8_t *bytes, size_t count) {
  return count >= 6 && memcmp(bytes, "\0\0\1\0", 4) == 0 && ccodecs_le16(bytes + 4) > 0;
}

/// Checks every field of the header, as there is no signature. Source: Truevision TGA 2.0, section C.2.
bool ccodecs_is_tga(const uint8_t *bytes, size_t count) {
  if (count < 18) {
    return false;
  }
  const uint8_t map_type = bytes[1];
  const uint8_t type = bytes[2] & ~8; // bit 3 means run-length encoding
  const uint8_t depth = bytes[16];
  const bool is_mapped = type == 1 && map_type == 1 && depth == 8;
  const bool is_true_color = type == 2 && map_type <= 1 && (depth == 15 || depth == 16 || depth == 24 || depth == 32);
  const bool is_gray = type == 3 && map_type <= 1 && (depth == 8 || depth == 16);
  const bool map_fits = map_type == 0 || bytes[7] == 15 || bytes[7] == 16 || bytes[7] == 24 || bytes[7] == 32;
  return (is_mapped || is_true_color || is_gray) && map_fits && ccodecs_le16(bytes + 12) > 0 &&
         ccodecs_le16(bytes + 14) > 0 && (bytes[17] & 0xC0) == 0;
}

// Profiles in a build without littlecms: those of sRGB and Display P3 are recognized, and no colors are converted.
//
// Sources: ICC.1:2022 (profile format); IEC 61966-2-1 (sRGB); SMPTE EG 432-1 (P3).

#include "profile.h"

#ifndef CCODECS_LCMS

#include <stdlib.h>
#include <string.h>

bool ccodecs_converts_colors(void) {
  return false;
}

static const char *signature(ccodecs_color_space space) {
  switch (space) {
  case CCODECS_COLOR_GRAY:
    return "GRAY";
  case CCODECS_COLOR_CMYK:
  case CCODECS_COLOR_YCCK:
    return "CMYK";
  case CCODECS_COLOR_YCBCR:
  case CCODECS_COLOR_RGB:
    break;
  }
  return "RGB ";
}

/// Returns the data of a tag with at least `count` bytes; NULL if there is none.
static const uint8_t *find_tag(const ccodecs_bytes *profile, const char *name, size_t count) {
  enum { TABLE = 128, ENTRY_BYTES = 12, MAX_TAGS = 100 };
  const uint8_t *bytes = ccodecs_bytes_start(profile);
  const size_t tags = ccodecs_be32(bytes + TABLE);
  const uint8_t *entry = bytes + TABLE + 4;
  for (size_t i = 0; i < tags && i < MAX_TAGS && TABLE + 4 + (i + 1) * ENTRY_BYTES <= profile->count; i++) {
    const size_t offset = ccodecs_be32(entry + i * ENTRY_BYTES + 4);
    if (memcmp(entry + i * ENTRY_BYTES, name, 4) == 0) {
      return offset <= profile->count && profile->count - offset >= count ? bytes + offset : NULL;
    }
  }
  return NULL;
}

/// Returns whether a profile has the primaries of a compact one, to 0.003.
static bool has_primaries(const ccodecs_bytes *profile, ccodecs_color_target target) {
  enum { XYZ_BYTES = 20, TOLERANCE = 197 }; // in units of 1/65536
  static const char *const names[3] = {"rXYZ", "gXYZ", "bXYZ"};
  uint8_t made[CCODECS_COMPACT_PROFILE_BYTES];
  const ccodecs_bytes compact = {
      .block = made, .count = ccodecs_compact_profile(target, made), .capacity = sizeof made};
  for (int i = 0; i < 3; i++) {
    const uint8_t *found = find_tag(profile, names[i], XYZ_BYTES);
    const uint8_t *wanted = find_tag(&compact, names[i], XYZ_BYTES);
    for (int axis = 0; axis < 3; axis++) {
      const size_t at = 8 + 4 * (size_t)axis;
      if (found == NULL || wanted == NULL ||
          llabs((long long)(int32_t)ccodecs_be32(found + at) - (int32_t)ccodecs_be32(wanted + at)) > TOLERANCE) {
        return false;
      }
    }
  }
  return true;
}

bool ccodecs_profile_classify(
    const ccodecs_bytes *profile, ccodecs_color_space space, ccodecs_budget *budget, ccodecs_profile_kind *kind) {
  (void)budget;
  const char *wanted = signature(space);
  if (!ccodecs_profile_has_size(profile) || memcmp(ccodecs_bytes_start(profile) + 16, wanted, 4) != 0) {
    *kind = CCODECS_PROFILE_UNUSABLE;
  } else if (strcmp(wanted, "RGB ") != 0) {
    *kind = CCODECS_PROFILE_OTHER;
  } else if (has_primaries(profile, CCODECS_TARGET_SRGB)) {
    *kind = CCODECS_PROFILE_SRGB;
  } else {
    *kind = has_primaries(profile, CCODECS_TARGET_DISPLAY_P3) ? CCODECS_PROFILE_P3 : CCODECS_PROFILE_OTHER;
  }
  return true;
}

bool ccodecs_profile_from_primaries(
    const uint32_t chromaticities[8], uint32_t gamma, ccodecs_color_space color_space, ccodecs_bytes *profile,
    ccodecs_budget *budget) {
  (void)chromaticities;
  (void)gamma;
  (void)color_space;
  (void)profile;
  (void)budget;
  return true;
}

bool ccodecs_profile_from_codes(
    ccodecs_color_codes codes, ccodecs_color_space color_space, ccodecs_bytes *profile, ccodecs_budget *budget,
    bool *is_supported) {
  enum { PRIMARIES_BT709 = 1, TRANSFER_SRGB = 13 };
  (void)profile;
  (void)budget;
  const bool is_gray = color_space == CCODECS_COLOR_GRAY;
  *is_supported = (codes.transfer == CCODECS_CODE_UNSPECIFIED || codes.transfer == TRANSFER_SRGB) &&
                  (is_gray || codes.primaries == CCODECS_CODE_UNSPECIFIED || codes.primaries == PRIMARIES_BT709);
  return true;
}

uint8_t ccodecs_profile_hdr_level(uint8_t level) {
  return level;
}

size_t ccodecs_conversion_estimate(const uint8_t *profile, size_t profile_count) {
  (void)profile;
  (void)profile_count;
  return 0;
}

size_t ccodecs_conversion_estimate_from_srgb(void) {
  return 0;
}

ccodecs_conversion *ccodecs_conversion_create(
    ccodecs_bytes *profile, ccodecs_conversion_options options, ccodecs_budget *budget, bool *has_room) {
  (void)profile;
  (void)options;
  (void)budget;
  *has_room = true;
  return NULL;
}

void ccodecs_conversion_convert(
    const ccodecs_conversion *conversion, const uint8_t *source, uint8_t *destination, size_t pixel_count) {
  (void)conversion;
  (void)source;
  (void)destination;
  (void)pixel_count;
}

void ccodecs_conversion_destroy(ccodecs_conversion *conversion) {
  (void)conversion;
}

bool ccodecs_profile_convert(
    const uint8_t *icc, size_t icc_count, uint8_t *pixels, size_t pixel_count, ccodecs_budget *budget) {
  (void)icc;
  (void)icc_count;
  (void)pixels;
  (void)pixel_count;
  (void)budget;
  return false;
}

#endif

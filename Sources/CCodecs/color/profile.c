// Classification of color profiles with littlecms, and creation of profiles from primaries.
//
// Sources: ICC.1:2022 (profile format); IEC 61966-2-1 (sRGB); PNG specification (third edition), section 11.3.2.

#include "profile.h"

#include "context.h"

#include <isa-l.h>
#include <math.h>

enum {
  PROFILE_HEADER_BYTES = 128,
  PROFILE_LEAST_BYTES = PROFILE_HEADER_BYTES + 4,
  DEFLATE_EXPANSION = 1032, ///< Maximum expansion ratio of deflate.
};

// MARK: Classification

/// The primaries of sRGB and Display P3, adapted to D50, as in ICC profiles.
static const double srgb_primaries[3][3] = {
    {0.4361, 0.2225, 0.0139}, {0.3851, 0.7169, 0.0971}, {0.1431, 0.0606, 0.7141}};
static const double p3_primaries[3][3] = {
    {0.5151, 0.2412, -0.0011}, {0.2920, 0.6922, 0.0419}, {0.1571, 0.0666, 0.7841}};

/// Converts linear light to the sRGB signal, both 0 to 1.
static double encode(double light) {
  return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

/// Returns whether a curve matches sRGB's to within one 8-bit level.
static bool is_srgb_curve(const cmsToneCurve *curve) {
  for (int level = 0; level <= 255; level++) {
    const double light = cmsEvalToneCurveFloat(curve, (float)level / 255);
    if (!(fabs(encode(light) * 255 - level) <= 1)) {
      return false;
    }
  }
  return true;
}

static bool has_tables(cmsHPROFILE profile) {
  return cmsIsTag(profile, cmsSigAToB0Tag) || cmsIsTag(profile, cmsSigAToB1Tag);
}

/// Returns whether a profile has these primaries and the sRGB curve.
static bool matches(cmsHPROFILE profile, const double primaries[3][3]) {
  static const cmsTagSignature colorants[3] = {cmsSigRedColorantTag, cmsSigGreenColorantTag, cmsSigBlueColorantTag};
  static const cmsTagSignature curves[3] = {cmsSigRedTRCTag, cmsSigGreenTRCTag, cmsSigBlueTRCTag};
  if (cmsGetColorSpace(profile) != cmsSigRgbData || cmsGetPCS(profile) != cmsSigXYZData || has_tables(profile)) {
    return false;
  }
  for (int i = 0; i < 3; i++) {
    const cmsCIEXYZ *xyz = cmsReadTag(profile, colorants[i]);
    const cmsToneCurve *curve = xyz == NULL ? NULL : cmsReadTag(profile, curves[i]);
    const double *wanted = primaries[i];
    if (curve == NULL || !(fabs(xyz->X - wanted[0]) < 0.003) || !(fabs(xyz->Y - wanted[1]) < 0.003) ||
        !(fabs(xyz->Z - wanted[2]) < 0.003) || !is_srgb_curve(curve)) {
      return false;
    }
  }
  return true;
}

static cmsColorSpaceSignature signature(ccodecs_color_space space) {
  switch (space) {
  case CCODECS_COLOR_GRAY:
    return cmsSigGrayData;
  case CCODECS_COLOR_CMYK:
  case CCODECS_COLOR_YCCK:
    return cmsSigCmykData;
  case CCODECS_COLOR_YCBCR:
  case CCODECS_COLOR_RGB:
    break;
  }
  return cmsSigRgbData;
}

/// Returns the kind of an opened profile. An RGB profile of a gray image is usable only if it is sRGB, because it does
/// not define gray levels.
static ccodecs_profile_kind kind_of(cmsHPROFILE profile, ccodecs_color_space space) {
  const cmsProfileClassSignature class = cmsGetDeviceClass(profile);
  const bool has_class = class == cmsSigInputClass || class == cmsSigDisplayClass || class == cmsSigOutputClass ||
                         class == cmsSigColorSpaceClass;
  const bool is_rgb = cmsGetColorSpace(profile) == cmsSigRgbData;
  if (!has_class || (cmsGetColorSpace(profile) != signature(space) && !(is_rgb && space == CCODECS_COLOR_GRAY))) {
    return CCODECS_PROFILE_UNUSABLE;
  }
  if (is_rgb && matches(profile, srgb_primaries)) {
    return CCODECS_PROFILE_SRGB;
  }
  if (is_rgb && space == CCODECS_COLOR_GRAY) {
    return CCODECS_PROFILE_UNUSABLE;
  }
  if (is_rgb && matches(profile, p3_primaries)) {
    return CCODECS_PROFILE_P3;
  }
  const bool has_curves = cmsIsMatrixShaper(profile) || cmsIsTag(profile, cmsSigGrayTRCTag);
  return has_tables(profile) || has_curves ? CCODECS_PROFILE_OTHER : CCODECS_PROFILE_UNUSABLE;
}

/// Returns the size in the profile's header, or 0 if it is outside the accepted range.
static size_t claimed_bytes(const uint8_t *header) {
  const size_t count = ccodecs_be32(header);
  return count < PROFILE_LEAST_BYTES || count > CCODECS_MAX_PROFILE_BYTES ? 0 : count;
}

bool ccodecs_profile_classify(
    const ccodecs_bytes *profile, ccodecs_color_space space, ccodecs_budget *budget, ccodecs_profile_kind *kind) {
  *kind = CCODECS_PROFILE_UNUSABLE;
  if (profile->count < PROFILE_LEAST_BYTES || profile->count > CCODECS_MAX_PROFILE_BYTES ||
      claimed_bytes(ccodecs_bytes_start(profile)) == 0) {
    return true;
  }
  color_allowance allowance = {.budget = budget, .left = ccodecs_color_allowance(profile->count)};
  cmsContext context = ccodecs_color_context(&allowance);
  if (context == NULL) {
    return false;
  }
  cmsHPROFILE opened = cmsOpenProfileFromMemTHR(context, ccodecs_bytes_start(profile), (cmsUInt32Number)profile->count);
  if (opened != NULL) {
    *kind = kind_of(opened, space);
    cmsCloseProfile(opened);
  }
  cmsDeleteContext(context);
  return !allowance.is_exhausted;
}

// MARK: Creation

bool ccodecs_profile_from_primaries(
    const uint32_t chromaticities[8], uint32_t gamma, ccodecs_bytes *profile, ccodecs_budget *budget) {
  for (int i = 0; i < 8; i += 2) {
    if (chromaticities[i] > 100000 || chromaticities[i + 1] == 0 || chromaticities[i + 1] > 100000) {
      return true;
    }
  }
  if (gamma != 0 && (gamma < 10000 || gamma > 500000)) {
    return true;
  }
  color_allowance allowance = {.budget = budget, .left = ccodecs_color_allowance(0)};
  cmsContext context = ccodecs_color_context(&allowance);
  if (context == NULL) {
    return false;
  }
  const uint32_t *c = chromaticities;
  const cmsCIExyY white = {c[0] / 1e5, c[1] / 1e5, 1};
  const cmsCIExyYTRIPLE primaries = {
      {c[2] / 1e5, c[3] / 1e5, 1}, {c[4] / 1e5, c[5] / 1e5, 1}, {c[6] / 1e5, c[7] / 1e5, 1}};
  cmsToneCurve *curve = gamma == 0 ? ccodecs_color_srgb_curve(context) : cmsBuildGamma(context, 1e5 / gamma);
  cmsToneCurve *const curves[3] = {curve, curve, curve};
  cmsHPROFILE made = curve == NULL ? NULL : cmsCreateRGBProfileTHR(context, &white, &primaries, curves);
  const bool has_room = ccodecs_color_save(made, profile, budget);
  cmsCloseProfile(made);
  cmsFreeToneCurve(curve);
  cmsDeleteContext(context);
  return has_room && !allowance.is_exhausted;
}

bool ccodecs_profile_inflate(const uint8_t *bytes, size_t count, ccodecs_bytes *profile, ccodecs_budget *budget) {
  struct inflate_state *z = ccodecs_allocate(budget, sizeof *z);
  if (z == NULL) {
    return false;
  }
  uint8_t header[PROFILE_HEADER_BYTES];
  isal_inflate_init(z);
  z->crc_flag = ISAL_ZLIB;
  z->next_in = (uint8_t *)(uintptr_t)bytes; // igzip does not write to it
  z->avail_in = (uint32_t)count;
  z->next_out = header;
  z->avail_out = sizeof header;
  bool has_room = true;
  bool is_good = isal_inflate(z) >= 0 && z->avail_out == 0;
  const size_t claimed = is_good ? claimed_bytes(header) : 0;
  is_good = claimed != 0 && claimed / DEFLATE_EXPANSION <= count;
  if (is_good) {
    has_room = ccodecs_bytes_append(profile, header, sizeof header, budget) &&
               ccodecs_bytes_reserve(profile, claimed - sizeof header, budget);
  }
  if (is_good && has_room) {
    z->next_out = ccodecs_bytes_start(profile) + sizeof header;
    z->avail_out = (uint32_t)(claimed - sizeof header);
    is_good = isal_inflate(z) >= 0 && z->avail_out == 0;
    profile->count = is_good ? claimed : 0;
  }
  ccodecs_free(budget, z);
  return has_room;
}

bool ccodecs_profile_is_linear(const uint8_t *bytes, size_t count) {
  enum { TAGS = 132, TAG_BYTES = 12, MAX_TAGS = 100 };
  const uint32_t tags = count >= TAGS ? ccodecs_be32(bytes + TAGS - 4) : 0;
  for (uint32_t i = 0; i < tags && i < MAX_TAGS && TAGS + (i + 1) * TAG_BYTES <= count; i++) {
    const uint8_t *tag = bytes + TAGS + i * TAG_BYTES;
    const uint32_t offset = ccodecs_be32(tag + 4);
    if (memcmp(tag, "rTRC", 4) != 0 || offset > count || count - offset < 16) {
      continue;
    }
    const uint8_t *curve = bytes + offset;
    if (memcmp(curve, "curv", 4) == 0) { // no entries (linear), or one: a gamma in 8.8 fixed point
      const uint32_t entries = ccodecs_be32(curve + 8);
      return entries == 0 || (entries == 1 && ccodecs_be16(curve + 12) == 0x0100);
    }
    return memcmp(curve, "para", 4) == 0 && ccodecs_be16(curve + 8) == 0 && ccodecs_be32(curve + 12) == 0x00010000;
  }
  return false;
}

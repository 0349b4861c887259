// Classification of color profiles with littlecms, and creation of profiles from primaries.
//
// Sources: ICC.1:2022 (profile format); IEC 61966-2-1 (sRGB); PNG specification (third edition), section 11.3.2.

#include "profile.h"

#ifdef CCODECS_LCMS

#include "context.h"
#include "linear.h"

#include <math.h>

// MARK: Classification

/// The primaries of sRGB and Display P3, adapted to D50, as in ICC profiles.
static const double srgb_primaries[3][3] = {
    {0.4361, 0.2225, 0.0139}, {0.3851, 0.7169, 0.0971}, {0.1431, 0.0606, 0.7141}};
static const double p3_primaries[3][3] = {
    {0.5151, 0.2412, -0.0011}, {0.2920, 0.6922, 0.0419}, {0.1571, 0.0666, 0.7841}};

/// Returns whether a curve matches sRGB's to within one 8-bit level.
static bool is_srgb_curve(const cmsToneCurve *curve) {
  for (int level = 0; level <= 255; level++) {
    const double light = cmsEvalToneCurveFloat(curve, (float)level / 255);
    if (!(fabs(ccodecs_srgb_signal(light) * 255 - level) <= 1)) {
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

bool ccodecs_profile_classify(
    const ccodecs_bytes *profile, ccodecs_color_space space, ccodecs_budget *budget, ccodecs_profile_kind *kind) {
  *kind = CCODECS_PROFILE_UNUSABLE;
  if (!ccodecs_profile_has_size(profile)) {
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
  ccodecs_color_close(context, &allowance);
  return !allowance.is_exhausted;
}

// MARK: Creation

bool ccodecs_profile_from_primaries(
    const uint32_t chromaticities[8], uint32_t gamma, ccodecs_color_space color_space, ccodecs_bytes *profile,
    ccodecs_budget *budget) {
  color_allowance allowance = {.budget = budget, .left = ccodecs_color_allowance(0)};
  cmsContext context = ccodecs_color_context(&allowance);
  if (context == NULL) {
    return false;
  }
  double values[8];
  for (int i = 0; i < 8; i++) {
    values[i] = chromaticities[i] / 1e5;
  }
  cmsToneCurve *curve = gamma == 0 ? ccodecs_color_srgb_curve(context) : cmsBuildGamma(context, 1e5 / gamma);
  const bool is_gray = color_space == CCODECS_COLOR_GRAY;
  cmsHPROFILE made = curve == NULL ? NULL : ccodecs_color_build(context, is_gray ? NULL : values, curve);
  const bool has_room = ccodecs_color_save(made, profile, budget);
  cmsCloseProfile(made);
  cmsFreeToneCurve(curve);
  ccodecs_color_close(context, &allowance);
  return has_room && !allowance.is_exhausted;
}

#endif

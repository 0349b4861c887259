// Creation of profiles from the code points of a color space.
//
// The light of PQ and HLG is brighter than white on an SDR display. Each channel is therefore mapped by a tone curve
// that keeps the darker part and compresses highlights, and the mapped light is the profile's curve. 203 cd/m2, the
// reference white, becomes level 229 of 255; 1000 cd/m2 and more become white. HLG is first converted to the light of a
// display of 1000 cd/m2.
//
// Sources: ITU-T H.273, tables 2 and 3; ITU-R BT.709, BT.2020, BT.2100 (PQ, HLG), BT.2390 section 5.4.1 (tone curve),
// BT.2408 (reference white).

#include "profile.h"

#ifdef CCODECS_LCMS

#include "context.h"
#include "linear.h"

#include <math.h>

/// Entries of the curves of PQ and HLG.
enum { CURVE_ENTRIES = 4096 };

/// Peak luminance of HDR images and of SDR displays, in cd/m2.
static const double hdr_peak = 1000;
static const double sdr_peak = 203;

typedef enum transfer_code {
  TRANSFER_BT709 = 1,
  TRANSFER_GAMMA_22 = 4,
  TRANSFER_GAMMA_28 = 5,
  TRANSFER_BT601 = 6,
  TRANSFER_LINEAR = 8,
  TRANSFER_SRGB = 13,
  TRANSFER_BT2020_10 = 14,
  TRANSFER_BT2020_12 = 15,
  TRANSFER_PQ = 16,
  TRANSFER_HLG = 18,
} transfer_code;

typedef struct primaries_row {
  uint16_t code;
  double values[8]; ///< x and y of white, red, green and blue.
} primaries_row;

enum { PRIMARIES_BT709 = 1 };

static const primaries_row primaries_rows[] = {
    {PRIMARIES_BT709, {0.3127, 0.3290, 0.640, 0.330, 0.300, 0.600, 0.150, 0.060}},
    {4, {0.3100, 0.3160, 0.670, 0.330, 0.210, 0.710, 0.140, 0.080}},  // BT.470 M
    {5, {0.3127, 0.3290, 0.640, 0.330, 0.290, 0.600, 0.150, 0.060}},  // BT.601, 625 lines
    {6, {0.3127, 0.3290, 0.630, 0.340, 0.310, 0.595, 0.155, 0.070}},  // BT.601, 525 lines
    {7, {0.3127, 0.3290, 0.630, 0.340, 0.310, 0.595, 0.155, 0.070}},  // SMPTE 240M
    {9, {0.3127, 0.3290, 0.708, 0.292, 0.170, 0.797, 0.131, 0.046}},  // BT.2020
    {11, {0.3140, 0.3510, 0.680, 0.320, 0.265, 0.690, 0.150, 0.060}}, // P3 with the white of cinemas
    {12, {0.3127, 0.3290, 0.680, 0.320, 0.265, 0.690, 0.150, 0.060}}, // Display P3
};

static const primaries_row *find_primaries(uint16_t code) {
  for (size_t i = 0; i < sizeof primaries_rows / sizeof *primaries_rows; i++) {
    if (primaries_rows[i].code == code) {
      return &primaries_rows[i];
    }
  }
  return NULL;
}

// MARK: Tone curve

static const double pq_m1 = 2610.0 / 16384;
static const double pq_m2 = 2523.0 / 4096 * 128;
static const double pq_c1 = 3424.0 / 4096;
static const double pq_c2 = 2413.0 / 4096 * 32;
static const double pq_c3 = 2392.0 / 4096 * 32;

/// Converts a PQ signal, 0 to 1, to luminance in cd/m2.
static double pq_luminance(double signal) {
  const double power = pow(signal, 1 / pq_m2);
  const double above = power > pq_c1 ? power - pq_c1 : 0;
  return 10000 * pow(above / (pq_c2 - pq_c3 * power), 1 / pq_m1);
}

/// Converts luminance in cd/m2 to a PQ signal.
static double pq_signal(double luminance) {
  const double power = pow(luminance / 10000, pq_m1);
  return pow((pq_c1 + pq_c2 * power) / (1 + pq_c3 * power), pq_m2);
}

/// Converts an HLG signal to the luminance of a display in cd/m2, with the system gamma of 1.2 for each channel.
static double hlg_luminance(double signal) {
  const double a = 0.17883277;
  const double b = 1 - 4 * a;
  const double c = 0.5 - a * log(4 * a);
  const double scene = signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12;
  return hdr_peak * pow(scene, 1.2);
}

/// Returns the light of an SDR display, 0 to 1, for an HDR luminance in cd/m2: a Hermite spline from the knee to the
/// peak, between PQ signals.
static double sdr_light(double luminance) {
  const double peak = pq_signal(hdr_peak);
  const double highest = pq_signal(sdr_peak) / peak;
  const double knee = 1.5 * highest - 0.5;
  const double signal = pq_signal(luminance < hdr_peak ? luminance : hdr_peak) / peak;
  if (signal <= knee) {
    return luminance / sdr_peak;
  }
  const double t = (signal - knee) / (1 - knee);
  const double t2 = t * t;
  const double t3 = t2 * t;
  const double mapped = (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (-2 * t3 + 3 * t2) * highest;
  return pq_luminance(mapped * peak) / sdr_peak;
}

uint8_t ccodecs_profile_hdr_level(uint8_t level) {
  const double signal = level / 255.0;
  const double light = signal <= 0.04045 ? signal / 12.92 : pow((signal + 0.055) / 1.055, 2.4);
  return (uint8_t)(255 * ccodecs_srgb_signal(sdr_light(light * sdr_peak)) + 0.5);
}

static cmsToneCurve *build_hdr_curve(cmsContext context, double (*luminance)(double), ccodecs_budget *budget) {
  uint16_t *entries = ccodecs_allocate(budget, CURVE_ENTRIES * sizeof *entries);
  if (entries == NULL) {
    return NULL;
  }
  for (int i = 0; i < CURVE_ENTRIES; i++) {
    const double light = sdr_light(luminance(i / (CURVE_ENTRIES - 1.0)));
    entries[i] = light < 1 ? (uint16_t)(65535 * light + 0.5) : 65535;
  }
  cmsToneCurve *curve = cmsBuildTabulatedToneCurve16(context, CURVE_ENTRIES, entries);
  ccodecs_free(budget, entries);
  return curve;
}

// MARK: Profiles

static bool is_known_transfer(uint16_t code) {
  switch (code) {
  case TRANSFER_BT709:
  case TRANSFER_GAMMA_22:
  case TRANSFER_GAMMA_28:
  case TRANSFER_BT601:
  case TRANSFER_LINEAR:
  case TRANSFER_SRGB:
  case TRANSFER_BT2020_10:
  case TRANSFER_BT2020_12:
  case TRANSFER_PQ:
  case TRANSFER_HLG:
    return true;
  default:
    return false;
  }
}

/// Returns the curve from signal to light; NULL without memory.
static cmsToneCurve *build_curve(cmsContext context, transfer_code transfer, ccodecs_budget *budget) {
  static const cmsFloat64Number bt709[5] = {1 / 0.45, 1 / 1.099, 0.099 / 1.099, 1 / 4.5, 0.081};
  switch (transfer) {
  case TRANSFER_BT709:
  case TRANSFER_BT601:
  case TRANSFER_BT2020_10:
  case TRANSFER_BT2020_12:
    return cmsBuildParametricToneCurve(context, 4, bt709);
  case TRANSFER_GAMMA_22:
    return cmsBuildGamma(context, 2.2);
  case TRANSFER_GAMMA_28:
    return cmsBuildGamma(context, 2.8);
  case TRANSFER_LINEAR:
    return cmsBuildGamma(context, 1);
  case TRANSFER_SRGB:
    return ccodecs_color_srgb_curve(context);
  case TRANSFER_PQ:
    return build_hdr_curve(context, pq_luminance, budget);
  case TRANSFER_HLG:
    return build_hdr_curve(context, hlg_luminance, budget);
  }
  return NULL;
}

bool ccodecs_profile_from_codes(
    ccodecs_color_codes codes, ccodecs_color_space color_space, ccodecs_bytes *profile, ccodecs_budget *budget,
    bool *is_supported) {
  const bool is_gray = color_space == CCODECS_COLOR_GRAY;
  const uint16_t primaries = codes.primaries == CCODECS_CODE_UNSPECIFIED ? PRIMARIES_BT709 : codes.primaries;
  const uint16_t transfer = codes.transfer == CCODECS_CODE_UNSPECIFIED ? TRANSFER_SRGB : codes.transfer;
  const primaries_row *row = find_primaries(primaries);
  *is_supported = row != NULL && is_known_transfer(transfer);
  if (!*is_supported || (transfer == TRANSFER_SRGB && (is_gray || primaries == PRIMARIES_BT709))) {
    return true;
  }
  color_allowance allowance = {.budget = budget, .left = ccodecs_color_allowance(0)};
  cmsContext context = ccodecs_color_context(&allowance);
  if (context == NULL) {
    return false;
  }
  cmsToneCurve *curve = build_curve(context, (transfer_code)transfer, budget);
  cmsHPROFILE built = curve == NULL ? NULL : ccodecs_color_build(context, is_gray ? NULL : row->values, curve);
  const bool has_room = built != NULL && ccodecs_color_save(built, profile, budget);
  cmsCloseProfile(built);
  cmsFreeToneCurve(curve);
  ccodecs_color_close(context, &allowance);
  return has_room && !allowance.is_exhausted;
}

#endif

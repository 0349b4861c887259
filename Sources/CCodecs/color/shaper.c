#ifdef CCODECS_LCMS

#pragma STDC FP_CONTRACT OFF

#include "shaper.h"

#include "linear.h"

#include <lcms2_plugin.h>

enum {
  CHANNELS = 3,
  CURVE_STEPS = 4096, ///< Values of a curve between them are interpolated.
  STEEPEST = 4,       ///< The slope at its beginning above which that is not exact; those of displays are below 1.
};

struct color_shaper {
  float light[CHANNELS][CURVE_STEPS + 1]; ///< Linear light at equal steps of a sample.
  float matrix[CHANNELS][CHANNELS];       ///< From the profile's light to the target's.
  ccodecs_linear target;
};

/// Reads the matrix from a profile's light to XYZ. Returns false if there is none.
static bool read_matrix(cmsHPROFILE profile, cmsMAT3 *matrix) {
  static const cmsTagSignature tags[CHANNELS] = {cmsSigRedColorantTag, cmsSigGreenColorantTag, cmsSigBlueColorantTag};
  for (int i = 0; i < CHANNELS; i++) {
    const cmsCIEXYZ *colorant = cmsReadTag(profile, tags[i]);
    if (colorant == NULL) {
      return false;
    }
    matrix->v[0].n[i] = colorant->X;
    matrix->v[1].n[i] = colorant->Y;
    matrix->v[2].n[i] = colorant->Z;
  }
  return true;
}

static bool fill_matrix(color_shaper *shaper, cmsHPROFILE profile, cmsHPROFILE target) {
  cmsMAT3 to_xyz;
  cmsMAT3 target_to_xyz;
  cmsMAT3 from_xyz;
  cmsMAT3 matrix;
  if (!read_matrix(profile, &to_xyz) || !read_matrix(target, &target_to_xyz) ||
      !_cmsMAT3inverse(&target_to_xyz, &from_xyz)) {
    return false;
  }
  _cmsMAT3per(&matrix, &from_xyz, &to_xyz);
  for (int row = 0; row < CHANNELS; row++) {
    for (int column = 0; column < CHANNELS; column++) {
      shaper->matrix[row][column] = (float)matrix.v[row].n[column];
    }
  }
  return true;
}

/// Fills the curves. Returns false if one is missing or begins too steeply.
static bool fill_curves(color_shaper *shaper, cmsHPROFILE profile) {
  static const cmsTagSignature tags[CHANNELS] = {cmsSigRedTRCTag, cmsSigGreenTRCTag, cmsSigBlueTRCTag};
  for (int channel = 0; channel < CHANNELS; channel++) {
    const cmsToneCurve *curve = cmsReadTag(profile, tags[channel]);
    if (curve == NULL) {
      return false;
    }
    for (int i = 0; i <= CURVE_STEPS; i++) {
      shaper->light[channel][i] = cmsEvalToneCurveFloat(curve, (float)i / CURVE_STEPS);
    }
    if (shaper->light[channel][1] * CURVE_STEPS > STEEPEST) {
      return false;
    }
  }
  return true;
}

color_shaper *ccodecs_shaper_create(cmsHPROFILE profile, cmsHPROFILE target, color_allowance *allowance) {
  if (cmsGetColorSpace(profile) != cmsSigRgbData || cmsGetPCS(profile) != cmsSigXYZData) {
    return NULL;
  }
  color_shaper *shaper = ccodecs_allocate(allowance->budget, sizeof *shaper);
  if (shaper == NULL) {
    allowance->is_exhausted = true;
    return NULL;
  }
  if (!fill_matrix(shaper, profile, target) || !fill_curves(shaper, profile)) {
    ccodecs_free(allowance->budget, shaper);
    return NULL;
  }
  ccodecs_linear_fill(&shaper->target);
  return shaper;
}

static float light(const float *curve, uint16_t sample) {
  const float place = (float)sample * (CURVE_STEPS / 65535.0f);
  const int step = place < CURVE_STEPS ? (int)place : CURVE_STEPS - 1;
  return curve[step] + (curve[step + 1] - curve[step]) * (place - (float)step);
}

void ccodecs_shaper_convert(
    const color_shaper *shaper, const uint16_t *source, uint8_t *destination, size_t pixel_count, bool has_alpha,
    bool keeps_depth) {
  const size_t size = has_alpha ? CHANNELS + 1 : CHANNELS;
  uint16_t *deep = (uint16_t *)(void *)destination;
  for (size_t i = 0; i < pixel_count * size; i += size) {
    const float red = light(shaper->light[0], source[i]);
    const float green = light(shaper->light[1], source[i + 1]);
    const float blue = light(shaper->light[2], source[i + 2]);
    uint16_t pixel[CHANNELS + 1];
    for (size_t channel = 0; channel < CHANNELS; channel++) {
      const float *row = shaper->matrix[channel];
      pixel[channel] = ccodecs_linear_signal(&shaper->target, row[0] * red + row[1] * green + row[2] * blue);
    }
    pixel[CHANNELS] = has_alpha ? source[i + CHANNELS] : 0;
    for (size_t channel = 0; channel < size; channel++) {
      if (keeps_depth) {
        deep[i + channel] = pixel[channel];
      } else {
        destination[i + channel] = ccodecs_narrow(pixel[channel]);
      }
    }
  }
}

#endif

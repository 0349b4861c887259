// Conversion of 16-bit pixels from a profile that consists of curves and a matrix, exact to one level. Private to
// CCodecs.
//
// littlecms has such a conversion for 8-bit pixels only. It converts those of 16 bits by a grid, which is off by up to
// 34 levels where the gamut ends, or by its whole pipeline, which takes ten times as long as this.

#pragma once

#include "context.h"

typedef struct color_shaper color_shaper;

/// Creates the conversion to `target`, whose curves are those of sRGB. Returns NULL if a profile has no matrix or a
/// curve that begins too steeply, or if the budget is exhausted, which `allowance` then reports.
color_shaper *ccodecs_shaper_create(cmsHPROFILE profile, cmsHPROFILE target, color_allowance *allowance);

/// Converts pixels of three samples, or four with alpha. `destination` has samples of 16 bits if `keeps_depth`, else
/// of 8.
void ccodecs_shaper_convert(
    const color_shaper *shaper, const uint16_t *source, uint8_t *destination, size_t pixel_count, bool has_alpha,
    bool keeps_depth);

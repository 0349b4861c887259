// A littlecms context that charges the image's budget, and what several uses of littlecms share. Every use has its own
// context. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

#include <lcms2.h>

/// The memory available to a littlecms context. A profile that needs more than `left` bytes is unusable.
typedef struct color_allowance {
  ccodecs_budget *budget;
  size_t left;
  void *blocks;      ///< Those that were not freed.
  bool is_exhausted; ///< The budget or the system's memory was exhausted, not the allowance.
} color_allowance;

/// Creates a context that allocates from `allowance`, whose address must not change. Returns NULL if memory is
/// exhausted.
cmsContext ccodecs_color_context(color_allowance *allowance);

/// Deletes a context, and frees what littlecms has leaked, as it does after it was refused memory.
void ccodecs_color_close(cmsContext context, color_allowance *allowance);

/// Returns the maximum memory in bytes of a context for a profile of `profile_count` bytes. This covers the profile,
/// its tables as read and in a pipeline, where they are wider, and a table that replaces the whole pipeline.
size_t ccodecs_color_allowance(size_t profile_count);

/// Returns the sRGB curve, from signal to linear light; NULL without memory.
cmsToneCurve *ccodecs_color_srgb_curve(cmsContext context);

/// Creates a profile with `curve`, from signal to linear light: of RGB with the x and y of white, red, green and blue,
/// or of gray if they are NULL. Returns NULL without memory, or if the values do not define a color space.
cmsHPROFILE ccodecs_color_build(cmsContext context, const double *chromaticities, cmsToneCurve *curve);

/// Writes a profile to `bytes`, which stay empty if it is NULL or too large. Returns false if the budget is exhausted.
bool ccodecs_color_save(cmsHPROFILE profile, ccodecs_bytes *bytes, ccodecs_budget *budget);

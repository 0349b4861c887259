// A context of littlecms for every use of it, which charges the image's budget. Private to CCodecs.

#ifndef CCODECS_CONTEXT_H
#define CCODECS_CONTEXT_H

#include "ccodecs.h"

#include <lcms2.h>

/// What littlecms allocates from. A profile that is made to need more than `left` can't be used.
typedef struct color_allowance {
  ccodecs_budget *budget;
  size_t left;
  bool is_exhausted; ///< The budget, not the allowance, had no room.
} color_allowance;

/// A context that allocates from `allowance`, which must stay where it is; NULL without room.
cmsContext ccodecs_color_context(color_allowance *allowance);

/// What a context may hold for a profile: its bytes, its tables as they were read and in a pipeline, where they are
/// wider, and a table that stands for all of it.
size_t ccodecs_color_allowance(size_t profile_count);

#endif

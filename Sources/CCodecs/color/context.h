// A littlecms context that charges the image's budget. Every use of littlecms has its own. Private to CCodecs.

#ifndef CCODECS_CONTEXT_H
#define CCODECS_CONTEXT_H

#include "ccodecs.h"

#include <lcms2.h>

/// The memory available to a littlecms context. A profile that needs more than `left` bytes is unusable.
typedef struct color_allowance {
  ccodecs_budget *budget;
  size_t left;
  bool is_exhausted; ///< The budget or the system's memory was exhausted, not the allowance.
} color_allowance;

/// Creates a context that allocates from `allowance`, whose address must not change. Returns NULL if memory is
/// exhausted.
cmsContext ccodecs_color_context(color_allowance *allowance);

/// Returns the maximum memory in bytes of a context for a profile of `profile_count` bytes. This covers the profile,
/// its tables as read and in a pipeline, where they are wider, and a table that replaces the whole pipeline.
size_t ccodecs_color_allowance(size_t profile_count);

#endif

// Inflates zlib data (RFC 1950) as it arrives: with ISA-L, or with zlib in a build without it and where damage is
// tolerated. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

typedef struct ccodecs_inflater ccodecs_inflater;

/// Returns an upper bound of the bytes that an inflater charges.
size_t ccodecs_inflater_estimate(void);

/// Creates an inflater; NULL if the budget is exhausted. One that tolerates damage is slower, and returns everything in
/// front of the damage, whatever the windows of its input.
ccodecs_inflater *ccodecs_inflater_create(ccodecs_budget *budget, bool tolerates_damage);

/// Prepares the inflater for other data.
void ccodecs_inflater_restart(ccodecs_inflater *inflater);

/// Inflates up to `count` bytes to `to` and sets *produced to their number. Consumes what it needs of `input`. It may
/// have more output without more input. Returns false if damaged data follows the output.
bool ccodecs_inflater_run(
    ccodecs_inflater *inflater, ccodecs_input *input, uint8_t *to, size_t count, size_t *produced);

/// Returns whether the data has ended.
bool ccodecs_inflater_has_ended(const ccodecs_inflater *inflater);

/// Destroys the inflater, which may be NULL.
void ccodecs_inflater_destroy(ccodecs_inflater *inflater, ccodecs_budget *budget);

// What the files of the comparison of kernels share.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARD = 64 }; ///< Samples after a result, which must stay as they are.

/// Returns 32 random bits.
uint32_t next_random(void);

/// Fills bytes with noise, or with the extremes only.
void fill(void *bytes, size_t count);

/// Prints the name of a kernel unless its result is the scalar one's.
void report(const char *kernel, bool is_good);

// faces.c

void check_faces(void);

// filter_rows.c

void check_filter_rows(void);

// overlay.c

void check_overlay(void);

// palette.c

void check_palette(void);

// samples.c

void check_samples(void);

// transforms.c

void check_transforms(void);

// unfilter.c

void check_unfilter(void);

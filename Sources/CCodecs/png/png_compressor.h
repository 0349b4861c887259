// Deflates the rows of a PNG: up to level 3 with ISA-L where it is built in, otherwise with zlib. Private to the PNG
// encoder.

#pragma once

#include "../memory/bytes.h"

typedef struct png_compressor png_compressor;

/// Returns an upper bound of the bytes that a compressor charges.
size_t ccodecs_png_compressor_estimate(uint8_t level);

/// Creates a compressor of a level from 0 to 9; `is_filtered` if rows are differences to others. Returns NULL if the
/// budget is exhausted.
png_compressor *ccodecs_png_compressor_create(uint8_t level, bool is_filtered, ccodecs_budget *budget);

/// Prepares the compressor for other data. Returns false if that is impossible.
bool ccodecs_png_compressor_restart(png_compressor *compressor);

/// Deflates `input`, which ends the data if it is the last, to at most `room` bytes at `to`, and sets *produced to
/// their number. Returns whether there may be more output.
bool ccodecs_png_compressor_run(
    png_compressor *compressor, ccodecs_input *input, uint8_t *to, size_t room, size_t *produced);

/// Destroys the compressor, which may be NULL.
void ccodecs_png_compressor_destroy(png_compressor *compressor, ccodecs_budget *budget);

// The reduced inverse transforms of JPEG, across a row of blocks. Private to CCodecs.

#ifndef CCODECS_JPEG_IDCT_H
#define CCODECS_JPEG_IDCT_H

#include <stddef.h>
#include <stdint.h>

/// Blocks are transformed this many at a time; strides are multiples of it.
enum { JPEG_IDCT_LANES = 16 };

/// The factors of one component for N = `scale` (1, 2 or 4): quantisation step, the transform's scale and constants,
/// by slot (row * N + column). `quantization` is in row order, 64 steps.
void jpeg_idct_factors(const uint16_t quantization[64], int scale, float factors[16]);

/// Transforms a row of blocks to N rows of samples.
///
/// `coefficients` is [slot][stride]: the same coefficient of neighbouring blocks side by side. `stride` is a multiple of
/// JPEG_IDCT_LANES, and as many blocks are written: N * stride samples a row, at `samples + row * row_stride`.
/// Each sample is the exact reduced transform, level-shifted, rounded to nearest and clamped; within one level of it.
void jpeg_idct_row(
    const int16_t *coefficients, size_t stride, int scale, const float factors[16], uint8_t *samples,
    size_t row_stride);

#endif

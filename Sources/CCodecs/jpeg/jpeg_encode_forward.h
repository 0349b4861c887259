// The forward transform of the native JPEG encoder over vectors of eight samples, a row of a block in each, written
// once for all instruction sets. The including file defines TARGET, a function attribute. The operations and their
// order are the same as in jpeg_encode_kernels.c. Private to the encoder.

#pragma once

#include "jpeg_encode.h"

#pragma STDC FP_CONTRACT OFF

#define INLINE TARGET static inline __attribute__((always_inline))

typedef float jpeg_row __attribute__((vector_size(32)));

/// Transforms the columns of a block.
INLINE void transform(jpeg_row d[8]) {
  const jpeg_row t0 = d[0] + d[7], t7 = d[0] - d[7], t1 = d[1] + d[6], t6 = d[1] - d[6];
  const jpeg_row t2 = d[2] + d[5], t5 = d[2] - d[5], t3 = d[3] + d[4], t4 = d[3] - d[4];
  const jpeg_row e0 = t0 + t3, e3 = t0 - t3, e1 = t1 + t2, e2 = t1 - t2;
  const jpeg_row z1 = (e2 + e3) * 0.707106781F;
  d[0] = e0 + e1;
  d[4] = e0 - e1;
  d[2] = e3 + z1;
  d[6] = e3 - z1;
  const jpeg_row o0 = t4 + t5, o1 = t5 + t6, o2 = t6 + t7;
  const jpeg_row z5 = (o0 - o2) * 0.382683433F;
  const jpeg_row z2 = 0.541196100F * o0 + z5;
  const jpeg_row z4 = 1.306562965F * o2 + z5;
  const jpeg_row z3 = o1 * 0.707106781F;
  const jpeg_row z11 = t7 + z3, z13 = t7 - z3;
  d[5] = z13 + z2;
  d[3] = z13 - z2;
  d[1] = z11 + z4;
  d[7] = z11 - z4;
}

/// Transposes eight rows: first their halves, four values by four.
INLINE void transpose(jpeg_row d[8]) {
  jpeg_row halves[8];
  for (uint32_t i = 0; i < 8; i += 4) {
    const jpeg_row a0 = __builtin_shufflevector(d[i], d[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    const jpeg_row a1 = __builtin_shufflevector(d[i], d[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    const jpeg_row a2 = __builtin_shufflevector(d[i + 2], d[i + 3], 0, 8, 1, 9, 4, 12, 5, 13);
    const jpeg_row a3 = __builtin_shufflevector(d[i + 2], d[i + 3], 2, 10, 3, 11, 6, 14, 7, 15);
    halves[i] = __builtin_shufflevector(a0, a2, 0, 1, 8, 9, 4, 5, 12, 13);
    halves[i + 1] = __builtin_shufflevector(a0, a2, 2, 3, 10, 11, 6, 7, 14, 15);
    halves[i + 2] = __builtin_shufflevector(a1, a3, 0, 1, 8, 9, 4, 5, 12, 13);
    halves[i + 3] = __builtin_shufflevector(a1, a3, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (uint32_t i = 0; i < 4; i++) {
    d[i] = __builtin_shufflevector(halves[i], halves[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    d[i + 4] = __builtin_shufflevector(halves[i], halves[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// Transforms a block of samples. The result is transposed.
INLINE void transform_samples(const uint8_t *samples, size_t stride, jpeg_row d[8]) {
  typedef uint8_t bytes __attribute__((vector_size(8)));
  for (uint32_t y = 0; y < 8; y++) {
    bytes row;
    memcpy(&row, samples + y * stride, sizeof row);
    d[y] = __builtin_convertvector(row, jpeg_row);
  }
  transform(d);
  transpose(d);
  transform(d);
  d[0] -= (jpeg_row){64 * 128};
}

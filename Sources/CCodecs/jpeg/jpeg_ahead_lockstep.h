// What the files share that decode blocks in lockstep, which were found ahead, in the native JPEG decoder. The
// including file defines TARGET, its instruction sets, of which AVX2 is one.

#pragma once

#include "jpeg_ahead.h"
#include "jpeg_blocks.h"

enum {
  JPEG_LOCKSTEP_MAX_N = 4, ///< The maximum N of N/8.
};

/// jpeg_decoder.limit by N.
static const uint8_t jpeg_lockstep_limits[JPEG_LOCKSTEP_MAX_N + 1] = {0, 1, 5, 13, 25};

/// Zigzag indices of the coefficients of a tile, by row and column.
static const uint8_t jpeg_lockstep_orders[JPEG_LOCKSTEP_MAX_N][JPEG_LOCKSTEP_MAX_N] = {
    {0, 1, 5, 6}, {2, 4, 7, 13}, {3, 8, 12, 17}, {9, 11, 18, 24}};

#if defined(__x86_64__)

#include <immintrin.h>

#define LOCKSTEP_INLINE static inline __attribute__((always_inline, target(TARGET)))

/// Returns a vector with ones in the lanes of `mask`.
LOCKSTEP_INLINE __m256i lanes_of(uint32_t mask) {
  const __m256i bits =
      _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, (int16_t)0x8000);
  return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16((int16_t)mask), bits), bits);
}

/// Stores the rows of a tile except the first, which is DC. Keeps the blocks that are not in the mask.
LOCKSTEP_INLINE void store_tile(const jpeg_ahead_tile *t, const __m256i *rows, const uint32_t n) {
  const __m256i mask = lanes_of(t->mask);
  __m256i any = _mm256_setzero_si256();
#pragma GCC unroll 16
  for (uint32_t i = 1; i < n * n; i++) {
    __m256i *place = (__m256i *)(t->coefficients + (size_t)i * JPEG_LANES);
    _mm256_storeu_si256(place, _mm256_blendv_epi8(_mm256_loadu_si256(place), rows[i], mask));
    any = _mm256_or_si256(any, rows[i]);
  }
  *t->extent |= _mm256_testz_si256(any, any) ? 0 : 63;
}

/// Decodes what is left of the `live` blocks of two tiles one by one, which is faster if they are few.
LOCKSTEP_INLINE void finish(
    const uint8_t *bytes, const jpeg_ahead_tile tiles[2], const uint32_t positions[2 * JPEG_LANES],
    const uint16_t indices[2 * JPEG_LANES], uint32_t live, const uint32_t limit) {
  for (; live != 0; live &= live - 1) {
    const uint32_t i = (uint32_t)__builtin_ctz(live);
    const jpeg_ahead_tile *t = &tiles[i / JPEG_LANES];
    jpeg_reader r = reader_at(bytes, positions[i]);
    uint32_t last = 0;
    read_ac(&r, t->table, t->coefficients + i % JPEG_LANES, t->places, indices[i], limit, false, &last);
    *t->extent = last > *t->extent ? (uint16_t)last : *t->extent;
  }
}

#endif

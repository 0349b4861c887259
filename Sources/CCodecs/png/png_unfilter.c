// Reversal of the PNG filters (PNG specification, section 9), one pixel at a time if each pixel depends on the
// previous.
//
// The bytes of a pixel are the lanes of a compiler vector, so that the same code compiles to SSE and NEON.

#include "png_decoder.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int16_t words8 __attribute__((vector_size(16)));

/// Loads 8 bytes: a pixel and the bytes after it.
INLINE bytes8 load(const uint8_t *p) {
  bytes8 v;
  memcpy(&v, p, sizeof v);
  return v;
}

/// Stores the first `count` bytes, a compile-time constant.
INLINE void store(uint8_t *p, bytes8 v, size_t count) {
  memcpy(p, &v, count);
}

INLINE words8 widen(bytes8 v) {
  return __builtin_convertvector(v, words8);
}

/// Selects `a` in lanes where the mask is -1, `b` where it is 0.
INLINE words8 select(words8 mask, words8 a, words8 b) {
  return (a & mask) | (b & ~mask);
}

INLINE void undo_sub(uint8_t *row, size_t count, const size_t pixel_bytes) {
  bytes8 left = {0};
  for (size_t i = 0; i < count; i += pixel_bytes) {
    left += load(row + i);
    store(row + i, left, pixel_bytes);
  }
}

static void undo_up(uint8_t *row, const uint8_t *above, size_t count) {
  for (size_t i = 0; i < count; i++) {
    row[i] = (uint8_t)(row[i] + above[i]);
  }
}

INLINE void undo_average(uint8_t *row, const uint8_t *above, size_t count, const size_t pixel_bytes) {
  const bytes8 one = {1, 1, 1, 1, 1, 1, 1, 1};
  bytes8 left = {0};
  for (size_t i = 0; i < count; i += pixel_bytes) {
    const bytes8 up = load(above + i);
    const bytes8 mean = (left & up) + ((left ^ up) >> one); // rounded down, without overflow
    left = load(row + i) + mean;
    store(row + i, left, pixel_bytes);
  }
}

INLINE void undo_paeth(uint8_t *row, const uint8_t *above, size_t count, const size_t pixel_bytes) {
  words8 left = {0};
  words8 corner = {0};
  for (size_t i = 0; i < count; i += pixel_bytes) {
    const words8 up = widen(load(above + i));
    const words8 to_left = up - corner; // p - left
    const words8 to_up = left - corner; // p - up
    const words8 distance_left = __builtin_elementwise_abs(to_left);
    const words8 distance_up = __builtin_elementwise_abs(to_up);
    const words8 distance_corner = __builtin_elementwise_abs(to_left + to_up);
    const words8 nearest_two = __builtin_elementwise_min(distance_up, distance_left);
    const words8 of_two = select(distance_up < distance_left, up, left);
    const words8 predicted = select(distance_corner < nearest_two, corner, of_two);
    const bytes8 value = load(row + i) + __builtin_convertvector(predicted, bytes8);
    store(row + i, value, pixel_bytes);
    left = widen(value);
    corner = up;
  }
}

#define FOR_PIXELS(bytes)                                                                                              \
  case bytes:                                                                                                          \
    if (filter == 1) {                                                                                                 \
      undo_sub(row, count, bytes);                                                                                     \
    } else if (filter == 3) {                                                                                          \
      undo_average(row, above, count, bytes);                                                                          \
    } else {                                                                                                           \
      undo_paeth(row, above, count, bytes);                                                                            \
    }                                                                                                                  \
    break;

void ccodecs_png_unfilter(uint8_t filter, uint8_t *row, const uint8_t *above, size_t count, size_t pixel_bytes) {
  if (filter == 0) {
    return;
  }
  if (filter == 2) {
    undo_up(row, above, count);
    return;
  }
  switch (pixel_bytes) {
    FOR_PIXELS(1)
    FOR_PIXELS(2)
    FOR_PIXELS(3)
    FOR_PIXELS(4)
    FOR_PIXELS(6)
    FOR_PIXELS(8)
  }
}

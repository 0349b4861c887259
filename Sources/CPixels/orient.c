#include "cpixels.h"

#include <stdbool.h>
#include <string.h>

/// The rows and columns, in pixels, that are transposed at a time.
enum { BLOCK_ROWS = 8, BLOCK_COLUMNS = 16 };

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16)));

/// The mapping from stored to upright pixels: upright byte offset = origin + x * along_row + y * along_column.
typedef struct placement {
  ptrdiff_t origin;
  ptrdiff_t along_row;
  ptrdiff_t along_column;
} placement;

static placement placement_of(uint8_t orientation, uint32_t width, uint32_t height, ptrdiff_t size, ptrdiff_t stride) {
  const ptrdiff_t last_x = (ptrdiff_t)width - 1;
  const ptrdiff_t last_y = (ptrdiff_t)height - 1;
  switch (orientation) {
  case 2: // mirrored left to right
    return (placement){last_x * size, -size, stride};
  case 3: // rotated by 180 degrees
    return (placement){last_y * stride + last_x * size, -size, -stride};
  case 4: // mirrored top to bottom
    return (placement){last_y * stride, size, -stride};
  case 5: // transposed
    return (placement){0, stride, size};
  case 6: // rotated clockwise: the first stored row becomes the last column
    return (placement){last_y * size, stride, -size};
  case 7: // transversed
    return (placement){last_x * stride + last_y * size, -stride, -size};
  case 8: // rotated counter-clockwise: the first stored column becomes the last row
    return (placement){last_x * stride, -stride, size};
  default:
    return (placement){0, size, stride};
  }
}

#define INLINE static inline __attribute__((always_inline))

INLINE void move_run(const uint8_t *from, uint8_t *to, ptrdiff_t step, uint32_t count, size_t size) {
  for (uint32_t i = 0; i < count; i++, from += size, to += step) {
    memcpy(to, from, size);
  }
}

/// Copies a run of pixels, each to `step` bytes behind the one before.
static void copy_run(const uint8_t *from, uint8_t *to, ptrdiff_t step, uint32_t count, uint8_t size) {
  switch (size) { // with a constant size, each copy is one or two moves
  case 1:
    move_run(from, to, step, count, 1);
    break;
  case 3:
    move_run(from, to, step, count, 3);
    break;
  case 4:
    move_run(from, to, step, count, 4);
    break;
  default:
    move_run(from, to, step, count, size);
  }
}

/// Copies a row from right to left.
static void mirror_row(const uint8_t *from, uint8_t *to, uint32_t width, uint8_t size) {
  uint32_t x = 0;
  for (; size == 1 && width - x >= 16; x += 16) {
    bytes16 v;
    memcpy(&v, from + x, 16);
    v = __builtin_shufflevector(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    memcpy(to + width - x - 16, &v, 16);
  }
  for (; size == 4 && width - x >= 4; x += 4) {
    words4 v;
    memcpy(&v, from + (size_t)x * 4, 16);
    v = __builtin_shufflevector(v, v, 3, 2, 1, 0);
    memcpy(to + (size_t)(width - x - 4) * 4, &v, 16);
  }
  if (x < width) {
    copy_run(from + (size_t)x * size, to + (size_t)(width - x - 1) * size, -(ptrdiff_t)size, width - x, size);
  }
}

// A transposition is one perfect shuffle for each bit of a row's number: pairing the vectors of the upper half of the
// rows with those of the lower one moves the highest bit of a pixel's row behind the bits of its column.

INLINE void shuffle_bytes(const bytes16 *v, bytes16 *to) {
  for (int i = 0; i < 4; i++) {
    to[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    to[2 * i + 1] =
        __builtin_shufflevector(v[i], v[i + 4], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

/// Makes columns, `step` bytes apart, out of 8 rows of 16 bytes.
INLINE void transpose_bytes(const uint8_t *rows, ptrdiff_t stride, uint8_t *columns, ptrdiff_t step) {
  bytes16 v[8], w[8];
  for (int i = 0; i < 8; i++) {
    memcpy(&v[i], rows + i * stride, 16);
  }
  shuffle_bytes(v, w);
  shuffle_bytes(w, v);
  shuffle_bytes(v, w);
  for (int i = 0; i < 16; i++) {
    memcpy(columns + i * step, (const uint8_t *)w + 8 * i, 8);
  }
}

INLINE void shuffle_words(const words4 *v, words4 *to) {
  for (int i = 0; i < 2; i++) {
    to[2 * i] = __builtin_shufflevector(v[i], v[i + 2], 0, 4, 1, 5);
    to[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 2], 2, 6, 3, 7);
  }
}

/// Makes columns, `step` bytes apart, out of 4 rows of 4 pixels of 4 bytes.
INLINE void transpose_words(const uint8_t *rows, ptrdiff_t stride, uint8_t *columns, ptrdiff_t step) {
  words4 v[4], w[4];
  for (int i = 0; i < 4; i++) {
    memcpy(&v[i], rows + i * stride, 16);
  }
  shuffle_words(v, w);
  shuffle_words(w, v);
  for (int i = 0; i < 4; i++) {
    memcpy(columns + i * step, &v[i], 16);
  }
}

/// Transposes `BLOCK_ROWS` rows of `BLOCK_COLUMNS` pixels of 1 or 4 bytes.
///
/// `step` is the distance between upright rows; `stride` that between stored ones, from the one whose pixels come
/// first.
static void transpose_block(const uint8_t *rows, ptrdiff_t stride, uint8_t *upright, ptrdiff_t step, uint8_t size) {
  if (size == 1) {
    transpose_bytes(rows, stride, upright, step);
    return;
  }
  for (int y = 0; y < BLOCK_ROWS; y += 4) {
    for (int x = 0; x < BLOCK_COLUMNS; x += 4) {
      transpose_words(rows + y * stride + 4 * x, stride, upright + x * step + 4 * y, step);
    }
  }
}

/// Copies rows that remain rows.
static void copy_rows(
    const uint8_t *rows, size_t row_stride, uint32_t row_count, uint32_t width, uint8_t size, uint8_t *to,
    placement place) {
  for (uint32_t y = 0; y < row_count; y++, rows += row_stride, to += place.along_column) {
    if (place.along_row > 0) {
      memcpy(to, rows, (size_t)width * size);
    } else {
      mirror_row(rows, to - (ptrdiff_t)(width - 1) * size, width, size);
    }
  }
}

void cpixels_orient_rows(
    const uint8_t *rows, size_t row_stride, uint32_t first_row, uint32_t row_count, uint32_t width, uint32_t height,
    uint8_t pixel_size, uint8_t orientation, uint8_t *upright, size_t upright_stride) {
  const placement place = placement_of(orientation, width, height, (ptrdiff_t)pixel_size, (ptrdiff_t)upright_stride);
  uint8_t *const target = upright + place.origin + (ptrdiff_t)first_row * place.along_column;
  if (orientation < 5 || orientation > 8) {
    copy_rows(rows, row_stride, row_count, width, pixel_size, target, place);
    return;
  }
  const bool is_backward = place.along_column < 0; // the last stored row comes first
  const ptrdiff_t stride = is_backward ? -(ptrdiff_t)row_stride : (ptrdiff_t)row_stride;
  for (uint32_t top = 0; top < row_count; top += BLOCK_ROWS) {
    const uint32_t count = row_count - top < BLOCK_ROWS ? row_count - top : BLOCK_ROWS;
    const uint32_t first = is_backward ? top + count - 1 : top;
    for (uint32_t left = 0; left < width; left += BLOCK_COLUMNS) {
      const uint32_t columns = width - left < BLOCK_COLUMNS ? width - left : BLOCK_COLUMNS;
      const uint8_t *from = rows + first * row_stride + (size_t)left * pixel_size;
      uint8_t *to = target + (ptrdiff_t)left * place.along_row + (ptrdiff_t)first * place.along_column;
      if (count == BLOCK_ROWS && columns == BLOCK_COLUMNS && (pixel_size == 1 || pixel_size == 4)) {
        transpose_block(from, stride, to, place.along_row, pixel_size);
        continue;
      }
      for (uint32_t y = 0; y < count; y++) {
        copy_run(from + (ptrdiff_t)y * stride, to + (size_t)y * pixel_size, place.along_row, columns, pixel_size);
      }
    }
  }
}

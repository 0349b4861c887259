#include "cpixels.h"

#include <string.h>

/// The side, in pixels, of the squares that are transposed one at a time; two of them fit in the L1 cache.
static const uint32_t block = 16;

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

static inline __attribute__((always_inline)) void move_run(
    const uint8_t *from, uint8_t *to, ptrdiff_t step, uint32_t count, size_t size) {
  for (uint32_t i = 0; i < count; i++, from += size, to += step) {
    memcpy(to, from, size);
  }
}

void cpixels_orient_rows(
    const uint8_t *rows, size_t row_stride, uint32_t first_row, uint32_t row_count, uint32_t width, uint32_t height,
    uint8_t pixel_size, uint8_t orientation, uint8_t *upright, size_t upright_stride) {
  const placement place = placement_of(orientation, width, height, (ptrdiff_t)pixel_size, (ptrdiff_t)upright_stride);
  if (place.along_row == pixel_size) { // rows remain rows
    for (uint32_t y = 0; y < row_count; y++) {
      uint8_t *to = upright + place.origin + (ptrdiff_t)(first_row + y) * place.along_column;
      memcpy(to, rows + y * row_stride, (size_t)width * pixel_size);
    }
    return;
  }
  for (uint32_t top = 0; top < row_count; top += block) {
    const uint32_t bottom = row_count - top < block ? row_count : top + block;
    for (uint32_t left = 0; left < width; left += block) {
      const uint32_t count = width - left < block ? width - left : block;
      for (uint32_t y = top; y < bottom; y++) {
        const uint8_t *from = rows + y * row_stride + (size_t)left * pixel_size;
        uint8_t *to = upright + place.origin + (ptrdiff_t)left * place.along_row +
                      (ptrdiff_t)(first_row + y) * place.along_column;
        switch (pixel_size) { // with a constant size, each copy is one or two moves
        case 1:
          move_run(from, to, place.along_row, count, 1);
          break;
        case 3:
          move_run(from, to, place.along_row, count, 3);
          break;
        case 4:
          move_run(from, to, place.along_row, count, 4);
          break;
        default:
          move_run(from, to, place.along_row, count, pixel_size);
        }
      }
    }
  }
}

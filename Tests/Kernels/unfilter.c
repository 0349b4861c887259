// Compares the reversal of PNG filters of several rows at once with that of one row after another.

#include "check.h"
#include "png/png_decoder.h"

#include <string.h>

enum { MAX_WIDTH = 90, MAX_ROWS = 21 };

/// Returns filters that are mostly the same, so that each kernel is tested, or any mixture.
static uint8_t next_filter(uint32_t style) {
  return (uint8_t)(style < 5 && next_random() % 3 > 0 ? style : next_random() % 5);
}

static void check_pixels(size_t pixel_bytes) {
  static uint8_t images[2][(MAX_ROWS + 1) * (MAX_WIDTH * 8 + 1) + GUARD];
  const size_t count = (1 + next_random() % MAX_WIDTH) * pixel_bytes;
  const size_t stride = count + 1;
  const size_t row_count = 1 + next_random() % MAX_ROWS;
  // Similar bytes trigger the ties of the Paeth filter, other bytes its wrap-around.
  const uint32_t levels = 1 + next_random() % 256;
  const uint32_t style = next_random() % 6;
  for (size_t i = 0; i < sizeof images[0]; i++) {
    images[0][i] = (uint8_t)(next_random() % levels);
  }
  for (size_t r = 0; r <= row_count; r++) {
    images[0][r * stride] = next_filter(style);
  }
  memcpy(images[1], images[0], sizeof images[0]);
  uint8_t *rows = images[0] + stride + 1;
  for (size_t r = 0; r < row_count; r++) {
    uint8_t *row = rows + r * stride;
    ccodecs_png_unfilter(row[-1], row, row - stride, count, pixel_bytes);
  }
  ccodecs_png_unfilter_rows(images[1] + stride + 1, stride, row_count, count, pixel_bytes);
  report("unfiltering", memcmp(images[0], images[1], sizeof images[0]) == 0);
}

void check_unfilter(void) {
  static const size_t sizes[6] = {1, 2, 3, 4, 6, 8};
  for (size_t i = 0; i < 50 * sizeof sizes / sizeof *sizes; i++) {
    check_pixels(sizes[i % 6]);
  }
}

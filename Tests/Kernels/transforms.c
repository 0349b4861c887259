// Compares the inverse transforms of JPEG.

#include "check.h"
#include "jpeg/jpeg_decoder.h"

#include <string.h>

void check_transforms(void) {
  static int16_t tile[64 * JPEG_LANES];
  static uint16_t quant[64];
  static uint8_t rows[2][8 * 8 * JPEG_LANES + GUARD];
  for (uint32_t n = 1; n <= 8; n++) {
    const uint32_t extent = next_random() % 3 == 0 ? 0 : next_random() % 2 == 0 ? 9 : 63;
    const int32_t amplitude = 1 << next_random() % 16;
    for (uint32_t i = 0; i < n * n; i++) {
      quant[i] = (uint16_t)(1 + next_random() % 255);
      const bool is_corner = n != 8 || (i / 8 < 4 && i % 8 < 4 && i / 8 + i % 8 < 4);
      for (uint32_t lane = 0; lane < JPEG_LANES; lane++) {
        const int32_t value = (int32_t)(next_random() % (2 * (uint32_t)amplitude)) - amplitude;
        tile[i * JPEG_LANES + lane] = (int16_t)(i == 0 || extent == 63 || (extent == 9 && is_corner) ? value : 0);
      }
    }
    const size_t stride = (size_t)JPEG_LANES * n;
    ccodecs_jpeg_transform_scalar(n)(tile, quant, rows[0], stride, extent);
    ccodecs_jpeg_transform(n)(tile, quant, rows[1], stride, extent);
    report("inverse transform", memcmp(rows[0], rows[1], stride * n) == 0);
  }
}

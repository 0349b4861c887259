// Where a small image attracts attention.

#include "cpixels.h"

#include <stdlib.h>

void cpixels_cells_add(const uint8_t *row, size_t pixel_count, uint32_t channels, uint32_t side, uint32_t *sums) {
  for (size_t x = 0; x < pixel_count; x++) {
    const uint8_t *pixel = row + x * channels;
    uint32_t *cell = sums + 3 * (x / side);
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t level = pixel[channels == 1 ? 0 : c];
      cell[c] += channels == 4 ? (level * pixel[3] + 127) / 255 + 255 - pixel[3] : level;
    }
  }
}

static int32_t luma(const uint8_t *rgb) {
  return (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8;
}

static int32_t clamp_level(int32_t value) {
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

/// The closeness to the chroma of skin, 0 to 255, whatever its lightness. The center and the reach are those of usual
/// detectors: Cb 77 to 127 and Cr 133 to 173.
static int32_t skin(const uint8_t *rgb) {
  const int32_t y = luma(rgb);
  if (y < 40 || y > 245) {
    return 0;
  }
  const int32_t cb = 128 + ((144 * (rgb[2] - y)) >> 8);
  const int32_t cr = 128 + ((183 * (rgb[0] - y)) >> 8);
  return clamp_level(255 - 10 * abs(cb - 104) - 12 * abs(cr - 152));
}

static int32_t saturation(const uint8_t *rgb) {
  int32_t minimum = 255;
  int32_t maximum = 0;
  for (int c = 0; c < 3; c++) {
    minimum = rgb[c] < minimum ? rgb[c] : minimum;
    maximum = rgb[c] > maximum ? rgb[c] : maximum;
  }
  const int32_t y = luma(rgb);
  return y < 20 || y > 235 ? 0 : maximum - minimum;
}

void cpixels_saliency(const uint8_t *rgb, uint32_t width, uint32_t height, uint16_t *saliency) {
  const size_t count = (size_t)width * height;
  uint64_t sums[3] = {0, 0, 0};
  for (size_t i = 0; i < count; i++) {
    for (int c = 0; c < 3; c++) {
      sums[c] += rgb[3 * i + c];
    }
  }
  for (uint32_t y = 0; y < height; y++) {
    const size_t above = (size_t)(y > 0 ? y - 1 : y) * width;
    const size_t below = (size_t)(y + 1 < height ? y + 1 : y) * width;
    for (uint32_t x = 0; x < width; x++) {
      const size_t at = (size_t)y * width + x;
      const uint8_t *pixel = rgb + 3 * at;
      const uint32_t left = x > 0 ? x - 1 : x;
      const uint32_t right = x + 1 < width ? x + 1 : x;
      const int32_t edge =
          abs(4 * luma(pixel) - luma(rgb + 3 * (above + x)) - luma(rgb + 3 * (below + x)) -
              luma(rgb + 3 * ((size_t)y * width + left)) - luma(rgb + 3 * ((size_t)y * width + right)));
      int32_t contrast = 0;
      for (int c = 0; c < 3; c++) {
        contrast += abs(pixel[c] - (int32_t)(sums[c] / count));
      }
      saliency[at] =
          (uint16_t)(3 * clamp_level(edge) + 2 * clamp_level(contrast / 2) + 2 * saturation(pixel) + 2 * skin(pixel));
    }
  }
}

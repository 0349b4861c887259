// Conversion of packed pixels to planes and back.

#include "kernels.h"

void cpixels_split_scalar(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride) {
  for (uint32_t c = 0; c < channels; c++) {
    for (size_t i = 0; i < pixel_count; i++) {
      planes[c * plane_stride + i] = packed[i * channels + c];
    }
  }
}

void cpixels_join_scalar(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed) {
  for (uint32_t c = 0; c < channels; c++) {
    for (size_t i = 0; i < pixel_count; i++) {
      packed[i * channels + c] = planes[c * plane_stride + i];
    }
  }
}

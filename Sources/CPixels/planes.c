// Conversion of packed pixels of three or four channels to planes and back. The compiler makes vectors of the loops,
// also for NEON, whose loads and stores do it themselves.

#include "kernels.h"

CPIXELS_INLINE void split(
    const uint8_t *restrict packed, size_t pixel_count, uint32_t channels, uint8_t *restrict planes,
    size_t plane_stride) {
  for (size_t i = 0; i < pixel_count; i++) {
    for (uint32_t c = 0; c < channels; c++) {
      planes[c * plane_stride + i] = packed[i * channels + c];
    }
  }
}

CPIXELS_INLINE void join(
    const uint8_t *restrict planes, size_t plane_stride, size_t pixel_count, uint32_t channels,
    uint8_t *restrict packed) {
  for (size_t i = 0; i < pixel_count; i++) {
    for (uint32_t c = 0; c < channels; c++) {
      packed[i * channels + c] = planes[c * plane_stride + i];
    }
  }
}

void cpixels_split_scalar(
    const uint8_t *packed, size_t pixel_count, uint32_t channels, uint8_t *planes, size_t plane_stride) {
  channels == 3 ? split(packed, pixel_count, 3, planes, plane_stride)
                : split(packed, pixel_count, 4, planes, plane_stride);
}

void cpixels_join_scalar(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint32_t channels, uint8_t *packed) {
  channels == 3 ? join(planes, plane_stride, pixel_count, 3, packed)
                : join(planes, plane_stride, pixel_count, 4, packed);
}

CPIXELS_AVX2 void cpixels_join_four_avx2(
    const uint8_t *planes, size_t plane_stride, size_t pixel_count, uint8_t *packed) {
  join(planes, plane_stride, pixel_count, 4, packed);
}

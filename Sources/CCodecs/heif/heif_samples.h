// Rows of the planes that libheif decodes. Private to CCodecs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef CCODECS_HEIF

#include <libheif/heif.h>

/// How samples are converted.
typedef struct heif_samples {
  uint32_t channels; ///< 1 for gray, 3, or 4 with alpha.
  bool is_16bit;     ///< Rows have 16 bits per sample.
  bool is_premultiplied;
  bool is_limited_gray; ///< Gray with a range of 16 to 235.
} heif_samples;

/// The planes of an image, which they must not outlive.
typedef struct heif_planes {
  const uint8_t *bytes[4]; ///< Red, green, blue, and alpha or NULL; or gray alone.
  size_t row_strides[4];
  uint32_t largest[4]; ///< Maximum value of a sample.
} heif_planes;

/// Finds the planes of an image that was decoded as planar RGB, or as gray. Returns false if one is missing or is
/// smaller than width x height.
bool heif_planes_open(
    const struct heif_image *image, bool is_gray, uint32_t width, uint32_t height, heif_planes *planes);

/// Writes `count` pixels from column `x` of row `y` on as interleaved samples.
void heif_planes_put(
    const heif_planes *planes, const heif_samples *samples, uint32_t x, uint32_t y, uint32_t count, uint8_t *out);

#endif

// The transforms of an HEIC or AVIF image: rotation, mirroring and cropping. Private to CCodecs.

#pragma once

#include "heif_boxes.h"

/// Maximum number of transforms of an image; files in use have three at most.
enum { HEIF_MAX_TRANSFORMS = 16 };

/// A property that transforms an image.
typedef struct heif_transform {
  uint32_t type;   ///< `irot`, `imir` or `clap`.
  uint8_t code;    ///< Quarter turns counterclockwise, or the direction of mirroring.
  double size[2];  ///< Width and height of the crop.
  double shift[2]; ///< Distance of the crop's center from the image's center.
} heif_transform;

/// The displayed part of a coded image, and its orientation.
typedef struct heif_view {
  uint32_t x;
  uint32_t y;
  uint32_t width;
  uint32_t height;
  uint8_t orientation; ///< As in EXIF, 1 to 8.
} heif_view;

/// Reads a property. Returns false if it is not a valid transform.
bool heif_transform_read(heif_box box, heif_transform *transform);

/// Applies transforms in their order to a coded image of the given size. Returns false if a crop is outside the image.
bool heif_view_compose(
    const heif_transform *transforms, uint32_t count, uint32_t width, uint32_t height, heif_view *view);

// The properties of items in an HEIC or AVIF file. Private to CCodecs.

#pragma once

#include "heif_coded.h"
#include "heif_transform.h"

typedef struct heif_property {
  uint32_t type;
  uint64_t pixels;            ///< According to `ispe`.
  ccodecs_heif_frames frames; ///< Announced by a codec configuration.
  uint64_t byte_count;
  bool is_monochrome;
  heif_chroma_share chroma; ///< According to a codec configuration.
  heif_color color;         ///< According to `nclx`.
  bool is_alpha;            ///< `auxC` of an alpha.
  bool is_transform;
  heif_transform transform;
} heif_property;

typedef struct heif_property_list {
  const heif_property *properties;
  uint32_t count;
} heif_property_list;

/// Returns whether the body of an `auxC` box is that of an alpha, by the name of MPEG-B or of HEVC.
bool heif_is_alpha(heif_span body);

/// Reads a property from its box.
heif_property heif_property_read(heif_box box);

/// Removes the transforms of an item from `body`, an `ipma` box.
void heif_remove_transforms(uint8_t *body, size_t count, heif_property_list list, uint64_t identifier);

// What libheif does not return: the gain map of an HEIC or AVIF file, as a file of its own, and metadata that its image
// shares with another item. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"
#include "heif_boxes.h"

/// The gain map of a file.
typedef struct heif_gain_map {
  ccodecs_gain_map_kind kind; ///< CCODECS_GAIN_MAP_NONE if there is none.
  uint32_t width;             ///< As its `ispe` property states.
  uint32_t height;
  bool is_cropped;           ///< It has a crop of its own.
  ccodecs_bytes file;        ///< An HEIC or AVIF file whose primary image is the map, and nothing else.
  ccodecs_bytes description; ///< See ccodecs_gain_map.
} heif_gain_map;

/// Appends EXIF, with the offset before it, or XMP that is that of the primary image and of another item; nothing if
/// there is none. libheif does not see it: see HEIF_CONCEALED. Returns false if the budget is exhausted.
bool heif_shared_metadata_read(heif_span file, bool exif, ccodecs_budget *budget, ccodecs_bytes *block);

/// Finds the gain map of a file, whose items ccodecs_heif_graph_read has checked. The map has no rotation and no
/// mirroring of its own, as its image's apply to it. Returns false if the budget is exhausted. The caller frees `file`
/// and `description` in any case.
///
/// Sources: ISO/IEC 23008-12, 6.6.2.4 (`tmap`), 6.5.8 (`auxC`); ISO 21496-1, annex C; Apple, "Applying Apple HDR
/// effect to your photos" (the type of the auxiliary image).
bool heif_gain_map_read(heif_span file, ccodecs_budget *budget, heif_gain_map *map);

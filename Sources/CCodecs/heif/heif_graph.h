// The items of an HEIC or AVIF file, and how they are derived from each other. Private to CCodecs.
//
// libheif follows references as deeply and as often as a file requests, and searches items linearly. So the boxes that
// it will follow are read here first, in time and memory linear in their size, and a file that costs too much to decode
// is refused.

#pragma once

#include "ccodecs.h"
#include "heif_coded.h"
#include "heif_transform.h"

typedef struct ccodecs_heif_graph {
  uint64_t max_frame_pixels; ///< Size of the largest frame that any item's bitstream allows.
  uint64_t max_canvas;       ///< Pixels of the largest canvas that libheif fills for the primary image.
  uint64_t work;             ///< Cost of decoding, in pixels.
  bool is_monochrome;        ///< The primary image, or a grid's first tile, has no chroma.
  heif_color color;          ///< Of the primary image, or of a grid's first tile.
  heif_chroma_share chroma;  ///< The most of all items, whether their properties or their bitstreams state it.
  bool has_chroma;           ///< The bitstream of an item has chroma.
  bool is_deep;              ///< A bitstream has samples of more than eight bits.
  bool has_dependent;        ///< A bitstream of HEVC may have dependent slices.
  bool has_hevc;             ///< An item is coded in HEVC.
  bool has_av1;              ///< An item is coded in AV1.
  bool is_composed;          ///< At least one image is an overlay, or derived in another way than by a grid.
  heif_grid grid;            ///< The primary image's, if it is one; otherwise with no rows.
  uint32_t *tiles;           ///< Identifiers of the grid's tiles, charged to the budget; NULL without a grid.
  uint32_t tile_count;
  uint32_t tile_item_count;                       ///< Items that are tiles, each of which libheif counts as an image.
  heif_transform transforms[HEIF_MAX_TRANSFORMS]; ///< Of the primary image, in their order.
  uint32_t transform_count;
  ccodecs_status status; ///< CCODECS_OK, or why the file is refused.
  char message[120];     ///< The reason, one English clause.
  const char *things;    ///< What exceeds a limit, if the status is CCODECS_LIMIT; otherwise NULL.
  ccodecs_excess excess; ///< The limit.
} ccodecs_heif_graph;

/// Reads the items of a whole file.
///
/// The transforms of the primary image and its alpha are removed from `file`, so that libheif returns it as it is
/// coded. Compressed metadata is changed to an unknown type in `file`, because libheif would inflate it without a
/// limit. `budget` is charged during the call only.
ccodecs_heif_graph ccodecs_heif_graph_read(uint8_t *file, size_t count, ccodecs_budget *budget);

// The items of an HEIC or AVIF file, and how they are made of each other. Private to CCodecs.
//
// libheif follows references as deep and as often as a file asks, and looks items up one by one. So the boxes that it
// will follow are read here first, in time and memory linear in their bytes, and a file that means too much is refused.

#ifndef CCODECS_HEIF_GRAPH_H
#define CCODECS_HEIF_GRAPH_H

#include "ccodecs.h"

typedef struct ccodecs_heif_graph {
  uint64_t max_frame_pixels; ///< Of the largest frame that any item's bitstream allows.
  uint64_t work;             ///< What decoding means, in pixels.
  bool is_monochrome;        ///< The primary image, or a grid's first tile, has no chroma.
  bool has_full_chroma;      ///< Some AV1 item has more than one chroma sample for four pixels.
  bool is_composed;          ///< Some image is an overlay, or derived otherwise than by a grid.
  ccodecs_status status;     ///< CCODECS_OK, or why the file is refused.
  char message[120];         ///< The reason, one English clause.
} ccodecs_heif_graph;

/// Reads the items of a whole file. What compressed metadata it has is marked as of an unknown kind, since libheif
/// would inflate it without a limit. `budget` is charged while this runs.
ccodecs_heif_graph ccodecs_heif_graph_read(uint8_t *file, size_t count, ccodecs_budget *budget);

#endif

// The items of an HEIC or AVIF file, and how they are derived from each other. Private to CCodecs.
//
// libheif follows references as deeply and as often as a file requests, and searches items linearly. So the boxes that
// it will follow are read here first, in time and memory linear in their size, and a file that costs too much to decode
// is refused.

#ifndef CCODECS_HEIF_GRAPH_H
#define CCODECS_HEIF_GRAPH_H

#include "ccodecs.h"

typedef struct ccodecs_heif_graph {
  uint64_t max_frame_pixels; ///< Size of the largest frame that any item's bitstream allows.
  uint64_t work;             ///< Cost of decoding, in pixels.
  bool is_monochrome;        ///< The primary image, or a grid's first tile, has no chroma.
  bool has_full_chroma;      ///< At least one AV1 item has more than one chroma sample per four pixels.
  bool is_composed;          ///< At least one image is an overlay, or derived in another way than by a grid.
  ccodecs_status status;     ///< CCODECS_OK, or why the file is refused.
  char message[120];         ///< The reason, one English clause.
  const char *things;        ///< What exceeds a limit, if the status is CCODECS_LIMIT; otherwise NULL.
  ccodecs_excess excess;     ///< The limit.
} ccodecs_heif_graph;

/// Reads the items of a whole file.
///
/// Compressed metadata is changed to an unknown type in `file`, because libheif would inflate it without a limit.
/// `budget` is charged during the call only.
ccodecs_heif_graph ccodecs_heif_graph_read(uint8_t *file, size_t count, ccodecs_budget *budget);

#endif

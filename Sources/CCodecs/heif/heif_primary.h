// The state of reading a file's items (heif_graph.c), and what it means for the primary image. Private to CCodecs.

#pragma once

#include "heif_graph.h"
#include "heif_property.h"

typedef enum heif_visit { VISIT_NEW, VISIT_BEGUN, VISIT_DONE } heif_visit;

typedef struct heif_item {
  uint32_t identifier;
  uint32_t type;
  uint64_t stated_pixels; ///< According to its `ispe` property.
  uint64_t canvas_pixels; ///< Size of the canvas of a grid or an overlay.
  ccodecs_heif_frames frames;
  uint64_t configuration_bytes;
  uint32_t transform_count;
  heif_color color; ///< According to its `nclx` property.
  bool is_monochrome;
  bool has_part_outside;
  bool has_crop;
  bool has_place;     ///< It was found in the list of locations.
  bool carries_alpha; ///< It or an image that it is derived from has alpha.
  bool is_alpha;
  bool has_data;
  bool is_tile;   ///< Of the primary image.
  uint8_t *flags; ///< Of its entry in the list of items.
  uint32_t first_edge;
  uint32_t edge_count;
  heif_visit state;
  uint64_t max_canvas; ///< The largest canvas of it and of the images that are decoded for it.
  uint32_t height;     ///< Longest path to an image that is not derived from others.
  uint64_t work;       ///< Work in pixels, including that of the images it is derived from.
} heif_item;

/// A dependency: decoding `from` requires decoding `to`. Both are indices in the list of items.
typedef struct heif_edge {
  uint32_t from;
  uint32_t to;
  bool is_alpha;
} heif_edge;

typedef struct heif_reader {
  ccodecs_heif_graph graph;
  ccodecs_budget *budget;
  uint8_t *file;
  size_t count;
  heif_boxes boxes;
  heif_item *items;
  uint32_t item_count;
  heif_property *properties;
  uint32_t property_count;
  uint32_t association_count;
  uint32_t extent_count;
  heif_edge *edges;
  uint32_t edge_count;
  uint64_t data_bytes;
} heif_reader;

/// Returns the item with this identifier; NULL when there is none.
heif_item *heif_find_item(const heif_reader *r, uint64_t identifier);

/// Returns whether items of a type are derived from others.
bool heif_is_derived(uint32_t type);

/// Records what is known of the primary image once all items have been read.
void heif_describe_primary(heif_reader *r, const heif_item *primary);

/// Changes the file so that libheif returns the primary image as it is coded, and its tiles separately.
void heif_expose_primary(heif_reader *r, const heif_item *primary);

// Boxes of an ISO base media file, and the lists in them that say where items are. Private to CCodecs.
// Sources: ISO/IEC 14496-12, 23008-12.

#ifndef CCODECS_HEIF_BOXES_H
#define CCODECS_HEIF_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A type of four letters as a number.
#define HEIF_TYPE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

typedef struct heif_span {
  const uint8_t *bytes; ///< NULL for what is not there.
  size_t count;
} heif_span;

typedef struct heif_box {
  uint32_t type;
  heif_span body;
} heif_box;

/// Steps through boxes that lie behind each other.
typedef struct heif_walk {
  heif_span span;
  size_t at;
  bool is_broken; ///< The bytes from `at` on are no box.
} heif_walk;

heif_walk heif_walk_from(heif_span span, size_t at);

/// The next box; false at the end, and where the bytes are no box.
bool heif_walk_next(heif_walk *walk, heif_box *box);

/// A number of 0, 1, 2, 4 or 8 bytes; the place moves on. False, and nothing moved, beyond the end.
bool heif_take_number(heif_span span, size_t *at, uint32_t size, uint64_t *value);

/// The boxes that describe items. Of each kind there is one.
typedef struct heif_boxes {
  uint64_t primary;             ///< The number of the primary image (`pitm`).
  heif_span items;              ///< `iinf`.
  heif_span properties;         ///< `ipco`.
  heif_span property_container; ///< `iprp`, with `ipco` and any number of `ipma`.
  heif_span places;             ///< `iloc`.
  heif_span references;         ///< `iref`.
  heif_span data;               ///< `idat`.
} heif_boxes;

/// Finds them. NULL, or why there is no list of items.
const char *heif_find_boxes(heif_span file, heif_boxes *boxes);

// MARK: Places

/// libheif takes no more for an item.
enum { HEIF_MAX_EXTENTS = 32 };

/// Where an item's data lie.
typedef struct heif_place {
  uint64_t identifier;
  uint32_t method; ///< 0: in the file, 1: in `idat`.
  uint64_t base;
  uint32_t extent_count;
  uint64_t offsets[HEIF_MAX_EXTENTS];
  uint64_t lengths[HEIF_MAX_EXTENTS];
} heif_place;

/// A piece, as far as it lies inside its source.
typedef struct heif_extent {
  size_t first;
  size_t span_count;
  bool is_whole;
} heif_extent;

heif_extent heif_place_extent(const heif_place *place, uint32_t index, size_t source_count);

/// The list of places as it is read.
typedef struct heif_places {
  heif_span span;
  size_t at;
  uint32_t version;
  uint32_t sizes[4]; ///< Bytes of offset, length, base and index.
  uint64_t left;     ///< Items to come.
} heif_places;

/// False when the list is not well formed.
bool heif_places_begin(heif_span span, heif_places *places);

/// False when the list is not well formed, or an item lies in too many pieces. There must be one left.
bool heif_places_next(heif_places *places, heif_place *place);

// MARK: Derived images

/// The size of a grid's or an overlay's canvas, in pixels, from its data.
uint64_t heif_canvas_pixels(uint32_t type, heif_span data);

/// Whether an overlay's part begins left of its canvas, or above it.
bool heif_has_part_outside(heif_span data);

#endif

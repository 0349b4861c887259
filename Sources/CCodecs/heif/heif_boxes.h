// Boxes of an ISO base media file, and the lists in them that locate items. Private to CCodecs.
//
// Sources: ISO/IEC 14496-12, 23008-12.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A four-character type as a number.
#define HEIF_TYPE(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/// The first letter of the type of a reference that libheif must not follow, as in `xuxl` for `auxl`.
#define HEIF_CONCEALED 'x'

typedef struct heif_span {
  const uint8_t *bytes; ///< NULL if it does not exist.
  size_t count;
} heif_span;

typedef struct heif_box {
  const uint8_t *head; ///< Its size of 4 bytes and its type; the body follows them, or a size of 8 bytes behind them.
  uint32_t type;
  heif_span body;
} heif_box;

/// An iterator over consecutive boxes.
typedef struct heif_walk {
  heif_span span;
  size_t at;
  bool is_broken; ///< The bytes from `at` on are not a box.
} heif_walk;

/// Returns an iterator that starts at offset `at` of `span`, which must outlive it.
heif_walk heif_walk_from(heif_span span, size_t at);

/// Returns the next box in *box; false at the end, and when the bytes are not a box.
bool heif_walk_next(heif_walk *walk, heif_box *box);

/// Reads a number of 0, 1, 2, 4 or 8 bytes and advances *at. Returns false past the end, and leaves *at unchanged.
bool heif_take_number(heif_span span, size_t *at, uint32_t size, uint64_t *value);

/// The boxes that describe items, one of each kind.
typedef struct heif_boxes {
  uint64_t primary;             ///< Identifier of the primary image (`pitm`).
  heif_span items;              ///< `iinf`.
  heif_span properties;         ///< `ipco`.
  heif_span property_container; ///< `iprp`, which contains `ipco` and any number of `ipma`.
  heif_span places;             ///< `iloc`.
  heif_span references;         ///< `iref`.
  heif_span data;               ///< `idat`.
} heif_boxes;

/// Finds the boxes that describe items. Returns NULL, or the reason why they cannot be used.
const char *heif_find_boxes(heif_span file, heif_boxes *boxes);

// MARK: Places

/// Maximum number of pieces of an item in libheif.
enum { HEIF_MAX_EXTENTS = 32 };

/// The location of an item's data.
typedef struct heif_place {
  uint64_t identifier;
  uint32_t method; ///< 0: in the file, 1: in `idat`.
  uint64_t base;
  uint32_t extent_count;
  uint64_t offsets[HEIF_MAX_EXTENTS];
  uint64_t lengths[HEIF_MAX_EXTENTS];
} heif_place;

/// A piece of an item, clipped to its source.
typedef struct heif_extent {
  size_t first;
  size_t span_count;
  bool is_whole;
} heif_extent;

/// Returns piece `index` of an item, clipped to a source of `source_count` bytes.
heif_extent heif_place_extent(const heif_place *place, uint32_t index, size_t source_count);

/// An iterator over the list of locations.
typedef struct heif_places {
  heif_span span;
  size_t at;
  uint32_t version;
  uint32_t sizes[4]; ///< Bytes of offset, length, base and index.
  uint64_t left;     ///< Items that were not read yet.
} heif_places;

/// Starts reading the list. Returns false when the list is malformed.
bool heif_places_begin(heif_span span, heif_places *places);

/// Reads the next location. Call it while `left` is not 0. Returns false when the list is malformed, or when an item
/// has too many pieces.
bool heif_places_next(heif_places *places, heif_place *place);

/// Returns whether the file is truncated: it ends before its list of items, or before the data of one of them. Bytes
/// after the items may be missing or damaged, because nothing reads them.
bool heif_is_truncated(heif_span file);

// MARK: Derived images

/// An image that consists of tiles of the same size.
typedef struct heif_grid {
  uint32_t rows;
  uint32_t columns;
  uint64_t width; ///< Of the image; the last tiles may extend beyond it.
  uint64_t height;
} heif_grid;

/// Reads a grid from its data. Returns false if the data is too short.
bool heif_grid_read(heif_span data, heif_grid *grid);

/// Returns the size in pixels of the canvas of an overlay, from its data.
uint64_t heif_overlay_pixels(heif_span data);

/// Returns whether a part of an overlay starts to the left of its canvas, or above it.
bool heif_has_part_outside(heif_span data);

#include "heif_boxes.h"

#include "../memory/bytes.h"

heif_walk heif_walk_from(heif_span span, size_t at) {
  return (heif_walk){.span = span, .at = at};
}

bool heif_walk_next(heif_walk *walk, heif_box *box) {
  const size_t left = walk->span.count - walk->at;
  const uint8_t *bytes = walk->span.bytes + walk->at;
  if (left == 0 || walk->is_broken) {
    return false;
  }
  uint64_t size = left >= 8 ? ccodecs_be32(bytes) : 0;
  size_t head = 8;
  if (size == 1 && left >= 16) {
    size = ccodecs_be64(bytes + 8);
    head = 16;
  }
  walk->is_broken = size < head || size > left;
  if (walk->is_broken) {
    return false;
  }
  *box = (heif_box){
      .head = bytes,
      .type = ccodecs_be32(bytes + 4),
      .body = {.bytes = bytes + head, .count = (size_t)size - head},
  };
  walk->at += (size_t)size;
  return true;
}

bool heif_take_number(heif_span span, size_t *at, uint32_t size, uint64_t *value) {
  *value = 0;
  if (*at > span.count || size > span.count - *at) {
    return false;
  }
  for (uint32_t i = 0; i < size; i++) {
    *value = *value << 8 | span.bytes[(*at)++];
  }
  return true;
}

// MARK: Lists

/// Records a box that may occur once. Returns false for the second one.
static bool note(heif_span *noted, heif_span body) {
  const bool is_first = noted->bytes == NULL;
  *noted = body;
  return is_first;
}

/// Finds the box that contains all others. libheif also reads as far as boxes are well-formed.
static const char *find_meta(heif_span file, heif_span *meta) {
  heif_box box;
  heif_walk walk = heif_walk_from(file, 0);
  while (heif_walk_next(&walk, &box)) {
    if (box.type == HEIF_TYPE('m', 'e', 't', 'a') && !note(meta, box.body)) {
      return "it has more than one meta box";
    }
  }
  return meta->bytes == NULL || meta->count < 4 ? "it has no meta box" : NULL;
}

static const char *find_properties(heif_boxes *boxes) {
  heif_box box;
  heif_walk walk = heif_walk_from(boxes->property_container, 0);
  while (heif_walk_next(&walk, &box)) {
    if (box.type == HEIF_TYPE('i', 'p', 'c', 'o') && !note(&boxes->properties, box.body)) {
      return "it has more than one property list";
    }
  }
  return walk.is_broken || boxes->properties.bytes == NULL ? "it has no property list" : NULL;
}

const char *heif_find_boxes(heif_span file, heif_boxes *boxes) {
  heif_span meta = {0};
  heif_span primary = {0};
  const char *reason = find_meta(file, &meta);
  if (reason != NULL) {
    return reason;
  }
  heif_box box;
  heif_walk walk = heif_walk_from(meta, 4);
  bool is_sound = true;
  while (is_sound && heif_walk_next(&walk, &box)) {
    switch (box.type) {
    case HEIF_TYPE('p', 'i', 't', 'm'):
      is_sound = note(&primary, box.body);
      break;
    case HEIF_TYPE('i', 'i', 'n', 'f'):
      is_sound = note(&boxes->items, box.body);
      break;
    case HEIF_TYPE('i', 'p', 'r', 'p'):
      is_sound = note(&boxes->property_container, box.body);
      break;
    case HEIF_TYPE('i', 'l', 'o', 'c'):
      is_sound = note(&boxes->places, box.body);
      break;
    case HEIF_TYPE('i', 'r', 'e', 'f'):
      is_sound = note(&boxes->references, box.body);
      break;
    case HEIF_TYPE('i', 'd', 'a', 't'):
      is_sound = note(&boxes->data, box.body);
      break;
    default:
      break;
    }
  }
  size_t at = 4;
  if (!is_sound || walk.is_broken) {
    return "the meta box is malformed";
  }
  if (primary.count < 4 || !heif_take_number(primary, &at, primary.bytes[0] == 0 ? 2 : 4, &boxes->primary)) {
    return "it has no primary image";
  }
  return boxes->property_container.bytes == NULL ? "it has no property list" : find_properties(boxes);
}

// MARK: Places

/// Returns whether a field may have this size in bytes.
static bool is_field_size(uint32_t size) {
  return size == 0 || size == 4 || size == 8;
}

bool heif_places_begin(heif_span span, heif_places *places) {
  if (span.count < 8) {
    return false;
  }
  const uint8_t *bytes = span.bytes;
  const uint32_t version = bytes[0];
  *places = (heif_places){
      .span = span,
      .at = 6,
      .version = version,
      .sizes = {bytes[4] >> 4, bytes[4] & 15, bytes[5] >> 4, version > 0 ? bytes[5] & 15u : 0},
  };
  for (int i = 0; i < 4; i++) {
    if (!is_field_size(places->sizes[i])) {
      return false;
    }
  }
  // libheif does not skip the index field in version 1.
  const bool has_index = version == 1 && places->sizes[3] != 0;
  return version <= 2 && !has_index && heif_take_number(span, &places->at, version == 2 ? 4 : 2, &places->left);
}

bool heif_places_next(heif_places *places, heif_place *place) {
  const heif_span span = places->span;
  size_t *at = &places->at;
  const uint32_t version = places->version;
  uint64_t method = 0;
  uint64_t reference;
  uint64_t extents;
  if (!heif_take_number(span, at, version == 2 ? 4 : 2, &place->identifier) ||
      (version > 0 && !heif_take_number(span, at, 2, &method)) || !heif_take_number(span, at, 2, &reference) ||
      !heif_take_number(span, at, places->sizes[2], &place->base) || !heif_take_number(span, at, 2, &extents) ||
      extents > HEIF_MAX_EXTENTS) {
    return false;
  }
  place->method = (uint32_t)method & 15;
  place->extent_count = (uint32_t)extents;
  for (uint32_t i = 0; i < place->extent_count; i++) {
    uint64_t index;
    if (!heif_take_number(span, at, places->sizes[3], &index) ||
        !heif_take_number(span, at, places->sizes[0], &place->offsets[i]) ||
        !heif_take_number(span, at, places->sizes[1], &place->lengths[i])) {
      return false;
    }
  }
  places->left--;
  return true;
}

heif_extent heif_place_extent(const heif_place *place, uint32_t index, size_t source_count) {
  const uint64_t offset = place->offsets[index];
  if (offset > source_count || place->base > source_count - offset) {
    return (heif_extent){0};
  }
  const size_t first = (size_t)(offset + place->base);
  const size_t left = source_count - first;
  const bool is_whole = place->lengths[index] <= left; // libheif treats a length of 0 as empty, not as the whole file
  return (heif_extent){
      .first = first, .span_count = is_whole ? (size_t)place->lengths[index] : left, .is_whole = is_whole};
}

/// Returns whether the boxes end, or one of them is incomplete, before there is a `meta` box or any image data.
static bool ends_before_items(heif_span file) {
  heif_box box;
  heif_walk walk = heif_walk_from(file, 0);
  while (heif_walk_next(&walk, &box)) {
    if (box.type == HEIF_TYPE('m', 'e', 't', 'a') || box.type == HEIF_TYPE('m', 'd', 'a', 't')) {
      return false;
    }
  }
  const size_t left = file.count - walk.at;
  return left < 8 || ccodecs_be32(file.bytes + walk.at) > left || ccodecs_be32(file.bytes + walk.at) == 1;
}

bool heif_is_truncated(heif_span file) {
  heif_boxes boxes = {0};
  heif_span meta = {0};
  heif_places places;
  heif_place place;
  if (ends_before_items(file)) {
    return true;
  }
  find_meta(file, &meta);
  const bool ends_with_meta = meta.bytes != NULL && meta.bytes + meta.count == file.bytes + file.count;
  if (heif_find_boxes(file, &boxes) != NULL || !heif_places_begin(boxes.places, &places)) {
    return ends_with_meta; // a box without a size extends to the end of the file
  }
  while (places.left > 0 && heif_places_next(&places, &place)) {
    if (place.method == 1 && boxes.data.bytes == NULL && ends_with_meta) {
      return true;
    }
    for (uint32_t i = 0; i < place.extent_count && place.method == 0; i++) {
      if (!heif_place_extent(&place, i, file.count).is_whole) {
        return true;
      }
    }
  }
  return false;
}

// MARK: Derived images

/// Reads width and height, of four bytes each if a flag in the data says so, otherwise of two.
static bool read_canvas(heif_span data, size_t at, uint64_t *width, uint64_t *height) {
  const uint32_t size = data.count > 1 && (data.bytes[1] & 1) != 0 ? 4 : 2;
  return heif_take_number(data, &at, size, width) && heif_take_number(data, &at, size, height);
}

bool heif_grid_read(heif_span data, heif_grid *grid) {
  if (!read_canvas(data, 4, &grid->width, &grid->height)) {
    return false;
  }
  grid->rows = data.bytes[2] + 1u;
  grid->columns = data.bytes[3] + 1u;
  return true;
}

uint64_t heif_overlay_pixels(heif_span data) {
  uint64_t width;
  uint64_t height;
  return read_canvas(data, 10, &width, &height) ? width * height : 0;
}

bool heif_has_part_outside(heif_span data) {
  const uint32_t size = data.count > 1 && (data.bytes[1] & 1) != 0 ? 4 : 2;
  size_t at = 10 + 2 * (size_t)size;
  uint64_t place;
  while (heif_take_number(data, &at, size, &place)) {
    if ((place >> (8 * size - 1)) != 0) {
      return true;
    }
  }
  return false;
}

// Finds a gain map and copies its items to a file of their own, which is then decoded as any other file, with the same
// limits.

#include "heif_gain_map.h"

enum {
  MAX_TILES = 256,
  MAX_LISTED = 64,               ///< Properties of an item.
  MAX_TRIES = 64,                ///< Items that are considered.
  MAX_DESCRIPTION_BYTES = 65536, ///< Of a description as stored.
  MAX_PROPERTY_BYTES = 1 << 20,
};

/// An item, with what the new file needs of it.
typedef struct map_item {
  uint64_t identifier;
  uint32_t type;
  uint32_t listed;                 ///< Properties in its list.
  uint32_t property_count;         ///< Those of them that stay.
  uint16_t properties[MAX_LISTED]; ///< A 15-bit index, starting at 1, and above it the essential flag.
} map_item;

typedef struct map_reader {
  heif_span file;
  heif_boxes boxes;
  ccodecs_budget *budget;
  ccodecs_bytes *out;
  uint64_t image;            ///< Identifier of the map.
  uint64_t tiles[MAX_TILES]; ///< Identifiers of its tiles, if it is a grid.
  uint32_t tile_count;
} map_reader;

// MARK: Lists

/// Returns the type of an item; 0 if it is not listed.
static uint32_t type_of(const map_reader *r, uint64_t wanted) {
  const heif_span list = r->boxes.items;
  heif_box box;
  heif_walk walk = heif_walk_from(list, list.bytes[0] > 0 ? 8 : 6);
  while (heif_walk_next(&walk, &box)) {
    size_t at = 4;
    uint64_t identifier;
    uint64_t type;
    const uint32_t version = box.body.count >= 4 ? box.body.bytes[0] : 0;
    if (box.type != HEIF_TYPE('i', 'n', 'f', 'e') || version < 2 ||
        !heif_take_number(box.body, &at, version > 2 ? 4 : 2, &identifier)) {
      continue;
    }
    at += 2; // the protection
    if (identifier == wanted && heif_take_number(box.body, &at, 4, &type)) {
      return (uint32_t)type;
    }
  }
  return 0;
}

/// A reference from one item to others.
typedef struct map_reference {
  uint32_t type;
  uint64_t from;
  uint64_t count;
  heif_span targets;
  uint32_t number_bytes;
} map_reference;

static heif_walk references_of(const map_reader *r) {
  const heif_span list = r->boxes.references;
  return heif_walk_from(list, list.count < 4 ? list.count : 4);
}

static bool next_reference(const map_reader *r, heif_walk *walk, map_reference *reference) {
  heif_box box;
  const uint32_t bytes = r->boxes.references.bytes == NULL || r->boxes.references.bytes[0] == 0 ? 2 : 4;
  size_t at = 0;
  *reference = (map_reference){.number_bytes = bytes};
  if (!heif_walk_next(walk, &box) || !heif_take_number(box.body, &at, bytes, &reference->from) ||
      !heif_take_number(box.body, &at, 2, &reference->count)) {
    return false;
  }
  reference->type = box.type;
  reference->targets = (heif_span){box.body.bytes + at, box.body.count - at};
  return true;
}

/// Returns the item at `index` that a reference points to; 0, which is no item, past its end.
static uint64_t target(const map_reference *reference, uint64_t index) {
  size_t at = (size_t)index * reference->number_bytes;
  uint64_t identifier;
  return index < reference->count && heif_take_number(reference->targets, &at, reference->number_bytes, &identifier)
             ? identifier
             : 0;
}

/// Returns the item that has a reference of a type to `to` and is accepted; 0 without one among the first.
static uint64_t find_reference_to(
    const map_reader *r, uint32_t type, uint64_t to, bool (*accepts)(const map_reader *, uint64_t)) {
  map_reference reference;
  uint32_t tries = 0;
  heif_walk walk = references_of(r);
  while (tries < MAX_TRIES && next_reference(r, &walk, &reference)) {
    bool has_target = false;
    for (uint64_t i = 0; reference.type == type && i < reference.count && !has_target; i++) {
      has_target = target(&reference, i) == to;
    }
    if (has_target && accepts(r, reference.from)) {
      return reference.from;
    }
    tries += has_target ? 1 : 0;
  }
  return 0;
}

// MARK: Properties

/// Returns the property with an index, from 1 on; with no bytes if there is none.
static heif_box property_at(const map_reader *r, uint32_t index) {
  heif_box box = {0};
  heif_walk walk = heif_walk_from(r->boxes.properties, 0);
  for (uint32_t i = 0; i < index; i++) {
    if (!heif_walk_next(&walk, &box)) {
      return (heif_box){0};
    }
  }
  return box;
}

/// Appends the properties that one `ipma` box lists for an item, except those that rotate or mirror. Returns false if
/// they are too many.
static bool list_properties(const map_reader *r, heif_span body, map_item *item) {
  size_t at = 4;
  const uint32_t number_bytes = body.count < 8 || body.bytes[0] < 1 ? 2 : 4;
  const bool is_wide = body.count >= 8 && (body.bytes[3] & 1) != 0;
  uint64_t left; // Nobody else reads what is behind these, so that nobody checks it.
  uint64_t identifier;
  uint64_t count;
  for (heif_take_number(body, &at, 4, &left); left > 0; left--) {
    if (!heif_take_number(body, &at, number_bytes, &identifier) || !heif_take_number(body, &at, 1, &count)) {
      break;
    }
    uint64_t value;
    for (uint64_t i = 0; i < count && heif_take_number(body, &at, is_wide ? 2 : 1, &value); i++) {
      const uint64_t entry = is_wide ? value : (value & 0x7F) | (value & 0x80) << 8;
      if (identifier != item->identifier || (entry & 0x7FFF) == 0) {
        continue;
      }
      if (item->listed++ == MAX_LISTED) {
        return false;
      }
      const uint32_t type = property_at(r, entry & 0x7FFF).type;
      if (type != HEIF_TYPE('i', 'r', 'o', 't') && type != HEIF_TYPE('i', 'm', 'i', 'r')) {
        item->properties[item->property_count++] = (uint16_t)entry;
      }
    }
  }
  return true;
}

/// Reads an item. Returns false if it cannot be used.
static bool read_item(const map_reader *r, uint64_t identifier, map_item *item) {
  *item = (map_item){.identifier = identifier, .type = type_of(r, identifier)};
  heif_box box;
  heif_walk walk = heif_walk_from(r->boxes.property_container, 0);
  while (heif_walk_next(&walk, &box)) {
    if (box.type == HEIF_TYPE('i', 'p', 'm', 'a') && !list_properties(r, box.body, item)) {
      return false;
    }
  }
  return item->type != 0;
}

/// Returns whether an item is an auxiliary image with a gain map of Apple.
static bool is_apple(const map_reader *r, uint64_t identifier) {
  static const char name[] = "urn:com:apple:photo:2020:aux:hdrgainmap";
  map_item item;
  if (!read_item(r, identifier, &item)) {
    return false;
  }
  for (uint32_t i = 0; i < item.property_count; i++) {
    const heif_box box = property_at(r, item.properties[i] & 0x7FFF);
    if (box.type == HEIF_TYPE('a', 'u', 'x', 'C') && box.body.count >= 4 + sizeof name &&
        memcmp(box.body.bytes + 4, name, sizeof name) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_xmp(const map_reader *r, uint64_t identifier) {
  return type_of(r, identifier) == HEIF_TYPE('m', 'i', 'm', 'e');
}

static bool is_exif(const map_reader *r, uint64_t identifier) {
  return type_of(r, identifier) == HEIF_TYPE('E', 'x', 'i', 'f');
}

// MARK: Data

/// Appends the data of an item, nothing if it is more than `max_bytes`. Returns false if the budget is exhausted; sets
/// *count to the number of bytes, 0 if they cannot be used.
static bool append_data(
    const map_reader *r, uint64_t identifier, size_t max_bytes, ccodecs_bytes *bytes, size_t *count) {
  heif_places places;
  heif_place place;
  *count = 0;
  if (!heif_places_begin(r->boxes.places, &places)) {
    return true;
  }
  while (places.left > 0 && heif_places_next(&places, &place)) {
    const heif_span source = place.method == 0 ? r->file : place.method == 1 ? r->boxes.data : (heif_span){0};
    for (uint32_t i = 0; place.identifier == identifier && source.bytes != NULL && i < place.extent_count; i++) {
      const heif_extent extent = heif_place_extent(&place, i, source.count);
      if (extent.span_count > max_bytes - *count) {
        bytes->count -= *count; // those of the pieces before
        *count = 0;
        return true;
      }
      if (!ccodecs_bytes_append(bytes, source.bytes + extent.first, extent.span_count, r->budget)) {
        return false;
      }
      *count += extent.span_count;
    }
    if (place.identifier == identifier) {
      return true;
    }
  }
  return true;
}

// MARK: Writing

static bool put(const map_reader *r, const void *bytes, size_t count) {
  return ccodecs_bytes_append(r->out, bytes, count, r->budget);
}

static bool put_number(const map_reader *r, uint32_t value, size_t size) {
  uint8_t bytes[4];
  ccodecs_put_be32(bytes, value);
  return put(r, bytes + 4 - size, size);
}

/// Begins a box, and returns its position in *at.
static bool begin(const map_reader *r, uint32_t type, size_t *at) {
  *at = r->out->count;
  return put_number(r, 0, 4) && put_number(r, type, 4);
}

static bool begin_full(const map_reader *r, uint32_t type, uint32_t flags, size_t *at) {
  return begin(r, type, at) && put_number(r, flags, 4);
}

/// Sets the size of the box at `at`, which ends here.
static bool end(const map_reader *r, size_t at) {
  ccodecs_put_be32(ccodecs_bytes_start(r->out) + at, (uint32_t)(r->out->count - at));
  return true;
}

/// The identifiers in the new file: 1 for the map, and from 2 on those of its tiles.
static uint64_t old_identifier(const map_reader *r, uint32_t new_identifier) {
  return new_identifier == 1 ? r->image : r->tiles[new_identifier - 2];
}

static bool put_items(const map_reader *r) {
  size_t list;
  size_t at;
  bool is_put = begin_full(r, HEIF_TYPE('i', 'i', 'n', 'f'), 0, &list) && put_number(r, r->tile_count + 1, 2);
  for (uint32_t i = 1; i <= r->tile_count + 1 && is_put; i++) {
    const uint32_t type = type_of(r, old_identifier(r, i));
    is_put = begin_full(r, HEIF_TYPE('i', 'n', 'f', 'e'), 2u << 24, &at) && put_number(r, i << 16, 4) &&
             put_number(r, type, 4) && put_number(r, 0, 1) && end(r, at);
  }
  return is_put && end(r, list);
}

static bool put_tile_references(const map_reader *r) {
  size_t list;
  size_t at;
  bool is_put = begin_full(r, HEIF_TYPE('i', 'r', 'e', 'f'), 0, &list) &&
                begin(r, HEIF_TYPE('d', 'i', 'm', 'g'), &at) && put_number(r, 1, 2) && put_number(r, r->tile_count, 2);
  for (uint32_t i = 0; i < r->tile_count && is_put; i++) {
    is_put = put_number(r, i + 2, 2);
  }
  return is_put && end(r, at) && end(r, list);
}

/// Copies all properties, so that their indices stay, and lists those of the items.
static bool put_properties(const map_reader *r) {
  size_t container;
  size_t at;
  const heif_span all = r->boxes.properties;
  bool is_put = begin(r, HEIF_TYPE('i', 'p', 'r', 'p'), &container) && begin(r, HEIF_TYPE('i', 'p', 'c', 'o'), &at) &&
                put(r, all.bytes, all.count) && end(r, at) && begin_full(r, HEIF_TYPE('i', 'p', 'm', 'a'), 1, &at) &&
                put_number(r, r->tile_count + 1, 4);
  for (uint32_t i = 1; i <= r->tile_count + 1 && is_put; i++) {
    map_item item;
    is_put = read_item(r, old_identifier(r, i), &item) && put_number(r, i, 2) && put_number(r, item.property_count, 1);
    for (uint32_t p = 0; p < item.property_count && is_put; p++) {
      is_put = put_number(r, item.properties[p], 2);
    }
  }
  return is_put && end(r, at) && end(r, container);
}

/// Writes the list of places, without positions and sizes, and returns the position of the first of these in *at.
static bool put_places(const map_reader *r, size_t *first) {
  size_t list;
  bool is_put = begin_full(r, HEIF_TYPE('i', 'l', 'o', 'c'), 0, &list) && put_number(r, 0x4400, 2) &&
                put_number(r, r->tile_count + 1, 2);
  *first = r->out->count;
  for (uint32_t i = 1; i <= r->tile_count + 1 && is_put; i++) {
    is_put =
        put_number(r, i, 2) && put_number(r, 0, 2) && put_number(r, 1, 2) && put_number(r, 0, 4) && put_number(r, 0, 4);
  }
  return is_put && end(r, list);
}

/// Writes the data of the items, and their places. *is_usable is set to false if some are missing.
static bool put_data(const map_reader *r, size_t places, bool *is_usable) {
  enum { PLACE_BYTES = 14, POSITION_OFFSET = 6 };
  size_t at;
  bool is_put = begin(r, HEIF_TYPE('m', 'd', 'a', 't'), &at);
  for (uint32_t i = 1; i <= r->tile_count + 1 && is_put && *is_usable; i++) {
    const size_t first = r->out->count;
    // Items may share data, which would then be copied more often than the file is large.
    const size_t left = r->file.count > first - at ? r->file.count - (first - at) : 0;
    size_t count;
    is_put = append_data(r, old_identifier(r, i), left, r->out, &count);
    *is_usable = count > 0;
    uint8_t *place = ccodecs_bytes_start(r->out) + places + (i - 1) * PLACE_BYTES + POSITION_OFFSET;
    ccodecs_put_be32(place, (uint32_t)first);
    ccodecs_put_be32(place + 4, (uint32_t)count);
  }
  return is_put && end(r, at);
}

static bool put_file(const map_reader *r, bool is_av1, bool *is_usable) {
  size_t at;
  size_t meta;
  size_t places;
  const uint32_t brand = is_av1 ? HEIF_TYPE('a', 'v', 'i', 'f') : HEIF_TYPE('h', 'e', 'i', 'c');
  return begin(r, HEIF_TYPE('f', 't', 'y', 'p'), &at) && put_number(r, brand, 4) && put_number(r, 0, 4) &&
         put_number(r, HEIF_TYPE('m', 'i', 'f', '1'), 4) && put_number(r, brand, 4) && end(r, at) &&
         begin_full(r, HEIF_TYPE('m', 'e', 't', 'a'), 0, &meta) &&
         begin_full(r, HEIF_TYPE('h', 'd', 'l', 'r'), 0, &at) && put_number(r, 0, 4) &&
         put_number(r, HEIF_TYPE('p', 'i', 'c', 't'), 4) && put(r, (const uint8_t[13]){0}, 13) && end(r, at) &&
         begin_full(r, HEIF_TYPE('p', 'i', 't', 'm'), 0, &at) && put_number(r, 1, 2) && end(r, at) && put_items(r) &&
         (r->tile_count == 0 || put_tile_references(r)) && put_properties(r) && put_places(r, &places) &&
         end(r, meta) && put_data(r, places, is_usable);
}

// MARK: Map

/// Finds the tiles of a grid. Returns whether the map is a coded image or a grid of such.
static bool find_tiles(map_reader *r, bool *is_av1) {
  uint32_t type = type_of(r, r->image);
  if (type == HEIF_TYPE('g', 'r', 'i', 'd')) {
    map_reference reference;
    heif_walk walk = references_of(r);
    while (r->tile_count == 0 && next_reference(r, &walk, &reference)) {
      const bool is_list = reference.type == HEIF_TYPE('d', 'i', 'm', 'g') && reference.from == r->image;
      if (is_list && reference.count > MAX_TILES) {
        return false;
      }
      for (uint64_t i = 0; is_list && i < reference.count; i++) {
        r->tiles[r->tile_count++] = target(&reference, i);
      }
    }
    type = r->tile_count == 0 ? 0 : type_of(r, r->tiles[0]);
    for (uint32_t i = 1; i < r->tile_count; i++) {
      type = type_of(r, r->tiles[i]) == type ? type : 0;
    }
  }
  *is_av1 = type == HEIF_TYPE('a', 'v', '0', '1');
  return *is_av1 || type == HEIF_TYPE('h', 'v', 'c', '1');
}

static void read_size(const map_reader *r, heif_gain_map *map) {
  map_item item;
  if (!read_item(r, r->image, &item)) {
    return;
  }
  for (uint32_t i = 0; i < item.property_count; i++) {
    const heif_box box = property_at(r, item.properties[i] & 0x7FFF);
    if (box.type == HEIF_TYPE('i', 's', 'p', 'e') && box.body.count >= 12) {
      map->width = ccodecs_be32(box.body.bytes + 4);
      map->height = ccodecs_be32(box.body.bytes + 8);
    }
    map->is_cropped |= box.type == HEIF_TYPE('c', 'l', 'a', 'p');
  }
}

/// Copies the map to a file of its own. Returns false if the budget is exhausted; the file stays empty if the map
/// cannot be used.
static bool copy_map(map_reader *r, heif_gain_map *map) {
  bool is_av1;
  read_size(r, map);
  if (!find_tiles(r, &is_av1) || r->boxes.properties.count > MAX_PROPERTY_BYTES) {
    return true;
  }
  r->out = &map->file;
  bool is_usable = true;
  const bool is_put = put_file(r, is_av1, &is_usable);
  if (!is_put || !is_usable) {
    ccodecs_bytes_free(&map->file, r->budget);
  }
  return is_put;
}

/// Finds an image that is tone-mapped from the primary image and a map, of which the description is kept.
static bool find_tone_map(map_reader *r, heif_gain_map *map) {
  map_reference reference;
  uint32_t tries = 0;
  heif_walk walk = references_of(r);
  while (tries < MAX_TRIES && next_reference(r, &walk, &reference)) {
    if (reference.type != HEIF_TYPE('d', 'i', 'm', 'g') || reference.count != 2 ||
        target(&reference, 0) != r->boxes.primary) {
      continue;
    }
    tries++;
    size_t count = 0;
    if (type_of(r, reference.from) != HEIF_TYPE('t', 'm', 'a', 'p')) {
      continue;
    }
    if (!append_data(r, reference.from, MAX_DESCRIPTION_BYTES, &map->description, &count)) {
      return false;
    }
    // A version, which is 0, precedes what ISO 21496-1 specifies, of which the minimum version must be 0.
    const uint8_t *bytes = count < 5 ? NULL : ccodecs_bytes_start(&map->description);
    if (bytes != NULL && bytes[0] == 0 && ccodecs_be16(bytes + 1) == 0) {
      ccodecs_bytes_take(&map->description, 1);
      map->kind = CCODECS_GAIN_MAP_ISO;
      r->image = target(&reference, 1);
      return true;
    }
    ccodecs_bytes_free(&map->description, r->budget);
  }
  return true;
}

/// Finds an auxiliary image with a map of Apple, and the XMP that describes it.
static bool find_apple(map_reader *r, heif_gain_map *map) {
  r->image = find_reference_to(r, HEIF_TYPE('a', 'u', 'x', 'l'), r->boxes.primary, is_apple);
  if (r->image == 0) {
    r->image = find_reference_to(r, HEIF_TYPE(HEIF_CONCEALED, 'u', 'x', 'l'), r->boxes.primary, is_apple);
  }
  if (r->image == 0) {
    return true;
  }
  map->kind = CCODECS_GAIN_MAP_APPLE;
  const uint64_t xmp = find_reference_to(r, HEIF_TYPE('c', 'd', 's', 'c'), r->image, is_xmp);
  size_t count = 0;
  if (xmp != 0 && !append_data(r, xmp, MAX_DESCRIPTION_BYTES, &map->description, &count)) {
    return false;
  }
  if (count == 0) {
    ccodecs_bytes_free(&map->description, r->budget);
  }
  return true;
}

bool heif_shared_metadata_read(heif_span file, bool exif, ccodecs_budget *budget, ccodecs_bytes *block) {
  map_reader r = {.file = file, .budget = budget};
  if (heif_find_boxes(file, &r.boxes) != NULL || r.boxes.items.count < 8 || r.boxes.references.bytes == NULL) {
    return true;
  }
  const uint32_t type = HEIF_TYPE(HEIF_CONCEALED, 'd', 's', 'c');
  const uint64_t item = find_reference_to(&r, type, r.boxes.primary, exif ? is_exif : is_xmp);
  size_t count;
  return item == 0 || append_data(&r, item, MAX_DESCRIPTION_BYTES, block, &count);
}

bool heif_gain_map_read(heif_span file, ccodecs_budget *budget, heif_gain_map *map) {
  map_reader r = {.file = file, .budget = budget};
  *map = (heif_gain_map){0};
  if (heif_find_boxes(file, &r.boxes) != NULL || r.boxes.items.count < 8 || r.boxes.references.bytes == NULL ||
      file.count > UINT32_MAX / 2) {
    return true;
  }
  return find_tone_map(&r, map) && (map->kind != CCODECS_GAIN_MAP_NONE || find_apple(&r, map)) &&
         (map->kind == CCODECS_GAIN_MAP_NONE || copy_map(&r, map));
}

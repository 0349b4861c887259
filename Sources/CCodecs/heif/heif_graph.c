// Reads items, properties, locations and references of an HEIC or AVIF file, and computes the cost of decoding its
// primary image. Sources: ISO/IEC 14496-12 (boxes), 23008-12 (items, derived images); libheif 1.15 for its
// interpretation of them.

#include "heif_graph.h"

#include "../memory/bytes.h"
#include "heif_primary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  MAX_ITEMS = 4096,
  MAX_PROPERTIES = 4096,
  MAX_ASSOCIATIONS = 65536,
  MAX_REFERENCES = 16384,
  MAX_EXTENTS = 16384,
  MAX_DEPTH = 4, ///< Three images derived from each other, and the alpha of the last one.
};

/// Maximum total size of the items' data: this multiple of the file size, plus the allowance. Items may share data, and
/// libheif copies it for each of them.
static const uint64_t data_multiple = 8;
static const uint64_t data_allowance = 1u << 20;
/// Maximum decoding work in pixels: this multiple of the image's, plus the allowance for small images with large tiles.
static const uint64_t work_multiple = 6;
static const uint64_t work_allowance = 8u << 20;

// MARK: Failures and sums

__attribute__((format(printf, 3, 4))) static bool refuse(
    heif_reader *r, ccodecs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->graph.message, sizeof r->graph.message, format, arguments);
  va_end(arguments);
  r->graph.status = status;
  return false;
}

static bool corrupt(heif_reader *r, const char *reason) {
  return refuse(r, CCODECS_CORRUPT, "%s", reason);
}

static bool exceeds(heif_reader *r, const char *things, ccodecs_excess excess) {
  r->graph.things = things;
  r->graph.excess = excess;
  r->graph.status = CCODECS_LIMIT;
  return false;
}

static void *take(heif_reader *r, size_t count, size_t size) {
  void *block = ccodecs_allocate(r->budget, (count + 1) * size);
  if (block == NULL) {
    refuse(r, CCODECS_NO_MEMORY, "no room for the item list");
    return NULL;
  }
  return memset(block, 0, (count + 1) * size);
}

static uint64_t sum(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t product(uint64_t a, uint64_t b) {
  uint64_t result;
  return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

// MARK: Items

static int compare_items(const void *a, const void *b) {
  const uint32_t first = ((const heif_item *)a)->identifier;
  const uint32_t second = ((const heif_item *)b)->identifier;
  return first < second ? -1 : first > second;
}

/// Skips a string and its zero. Returns false when the string does not end.
static bool skip_string(heif_span span, size_t *at) {
  while (*at < span.count && span.bytes[*at] != 0) {
    (*at)++;
  }
  return (*at)++ < span.count;
}

/// Reads an item's entry in the list of items.
static bool read_entry(heif_reader *r, heif_span entry) {
  heif_item *i = &r->items[r->item_count];
  size_t at = 4;
  uint64_t identifier;
  uint64_t type;
  const uint32_t version = entry.count >= 4 ? entry.bytes[0] : 0;
  if (entry.count < 4 || !heif_take_number(entry, &at, version > 2 ? 4 : 2, &identifier)) {
    return corrupt(r, "the item list is malformed");
  }
  at += 2;
  if (version >= 2 && at <= entry.count && heif_take_number(entry, &at, 4, &type)) {
    i->type = (uint32_t)type;
    static const char deflate[] = "deflate";
    if (type == HEIF_TYPE('m', 'i', 'm', 'e') && skip_string(entry, &at) && skip_string(entry, &at) &&
        entry.count - at >= sizeof deflate && memcmp(entry.bytes + at, deflate, sizeof deflate) == 0) {
      r->file[entry.bytes + at - r->file] = 'x';
    }
  }
  i->identifier = (uint32_t)identifier;
  i->flags = r->file + (entry.bytes + 3 - r->file);
  r->item_count++;
  return true;
}

static bool read_items(heif_reader *r) {
  const heif_span list = r->boxes.items;
  const size_t head = list.count >= 1 && list.bytes[0] > 0 ? 8 : 6;
  if (list.count < head) {
    return corrupt(r, "it has no item list");
  }
  size_t capacity = 0;
  heif_box box;
  heif_walk walk = heif_walk_from(list, head);
  while (heif_walk_next(&walk, &box)) {
    capacity += box.type == HEIF_TYPE('i', 'n', 'f', 'e') ? 1 : 0;
  }
  if (walk.is_broken) {
    return corrupt(r, "the item list is malformed");
  }
  if (capacity > MAX_ITEMS) {
    return exceeds(r, "items", (ccodecs_excess){"max_items", MAX_ITEMS, capacity});
  }
  r->items = take(r, capacity, sizeof *r->items);
  walk = heif_walk_from(list, head);
  while (r->items != NULL && heif_walk_next(&walk, &box)) {
    if (box.type == HEIF_TYPE('i', 'n', 'f', 'e') && !read_entry(r, box.body)) {
      return false;
    }
  }
  if (r->items == NULL) {
    return false;
  }
  qsort(r->items, r->item_count, sizeof *r->items, compare_items);
  for (uint32_t i = 1; i < r->item_count; i++) {
    if (r->items[i].identifier == r->items[i - 1].identifier) {
      return corrupt(r, "two items have the same ID");
    }
  }
  return true;
}

// MARK: Properties

/// Records what a bitstream announces, which binds its decoder, whatever the properties state.
static void note_frames(heif_reader *r, const ccodecs_heif_frames *frames) {
  ccodecs_heif_graph *g = &r->graph;
  g->max_frame_pixels = larger(g->max_frame_pixels, frames->max_pixels);
  g->chroma = frames->chroma > g->chroma ? frames->chroma : g->chroma;
  g->is_deep |= frames->is_deep;
  g->has_dependent |= frames->has_dependent;
}

static bool read_properties(heif_reader *r) {
  heif_box box;
  heif_walk walk = heif_walk_from(r->boxes.properties, 0);
  size_t capacity = 0;
  while (heif_walk_next(&walk, &box)) {
    capacity++;
  }
  if (walk.is_broken) {
    return corrupt(r, "the properties are malformed");
  }
  if (capacity > MAX_PROPERTIES) {
    return exceeds(r, "properties", (ccodecs_excess){"max_properties", MAX_PROPERTIES, capacity});
  }
  r->properties = take(r, capacity, sizeof *r->properties);
  walk = heif_walk_from(r->boxes.properties, 0);
  while (r->properties != NULL && heif_walk_next(&walk, &box)) {
    const heif_property p = heif_property_read(box);
    r->graph.chroma = p.chroma > r->graph.chroma ? p.chroma : r->graph.chroma;
    r->graph.has_hevc |= p.type == HEIF_TYPE('h', 'v', 'c', 'C');
    r->graph.has_av1 |= p.type == HEIF_TYPE('a', 'v', '1', 'C');
    note_frames(r, &p.frames);
    r->properties[r->property_count++] = p;
  }
  return r->properties != NULL;
}

/// Records a transform of the primary image.
static bool note_transform(heif_reader *r, const heif_property *p) {
  ccodecs_heif_graph *g = &r->graph;
  if (g->transform_count == HEIF_MAX_TRANSFORMS) {
    return exceeds(r, "transforms", (ccodecs_excess){"max_transforms", HEIF_MAX_TRANSFORMS, HEIF_MAX_TRANSFORMS + 1});
  }
  g->transforms[g->transform_count++] = p->transform;
  return true;
}

static bool associate(heif_reader *r, heif_item *i, const heif_property *p) {
  if (p->is_transform) {
    i->transform_count++;
    i->has_crop |= p->type == HEIF_TYPE('c', 'l', 'a', 'p');
    return i->identifier != r->boxes.primary || note_transform(r, p);
  }
  switch (p->type) {
  case HEIF_TYPE('i', 's', 'p', 'e'):
    i->stated_pixels = larger(i->stated_pixels, p->pixels);
    break;
  case HEIF_TYPE('h', 'v', 'c', 'C'):
  case HEIF_TYPE('a', 'v', '1', 'C'):
    i->frames.max_pixels = larger(i->frames.max_pixels, p->frames.max_pixels);
    i->frames.max_side = (uint32_t)larger(i->frames.max_side, p->frames.max_side);
    i->frames.count = sum(i->frames.count, p->frames.count);
    i->frames.has_chroma |= p->frames.has_chroma;
    i->frames.color = p->frames.color.is_known ? p->frames.color : i->frames.color;
    i->is_monochrome = p->is_monochrome;
    i->configuration_bytes = larger(i->configuration_bytes, p->byte_count);
    break;
  case HEIF_TYPE('a', 'u', 'x', 'C'):
    i->is_alpha |= p->is_alpha;
    break;
  case HEIF_TYPE('c', 'o', 'l', 'r'):
    i->color = p->color.is_known ? p->color : i->color;
    break;
  default:
    break;
  }
  return true;
}

/// Reads which properties items have. A truncated box is valid as far as it goes, as in libheif.
static bool read_associations(heif_reader *r, heif_span body) {
  size_t at = 4;
  uint64_t entries;
  if (body.count < 4 || !heif_take_number(body, &at, 4, &entries)) {
    return corrupt(r, "the item property list is malformed");
  }
  const uint32_t number_bytes = body.bytes[0] < 1 ? 2 : 4;
  const bool is_wide = (body.bytes[3] & 1) != 0;
  uint64_t identifier;
  uint64_t count;
  for (uint64_t e = 0;
       e < entries && heif_take_number(body, &at, number_bytes, &identifier) && heif_take_number(body, &at, 1, &count);
       e++) {
    heif_item *i = heif_find_item(r, identifier);
    r->association_count += 1 + (uint32_t)count;
    if (r->association_count > MAX_ASSOCIATIONS) {
      return exceeds(
          r, "properties of items", (ccodecs_excess){"max_associations", MAX_ASSOCIATIONS, r->association_count});
    }
    uint64_t index;
    for (uint64_t k = 0; k < count && heif_take_number(body, &at, is_wide ? 2 : 1, &index); k++) {
      index &= is_wide ? 0x7FFF : 0x7F;
      const bool is_used = i != NULL && index > 0 && index <= r->property_count;
      if (is_used && !associate(r, i, &r->properties[index - 1])) {
        return false;
      }
    }
  }
  return true;
}

static bool read_all_associations(heif_reader *r) {
  heif_box box;
  heif_walk walk = heif_walk_from(r->boxes.property_container, 0);
  while (heif_walk_next(&walk, &box)) {
    if (box.type == HEIF_TYPE('i', 'p', 'm', 'a') && !read_associations(r, box.body)) {
      return false;
    }
  }
  return true;
}

// MARK: Data

/// Returns whether libheif registers items of the type as images.
static bool is_image(uint32_t type) {
  return heif_is_derived(type) || type == HEIF_TYPE('h', 'v', 'c', '1') || type == HEIF_TYPE('a', 'v', '0', '1');
}

static void look_into_grid(heif_reader *r, heif_item *i, heif_span data) {
  heif_grid grid;
  if (heif_grid_read(data, &grid)) {
    i->canvas_pixels = larger(i->canvas_pixels, grid.width * grid.height);
    r->graph.grid = i->identifier == r->boxes.primary ? grid : r->graph.grid;
  }
}

static void look_into(heif_reader *r, heif_item *i, heif_span data) {
  switch (i->type) {
  case HEIF_TYPE('a', 'v', '0', '1'):
    ccodecs_heif_read_av1(data.bytes, data.count, &i->frames);
    break;
  case HEIF_TYPE('h', 'v', 'c', '1'):
    ccodecs_heif_read_hevc(data.bytes, data.count, 4, &i->frames);
    break;
  case HEIF_TYPE('g', 'r', 'i', 'd'):
    look_into_grid(r, i, data);
    break;
  case HEIF_TYPE('i', 'o', 'v', 'l'):
    i->canvas_pixels = larger(i->canvas_pixels, heif_overlay_pixels(data));
    i->has_part_outside = heif_has_part_outside(data);
    break;
  default:
    break;
  }
  note_frames(r, &i->frames);
  r->graph.has_chroma |= i->frames.has_chroma;
}

/// Checks an item's data, which is joined first if it is stored in several pieces.
static bool read_data(heif_reader *r, heif_item *i, const heif_place *place) {
  heif_extent extents[HEIF_MAX_EXTENTS];
  const heif_span source = place->method == 0   ? (heif_span){r->file, r->count}
                           : place->method == 1 ? r->boxes.data
                                                : (heif_span){NULL, 0};
  uint64_t total = 0;
  bool is_whole = source.bytes != NULL;
  for (uint32_t e = 0; e < place->extent_count; e++) {
    extents[e] = heif_place_extent(place, e, source.count);
    is_whole = is_whole && extents[e].is_whole;
    total = sum(total, extents[e].span_count);
  }
  i->has_data = i->has_data || (is_whole && total > 0);
  // libheif reads up to 16 bytes behind `idat`, and leaves out pieces beyond them.
  if (place->method == 1 && !is_whole && is_image(i->type)) {
    return corrupt(r, "an image in the file has no data or is incomplete");
  }
  r->data_bytes = sum(r->data_bytes, sum(total, i->configuration_bytes));
  const uint64_t limit = r->count * data_multiple + data_allowance;
  if (r->data_bytes > limit) {
    return exceeds(r, "bytes in its items", (ccodecs_excess){"max_item_bytes", limit, r->data_bytes});
  }
  if (place->extent_count == 1 && source.bytes != NULL) {
    look_into(r, i, (heif_span){source.bytes + extents[0].first, extents[0].span_count});
  }
  if (place->extent_count < 2 || source.bytes == NULL) {
    return true;
  }
  uint8_t *joined = ccodecs_allocate(r->budget, (size_t)total + 1);
  if (joined == NULL) {
    return refuse(r, CCODECS_NO_MEMORY, "no room for an item that is stored in pieces");
  }
  size_t length = 0;
  for (uint32_t e = 0; e < place->extent_count; e++) {
    memcpy(joined + length, source.bytes + extents[e].first, extents[e].span_count);
    length += extents[e].span_count;
  }
  look_into(r, i, (heif_span){joined, length});
  ccodecs_free(r->budget, joined);
  return true;
}

static bool read_places(heif_reader *r) {
  heif_places places;
  if (!heif_places_begin(r->boxes.places, &places)) {
    return corrupt(r, "the item location list is malformed");
  }
  if (places.left > MAX_ITEMS) {
    return exceeds(r, "items", (ccodecs_excess){"max_items", MAX_ITEMS, places.left});
  }
  for (heif_place place; places.left > 0;) {
    if (!heif_places_next(&places, &place)) {
      return corrupt(r, "the item location list is malformed");
    }
    r->extent_count += place.extent_count;
    if (r->extent_count > MAX_EXTENTS) {
      return exceeds(r, "pieces of items", (ccodecs_excess){"max_item_pieces", MAX_EXTENTS, r->extent_count});
    }
    heif_item *i =
        heif_find_item(r, place.identifier); // data of other items is not part of an image that libheif decodes
    if (i != NULL && i->has_place) {         // libheif reads the first one
      return corrupt(r, "an item has two locations");
    }
    if (i != NULL) {
      i->has_place = true;
    }
    if (i != NULL && place.method > 1) {
      i->has_data = true;
    } else if (i != NULL && !read_data(r, i, &place)) {
      return false;
    }
  }
  // Without data, libheif passes nothing to libdav1d, which then prints a message and leaks memory.
  for (uint32_t i = 0; i < r->item_count; i++) {
    if (r->items[i].type == HEIF_TYPE('a', 'v', '0', '1') && !r->items[i].has_data) {
      return corrupt(r, "an image in the file has no data or is incomplete");
    }
    // libheif reads outside the rows of such a part.
    if (r->items[i].has_part_outside) {
      return refuse(r, CCODECS_UNSUPPORTED, "overlays with parts that start outside them are not supported");
    }
  }
  return true;
}

// MARK: References

static void add_edge(heif_reader *r, const heif_item *from, const heif_item *to, bool is_alpha) {
  r->edges[r->edge_count++] =
      (heif_edge){.from = (uint32_t)(from - r->items), .to = (uint32_t)(to - r->items), .is_alpha = is_alpha};
}

/// Keeps the identifiers of the primary image's tiles in their order.
static bool keep_tiles(heif_reader *r, heif_span list, uint32_t number_bytes) {
  size_t at = 0;
  uint64_t identifier;
  r->graph.tiles = take(r, list.count / number_bytes, sizeof *r->graph.tiles);
  while (r->graph.tiles != NULL && heif_take_number(list, &at, number_bytes, &identifier)) {
    r->graph.tiles[r->graph.tile_count++] = (uint32_t)identifier;
  }
  return r->graph.tiles != NULL;
}

/// Changes a reference from an item to several others to a type that libheif ignores, as libheif 1.15 refuses a file
/// with one. Cameras write gain maps and EXIF that are those of an image and of its tone-mapped form.
static void conceal(heif_reader *r, heif_box box) {
  enum { SIZE_BYTES = 4 };
  r->file[box.head + SIZE_BYTES - r->file] = HEIF_CONCEALED;
}

/// Reads one kind of reference from one item to others.
static bool read_reference(heif_reader *r, heif_box box, uint32_t number_bytes, uint32_t *total) {
  size_t at = 0;
  uint64_t identifier;
  uint64_t count;
  // libheif takes 16 bytes more for the header of `uuid`, and would read other references behind them.
  if (box.type == HEIF_TYPE('u', 'u', 'i', 'd') || !heif_take_number(box.body, &at, number_bytes, &identifier) ||
      !heif_take_number(box.body, &at, 2, &count) || box.body.count - at != count * number_bytes) {
    return corrupt(r, "the item reference list is malformed");
  }
  *total += 1 + (uint32_t)count;
  if (*total > MAX_REFERENCES) {
    return exceeds(r, "references", (ccodecs_excess){"max_references", MAX_REFERENCES, *total});
  }
  const heif_item *from = heif_find_item(r, identifier);
  if (box.type == HEIF_TYPE('c', 'd', 's', 'c') && count > 1) {
    conceal(r, box);
  } else if (from != NULL && box.type == HEIF_TYPE('a', 'u', 'x', 'l') && count > 1 && !from->is_alpha) {
    conceal(r, box);
    *from->flags |= 1; // hidden, as it is no image of its own
    return true;
  }
  const bool is_list_of_tiles = from != NULL && from->identifier == r->boxes.primary && r->graph.grid.rows > 0 &&
                                box.type == HEIF_TYPE('d', 'i', 'm', 'g') && r->graph.tiles == NULL;
  if (is_list_of_tiles && !keep_tiles(r, (heif_span){box.body.bytes + at, box.body.count - at}, number_bytes)) {
    return false;
  }
  for (uint64_t k = 0; k < count && heif_take_number(box.body, &at, number_bytes, &identifier); k++) {
    const heif_item *to = heif_find_item(r, identifier);
    const bool derives = from != NULL && box.type == HEIF_TYPE('d', 'i', 'm', 'g') && heif_is_derived(from->type);
    // libheif ends the process where such an item is no image of the file.
    if (derives && (to == NULL || !is_image(to->type))) {
      return corrupt(r, "an image is derived from an item that is not an image of the file");
    }
    if (from == NULL || to == NULL) {
      continue;
    }
    if (derives) {
      add_edge(r, from, to, false);
    } else if (box.type == HEIF_TYPE('a', 'u', 'x', 'l')) {
      add_edge(r, to, from, true); // an image is decoded with its alpha
    }
  }
  return true;
}

static int compare_edges(const void *a, const void *b) {
  const uint32_t first = ((const heif_edge *)a)->from;
  const uint32_t second = ((const heif_edge *)b)->from;
  return first < second ? -1 : first > second;
}

static bool read_references(heif_reader *r) {
  const heif_span list = r->boxes.references;
  if (list.bytes == NULL) {
    return true;
  }
  r->edges = list.count < 4 ? NULL : take(r, MAX_REFERENCES, sizeof *r->edges);
  if (r->edges == NULL) {
    return list.count >= 4 ? false : corrupt(r, "the item reference list is malformed");
  }
  uint32_t total = 0;
  heif_box box;
  heif_walk walk = heif_walk_from(list, 4);
  while (heif_walk_next(&walk, &box)) {
    if (!read_reference(r, box, list.bytes[0] == 0 ? 2 : 4, &total)) {
      return false;
    }
  }
  if (walk.is_broken) {
    return corrupt(r, "the item reference list is malformed");
  }
  qsort(r->edges, r->edge_count, sizeof *r->edges, compare_edges);
  for (uint32_t e = r->edge_count; e-- > 0;) {
    r->items[r->edges[e].from].first_edge = e;
    r->items[r->edges[e].from].edge_count++;
  }
  return true;
}

// MARK: Work

static uint64_t pixels_of(const heif_item *i) {
  return larger(larger(i->stated_pixels, i->canvas_pixels), i->frames.max_pixels);
}

/// Returns the work of decoding an item itself. Filling a canvas, or transforming an image, costs a quarter of decoding
/// as many pixels.
static uint64_t own_work(const heif_item *i) {
  const uint64_t moved = sum(i->canvas_pixels, product(pixels_of(i), i->transform_count));
  return sum(product(i->frames.max_pixels, larger(i->frames.count, 1)), moved / 4);
}

/// Returns whether an item is an image that is coded by itself and has no alpha.
static bool is_plain_tile(const heif_reader *r, const heif_item *i) {
  bool has_alpha = false;
  for (uint32_t e = i->first_edge; e < i->first_edge + i->edge_count; e++) {
    has_alpha = has_alpha || r->edges[e].is_alpha;
  }
  return !has_alpha && !heif_is_derived(i->type);
}

/// Refuses parts that libheif copies from outside their planes, and images with two alphas, of which it loses one.
/// Cameras write alpha and crops only for the primary image and for gain maps.
static bool check_part(heif_reader *r, heif_item *i, const heif_item *part, bool is_alpha) {
  enum { MAX_CROPPED_SIDE = 32767 }; // libheif multiplies a position by a side, as int
  const bool is_coded = !heif_is_derived(part->type);
  const bool is_decoded = !is_alpha || (part->is_alpha && i->identifier != r->boxes.primary);
  if (is_decoded && part->has_crop && (!is_coded || part->frames.max_side > MAX_CROPPED_SIDE)) {
    return refuse(r, CCODECS_UNSUPPORTED, "derived images with such cropped parts are not supported");
  }
  const bool is_overlay = i->type == HEIF_TYPE('i', 'o', 'v', 'l');
  const bool has_alpha = is_alpha ? part->is_alpha : part->carries_alpha;
  if (has_alpha && ((is_overlay && !is_alpha) || (!is_overlay && i->carries_alpha))) {
    return refuse(r, CCODECS_UNSUPPORTED, "images derived from images with alpha are not supported");
  }
  i->carries_alpha |= has_alpha;
  i->max_canvas = !is_alpha || part->is_alpha ? larger(i->max_canvas, part->max_canvas) : i->max_canvas;
  return true;
}

/// Adds up an item's work. MAX_DEPTH bounds the recursion.
static bool visit(heif_reader *r, heif_item *i, uint32_t depth) {
  if (i->state == VISIT_BEGUN) {
    return corrupt(r, "an image is derived from itself");
  }
  if (depth + i->height > MAX_DEPTH) {
    return exceeds(
        r, "levels of derived images", (ccodecs_excess){"max_derivation_depth", MAX_DEPTH, depth + i->height});
  }
  if (i->state == VISIT_DONE) {
    return true;
  }
  i->state = VISIT_BEGUN;
  i->work = own_work(i);
  i->max_canvas = i->canvas_pixels;
  for (uint32_t e = i->first_edge; e < i->first_edge + i->edge_count; e++) {
    heif_item *part = &r->items[r->edges[e].to];
    if (!visit(r, part, depth + 1)) {
      return false;
    }
    // libheif copies the alpha of a tile by the size and depth of its colors, and so reads and writes outside planes.
    const bool is_tile = i->type == HEIF_TYPE('g', 'r', 'i', 'd') && !r->edges[e].is_alpha;
    if (is_tile && !is_plain_tile(r, part)) {
      return refuse(r, CCODECS_UNSUPPORTED, "grids of tiles that are derived or have alpha are not supported");
    }
    if (!check_part(r, i, part, r->edges[e].is_alpha)) {
      return false;
    }
    i->work = sum(i->work, part->work);
    i->height = (uint32_t)larger(i->height, part->height + 1);
  }
  i->state = VISIT_DONE;
  return true;
}

static bool check_work(heif_reader *r) {
  for (uint32_t i = 0; i < r->item_count; i++) {
    if (!visit(r, &r->items[i], 0)) {
      return false;
    }
  }
  if (r->graph.has_dependent) {
    return refuse(r, CCODECS_UNSUPPORTED, "HEVC with dependent slices is not supported");
  }
  const heif_item *primary = heif_find_item(r, r->boxes.primary);
  if (primary == NULL) {
    return corrupt(r, "it has no primary image");
  }
  heif_describe_primary(r, primary);
  heif_expose_primary(r, primary);
  const uint64_t limit = sum(product(pixels_of(primary), work_multiple), work_allowance);
  return primary->work <= limit ||
         exceeds(r, "pixels in all parts", (ccodecs_excess){"max_part_pixels", limit, primary->work});
}

ccodecs_heif_graph ccodecs_heif_graph_read(uint8_t *file, size_t count, ccodecs_budget *budget) {
  heif_reader r = {.budget = budget, .file = file, .count = count};
  const char *reason = heif_find_boxes((heif_span){file, count}, &r.boxes);
  if (reason != NULL) {
    corrupt(&r, reason);
  } else if (
      read_items(&r) && read_properties(&r) && read_all_associations(&r) && read_places(&r) && read_references(&r)) {
    check_work(&r);
  }
  ccodecs_free(budget, r.items);
  ccodecs_free(budget, r.properties);
  ccodecs_free(budget, r.edges);
  return r.graph;
}

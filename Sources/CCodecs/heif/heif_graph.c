// Reads items, properties, locations and references of an HEIC or AVIF file, and computes the cost of decoding its
// primary image. Sources: ISO/IEC 14496-12 (boxes), 23008-12 (items, derived images); libheif 1.15 for its
// interpretation of them.

#include "heif_graph.h"

#include "../memory/bytes.h"
#include "heif_boxes.h"
#include "heif_coded.h"

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

typedef enum visit_state { VISIT_NEW, VISIT_BEGUN, VISIT_DONE } visit_state;

typedef struct item {
  uint32_t identifier;
  uint32_t type;
  uint64_t stated_pixels; ///< According to its `ispe` property.
  uint64_t canvas_pixels; ///< Size of the canvas of a grid or an overlay.
  ccodecs_heif_frames frames;
  uint64_t configuration_bytes;
  uint32_t transform_count;
  bool is_monochrome;
  bool has_part_outside;
  bool has_data;
  uint32_t first_edge;
  uint32_t edge_count;
  visit_state state;
  uint32_t height; ///< Longest path to an image that is not derived from others.
  uint64_t work;   ///< Work in pixels, including that of the images it is derived from.
} item;

typedef struct property {
  uint32_t type;
  uint64_t pixels;            ///< According to `ispe`.
  ccodecs_heif_frames frames; ///< Announced by a codec configuration.
  uint64_t byte_count;
  bool is_monochrome;
} property;

/// A dependency: decoding `from` requires decoding `to`. Both are indices in the list of items.
typedef struct edge {
  uint32_t from;
  uint32_t to;
  bool is_alpha;
} edge;

typedef struct reader {
  ccodecs_heif_graph graph;
  ccodecs_budget *budget;
  uint8_t *file;
  size_t count;
  heif_boxes boxes;
  item *items;
  uint32_t item_count;
  property *properties;
  uint32_t property_count;
  uint32_t association_count;
  uint32_t extent_count;
  edge *edges;
  uint32_t edge_count;
  uint64_t data_bytes;
} reader;

// MARK: Failures and sums

__attribute__((format(printf, 3, 4))) static bool refuse(reader *r, ccodecs_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->graph.message, sizeof r->graph.message, format, arguments);
  va_end(arguments);
  r->graph.status = status;
  return false;
}

static bool corrupt(reader *r, const char *reason) {
  return refuse(r, CCODECS_CORRUPT, "%s", reason);
}

static bool exceeds(reader *r, const char *things, ccodecs_excess excess) {
  r->graph.things = things;
  r->graph.excess = excess;
  r->graph.status = CCODECS_LIMIT;
  return false;
}

static void *take(reader *r, size_t count, size_t size) {
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
  const uint32_t first = ((const item *)a)->identifier;
  const uint32_t second = ((const item *)b)->identifier;
  return first < second ? -1 : first > second;
}

/// Returns the item with this identifier; NULL when there is none.
static item *find_item(const reader *r, uint64_t identifier) {
  uint32_t first = 0;
  uint32_t end = r->item_count;
  while (first < end) {
    const uint32_t middle = first + (end - first) / 2;
    if (r->items[middle].identifier < identifier) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first < r->item_count && r->items[first].identifier == identifier ? &r->items[first] : NULL;
}

/// Skips a string and its zero. Returns false when the string does not end.
static bool skip_string(heif_span span, size_t *at) {
  while (*at < span.count && span.bytes[*at] != 0) {
    (*at)++;
  }
  return (*at)++ < span.count;
}

/// Reads an item's entry in the list of items.
static bool read_entry(reader *r, heif_span entry) {
  item *i = &r->items[r->item_count];
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
  r->item_count++;
  return true;
}

static bool read_items(reader *r) {
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

static property read_property(reader *r, heif_box box) {
  property p = {.type = box.type, .byte_count = box.body.count};
  const uint8_t *bytes = box.body.bytes;
  switch (box.type) {
  case HEIF_TYPE('i', 's', 'p', 'e'):
    p.pixels = box.body.count >= 12 ? (uint64_t)ccodecs_be32(bytes + 4) * ccodecs_be32(bytes + 8) : 0;
    break;
  case HEIF_TYPE('h', 'v', 'c', 'C'):
    p.is_monochrome = box.body.count > 16 && (bytes[16] & 3) == 0;
    ccodecs_heif_read_hevc_configuration(bytes, box.body.count, &p.frames);
    break;
  case HEIF_TYPE('a', 'v', '1', 'C'):
    p.is_monochrome = box.body.count > 2 && (bytes[2] & 0x10) != 0;
    r->graph.has_full_chroma |= box.body.count > 2 && !p.is_monochrome && (bytes[2] & 0x0C) != 0x0C;
    if (box.body.count > 4) {
      ccodecs_heif_read_av1(bytes + 4, box.body.count - 4, &p.frames);
    }
    break;
  default:
    break;
  }
  return p;
}

static bool read_properties(reader *r) {
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
    const property p = read_property(r, box);
    r->graph.max_frame_pixels = larger(r->graph.max_frame_pixels, p.frames.max_pixels);
    r->properties[r->property_count++] = p;
  }
  return r->properties != NULL;
}

static void associate(item *i, const property *p) {
  switch (p->type) {
  case HEIF_TYPE('i', 's', 'p', 'e'):
    i->stated_pixels = larger(i->stated_pixels, p->pixels);
    break;
  case HEIF_TYPE('h', 'v', 'c', 'C'):
  case HEIF_TYPE('a', 'v', '1', 'C'):
    i->frames.max_pixels = larger(i->frames.max_pixels, p->frames.max_pixels);
    i->frames.count = sum(i->frames.count, p->frames.count);
    i->is_monochrome = p->is_monochrome;
    i->configuration_bytes = larger(i->configuration_bytes, p->byte_count);
    break;
  case HEIF_TYPE('i', 'r', 'o', 't'):
  case HEIF_TYPE('i', 'm', 'i', 'r'):
  case HEIF_TYPE('c', 'l', 'a', 'p'):
    i->transform_count++;
    break;
  default:
    break;
  }
}

/// Reads which properties items have. A truncated box is valid as far as it goes, as in libheif.
static bool read_associations(reader *r, heif_span body) {
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
    item *i = find_item(r, identifier);
    r->association_count += 1 + (uint32_t)count;
    if (r->association_count > MAX_ASSOCIATIONS) {
      return exceeds(
          r, "properties of items", (ccodecs_excess){"max_associations", MAX_ASSOCIATIONS, r->association_count});
    }
    uint64_t index;
    for (uint64_t k = 0; k < count && heif_take_number(body, &at, is_wide ? 2 : 1, &index); k++) {
      index &= is_wide ? 0x7FFF : 0x7F;
      if (i != NULL && index > 0 && index <= r->property_count) {
        associate(i, &r->properties[index - 1]);
      }
    }
  }
  return true;
}

static bool read_all_associations(reader *r) {
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

static void look_into(reader *r, item *i, heif_span data) {
  switch (i->type) {
  case HEIF_TYPE('a', 'v', '0', '1'):
    ccodecs_heif_read_av1(data.bytes, data.count, &i->frames);
    break;
  case HEIF_TYPE('h', 'v', 'c', '1'):
    ccodecs_heif_read_hevc(data.bytes, data.count, 4, &i->frames);
    break;
  case HEIF_TYPE('g', 'r', 'i', 'd'):
  case HEIF_TYPE('i', 'o', 'v', 'l'):
    i->canvas_pixels = larger(i->canvas_pixels, heif_canvas_pixels(i->type, data));
    i->has_part_outside = i->type == HEIF_TYPE('i', 'o', 'v', 'l') && heif_has_part_outside(data);
    break;
  default:
    break;
  }
  r->graph.max_frame_pixels = larger(r->graph.max_frame_pixels, i->frames.max_pixels);
}

/// Checks an item's data, which is joined first if it is stored in several pieces.
static bool read_data(reader *r, item *i, const heif_place *place) {
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

static bool read_places(reader *r) {
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
    item *i = find_item(r, place.identifier); // data of other items is not part of an image that libheif decodes
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

static bool is_derived(uint32_t type) {
  return type == HEIF_TYPE('g', 'r', 'i', 'd') || type == HEIF_TYPE('i', 'o', 'v', 'l') ||
         type == HEIF_TYPE('i', 'd', 'e', 'n');
}

/// Returns whether libheif registers items of the type as images.
static bool is_image(uint32_t type) {
  return is_derived(type) || type == HEIF_TYPE('h', 'v', 'c', '1') || type == HEIF_TYPE('a', 'v', '0', '1');
}

static void add_edge(reader *r, const item *from, const item *to, bool is_alpha) {
  r->edges[r->edge_count++] =
      (edge){.from = (uint32_t)(from - r->items), .to = (uint32_t)(to - r->items), .is_alpha = is_alpha};
}

/// Reads one kind of reference from one item to others.
static bool read_reference(reader *r, heif_box box, uint32_t number_bytes, uint32_t *total) {
  size_t at = 0;
  uint64_t identifier;
  uint64_t count;
  if (!heif_take_number(box.body, &at, number_bytes, &identifier) || !heif_take_number(box.body, &at, 2, &count) ||
      box.body.count - at != count * number_bytes) {
    return corrupt(r, "the item reference list is malformed");
  }
  *total += 1 + (uint32_t)count;
  if (*total > MAX_REFERENCES) {
    return exceeds(r, "references", (ccodecs_excess){"max_references", MAX_REFERENCES, *total});
  }
  const item *from = find_item(r, identifier);
  for (uint64_t k = 0; k < count && heif_take_number(box.body, &at, number_bytes, &identifier); k++) {
    const item *to = find_item(r, identifier);
    const bool derives = from != NULL && box.type == HEIF_TYPE('d', 'i', 'm', 'g') && is_derived(from->type);
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
  const uint32_t first = ((const edge *)a)->from;
  const uint32_t second = ((const edge *)b)->from;
  return first < second ? -1 : first > second;
}

static bool read_references(reader *r) {
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

static uint64_t pixels_of(const item *i) {
  return larger(larger(i->stated_pixels, i->canvas_pixels), i->frames.max_pixels);
}

/// Returns the work of decoding an item itself. Filling a canvas, or transforming an image, costs a quarter of decoding
/// as many pixels.
static uint64_t own_work(const item *i) {
  const uint64_t moved = sum(i->canvas_pixels, product(pixels_of(i), i->transform_count));
  return sum(product(i->frames.max_pixels, larger(i->frames.count, 1)), moved / 4);
}

/// Adds up an item's work. MAX_DEPTH bounds the recursion.
static bool visit(reader *r, item *i, uint32_t depth) {
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
  for (uint32_t e = i->first_edge; e < i->first_edge + i->edge_count; e++) {
    item *part = &r->items[r->edges[e].to];
    if (!visit(r, part, depth + 1)) {
      return false;
    }
    i->work = sum(i->work, part->work);
    i->height = (uint32_t)larger(i->height, part->height + 1);
  }
  i->state = VISIT_DONE;
  return true;
}

static void describe_primary(reader *r, const item *primary) {
  r->graph.work = primary->work;
  r->graph.is_monochrome = primary->is_monochrome;
  for (uint32_t e = primary->first_edge; e < primary->first_edge + primary->edge_count; e++) {
    if (!r->edges[e].is_alpha) {
      r->graph.is_monochrome = r->items[r->edges[e].to].is_monochrome;
      break;
    }
  }
  for (uint32_t i = 0; i < r->item_count; i++) {
    r->graph.is_composed |= is_derived(r->items[i].type) && r->items[i].type != HEIF_TYPE('g', 'r', 'i', 'd');
  }
}

static bool check_work(reader *r) {
  for (uint32_t i = 0; i < r->item_count; i++) {
    if (!visit(r, &r->items[i], 0)) {
      return false;
    }
  }
  const item *primary = find_item(r, r->boxes.primary);
  if (primary == NULL) {
    return corrupt(r, "it has no primary image");
  }
  describe_primary(r, primary);
  const uint64_t limit = sum(product(pixels_of(primary), work_multiple), work_allowance);
  return primary->work <= limit ||
         exceeds(r, "pixels in all parts", (ccodecs_excess){"max_part_pixels", limit, primary->work});
}

ccodecs_heif_graph ccodecs_heif_graph_read(uint8_t *file, size_t count, ccodecs_budget *budget) {
  reader r = {.budget = budget, .file = file, .count = count};
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

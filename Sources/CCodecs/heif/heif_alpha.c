// The alpha of an image does not need a size of its own (ISO/IEC 23000-22, 7.3.5.2; libavif), but libheif 1.15 drops an
// alpha without one. So this file adds the image's size to the alpha's list of properties. The only changes are one
// entry of `ipma` and the sizes of the boxes around it. Offsets in the file stay valid, because the copy is appended at
// the end.

#include "heif_alpha.h"
#include "heif_boxes.h"
#include "heif_property.h"

enum {
  MAX_LISTED = 64,
  MAX_META_BYTES = 1 << 20,
  BOX_HEADER_BYTES = 8,
};

/// The properties of an item. Each entry has a 15-bit index, starting at 1, and above it the essential flag.
typedef struct property_list {
  size_t at; ///< Offset in `ipma` of the byte with their count.
  uint32_t count;
  uint16_t entries[MAX_LISTED];
} property_list;

typedef struct alpha_reader {
  heif_boxes boxes;
  heif_span meta;
  heif_span associations; ///< The only `ipma`.
  bool is_wide;           ///< Its entries have two bytes.
} alpha_reader;

static uint32_t box_type_of(const alpha_reader *r, uint16_t entry, heif_span *body) {
  heif_box box;
  heif_walk walk = heif_walk_from(r->boxes.properties, 0);
  for (uint32_t left = entry & 0x7FFF; left > 0; left--) {
    if (!heif_walk_next(&walk, &box)) {
      return 0;
    }
    *body = box.body;
  }
  return (entry & 0x7FFF) == 0 ? 0 : box.type;
}

/// Returns whether the box with this body has a header of eight bytes, whose size can be rewritten.
static bool has_plain_header(heif_span body) {
  return ccodecs_be32(body.bytes - BOX_HEADER_BYTES) == body.count + BOX_HEADER_BYTES;
}

/// Returns the only box of a type; NULL bytes if there are none or several.
static heif_span find_only(heif_span container, size_t at, uint32_t type) {
  heif_span found = {0};
  heif_box box;
  heif_walk walk = heif_walk_from(container, at);
  while (heif_walk_next(&walk, &box)) {
    if (box.type == type && found.bytes != NULL) {
      return (heif_span){0};
    }
    found = box.type == type ? box.body : found;
  }
  return found;
}

static bool open_boxes(const ccodecs_bytes *file, alpha_reader *r) {
  const heif_span all = {ccodecs_bytes_start(file), file->count};
  if (heif_find_boxes(all, &r->boxes) != NULL || r->boxes.references.count < 4) {
    return false;
  }
  r->meta = find_only(all, 0, HEIF_TYPE('m', 'e', 't', 'a'));
  r->associations = find_only(r->boxes.property_container, 0, HEIF_TYPE('i', 'p', 'm', 'a'));
  if (r->meta.count > MAX_META_BYTES || r->associations.bytes == NULL || r->associations.count < 8) {
    return false;
  }
  r->is_wide = (r->associations.bytes[3] & 1) != 0;
  return has_plain_header(r->meta) && has_plain_header(r->associations) &&
         has_plain_header(r->boxes.property_container);
}

/// Finds the properties of an item. Returns false when there is no list of them, or when it is too long.
static bool find_list(const alpha_reader *r, uint64_t wanted, property_list *list) {
  const heif_span body = r->associations;
  const uint32_t number_bytes = body.bytes[0] < 1 ? 2 : 4;
  size_t at = 8;
  uint64_t identifier;
  uint64_t count;
  while (heif_take_number(body, &at, number_bytes, &identifier)) {
    list->at = at;
    if (!heif_take_number(body, &at, 1, &count)) {
      return false;
    }
    if (identifier != wanted) {
      at += (size_t)count * (r->is_wide ? 2 : 1);
      continue;
    }
    list->count = 0;
    for (uint64_t value; list->count < count && list->count < MAX_LISTED; list->count++) {
      if (!heif_take_number(body, &at, r->is_wide ? 2 : 1, &value)) {
        return false;
      }
      list->entries[list->count] = (uint16_t)(r->is_wide ? value : (value & 0x7F) | (value & 0x80) << 8);
    }
    return list->count == count;
  }
  return false;
}

/// Returns whether an item is marked as alpha, by the name of MPEG-B or of HEVC.
static bool is_alpha(const alpha_reader *r, const property_list *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    heif_span body;
    if (box_type_of(r, list->entries[i], &body) == HEIF_TYPE('a', 'u', 'x', 'C') && heif_is_alpha(body)) {
      return true;
    }
  }
  return false;
}

/// Finds the alpha of the primary image through the reference from the alpha item to the image.
static bool find_alpha(const alpha_reader *r, property_list *list) {
  const heif_span all = r->boxes.references;
  const uint32_t number_bytes = all.bytes[0] == 0 ? 2 : 4;
  heif_box box;
  heif_walk walk = heif_walk_from(all, 4);
  while (heif_walk_next(&walk, &box)) {
    size_t at = 0;
    uint64_t from;
    uint64_t count;
    uint64_t to;
    if (box.type == HEIF_TYPE('a', 'u', 'x', 'l') && heif_take_number(box.body, &at, number_bytes, &from) &&
        heif_take_number(box.body, &at, 2, &count) && count == 1 &&
        heif_take_number(box.body, &at, number_bytes, &to) && to == r->boxes.primary) {
      return find_list(r, from, list) && is_alpha(r, list);
    }
  }
  return false;
}

/// Returns the entry of a list that is the item's size; 0 without one.
static uint16_t find_size(const alpha_reader *r, const property_list *list) {
  heif_span body;
  for (uint32_t i = 0; i < list->count; i++) {
    if (box_type_of(r, list->entries[i], &body) == HEIF_TYPE('i', 's', 'p', 'e')) {
      return list->entries[i];
    }
  }
  return 0;
}

static void enlarge(uint8_t *copy, size_t body_at, size_t grown) {
  uint8_t *header = copy + body_at - BOX_HEADER_BYTES;
  ccodecs_put_be32(header, ccodecs_be32(header) + (uint32_t)grown);
}

/// Appends the copy, in which `entry` is first in the list, and marks the original as free space.
static bool write_copy(
    ccodecs_bytes *file, const alpha_reader *r, const property_list *list, uint16_t entry, ccodecs_budget *budget) {
  const size_t grown = r->is_wide ? 2 : 1;
  const uint8_t *start = r->meta.bytes - BOX_HEADER_BYTES;
  const size_t meta_at = (size_t)(start - ccodecs_bytes_start(file));
  const size_t count = r->meta.count + BOX_HEADER_BYTES;
  const size_t container_at = (size_t)(r->boxes.property_container.bytes - start);
  const size_t associations_at = (size_t)(r->associations.bytes - start);
  const size_t rest_at = associations_at + list->at + 1;
  if (!ccodecs_bytes_reserve(file, count + grown, budget)) {
    return false;
  }
  uint8_t *original = ccodecs_bytes_start(file) + meta_at;
  uint8_t *copy = ccodecs_bytes_start(file) + file->count;
  memcpy(copy, original, rest_at);
  copy[rest_at - 1] = (uint8_t)(list->count + 1);
  if (r->is_wide) {
    copy[rest_at] = (uint8_t)(entry >> 8);
  }
  copy[rest_at + grown - 1] = (uint8_t)(r->is_wide ? entry : (entry & 0x7F) | (entry >> 8 & 0x80));
  memcpy(copy + rest_at + grown, original + rest_at, count - rest_at);
  enlarge(copy, BOX_HEADER_BYTES, grown);
  enlarge(copy, container_at, grown);
  enlarge(copy, associations_at, grown);
  memcpy(original + 4, "free", 4);
  file->count += count + grown;
  return true;
}

bool ccodecs_heif_size_alpha(ccodecs_bytes *file, ccodecs_budget *budget) {
  alpha_reader r = {0};
  property_list image;
  property_list alpha;
  if (!open_boxes(file, &r) || !find_alpha(&r, &alpha) || !find_list(&r, r.boxes.primary, &image)) {
    return true;
  }
  const uint16_t size = find_size(&r, &image);
  const bool is_due = size != 0 && find_size(&r, &alpha) == 0 && alpha.count < MAX_LISTED;
  return !is_due || write_copy(file, &r, &alpha, size, budget);
}

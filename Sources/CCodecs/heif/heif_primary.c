#include "heif_primary.h"

heif_item *heif_find_item(const heif_reader *r, uint64_t identifier) {
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

bool heif_is_derived(uint32_t type) {
  return type == HEIF_TYPE('g', 'r', 'i', 'd') || type == HEIF_TYPE('i', 'o', 'v', 'l') ||
         type == HEIF_TYPE('i', 'd', 'e', 'n');
}

void heif_describe_primary(heif_reader *r, const heif_item *primary) {
  const heif_item *coded = primary; // the image itself, or the first one that it is derived from
  for (uint32_t e = primary->first_edge; e < primary->first_edge + primary->edge_count && coded == primary; e++) {
    coded = r->edges[e].is_alpha ? primary : &r->items[r->edges[e].to];
  }
  r->graph.work = primary->work;
  r->graph.max_canvas = primary->max_canvas;
  r->graph.is_monochrome = coded->is_monochrome;
  r->graph.color = primary->color.is_known ? primary->color
                   : coded->color.is_known ? coded->color
                                           : coded->frames.color;
  for (uint32_t i = 0; i < r->item_count; i++) {
    r->graph.is_composed |= heif_is_derived(r->items[i].type) && r->items[i].type != HEIF_TYPE('g', 'r', 'i', 'd');
  }
}

/// Removes the transforms of the primary image and of its alpha. These belong to the image in its coded form, so the
/// image's transforms apply to both (ISO/IEC 23000-22, 7.3.5.2; libavif).
static void remove_primary_transforms(heif_reader *r, const heif_item *primary) {
  heif_box box;
  heif_walk walk = heif_walk_from(r->boxes.property_container, 0);
  while (heif_walk_next(&walk, &box)) {
    if (box.type != HEIF_TYPE('i', 'p', 'm', 'a')) {
      continue;
    }
    const heif_property_list list = {r->properties, r->property_count};
    uint8_t *body = r->file + (box.body.bytes - r->file);
    heif_remove_transforms(body, box.body.count, list, primary->identifier);
    for (uint32_t e = primary->first_edge; e < primary->first_edge + primary->edge_count; e++) {
      const heif_item *to = &r->items[r->edges[e].to];
      if (r->edges[e].is_alpha && to->is_alpha) { // the crop of a gain map matters
        heif_remove_transforms(body, box.body.count, list, to->identifier);
      }
    }
  }
}

/// Marks the tiles as images that libheif returns, and counts them.
static void unhide_tiles(heif_reader *r) {
  for (uint32_t i = 0; i < r->graph.tile_count; i++) {
    heif_item *tile = heif_find_item(r, r->graph.tiles[i]);
    if (tile != NULL && !tile->is_tile) {
      tile->is_tile = true;
      *tile->flags &= 0xFE;
      r->graph.tile_item_count++;
    }
  }
}

void heif_expose_primary(heif_reader *r, const heif_item *primary) {
  remove_primary_transforms(r, primary);
  unhide_tiles(r);
}

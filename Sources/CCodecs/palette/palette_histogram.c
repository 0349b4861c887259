// Counts colors with bounded memory: when there are too many, one more low bit of each sample is not distinguished.

#include "palette_private.h"

enum { MAX_PROBES = 128, FEW_BINS = 2048 };

_Static_assert(
    sizeof(ccodecs_palette_histogram) + PALETTE_BLOCK_BYTES <= CCODECS_PALETTE_HISTOGRAM_BYTES, "documented");

ccodecs_status ccodecs_palette_histogram_create(
    ccodecs_palette_transparency transparency, ccodecs_budget *budget, ccodecs_palette_histogram **histogram) {
  ccodecs_palette_histogram *h = ccodecs_allocate(budget, sizeof *h);
  *histogram = h;
  if (h == NULL) {
    return CCODECS_NO_MEMORY;
  }
  h->budget = budget;
  h->transparency = transparency;
  h->bin_count = PALETTE_MAX_BINS; // every slot is cleared
  ccodecs_palette_space_fill(&h->space);
  ccodecs_palette_histogram_clear(h);
  return CCODECS_OK;
}

void ccodecs_palette_histogram_clear(ccodecs_palette_histogram *h) {
  h->has_transparent = false;
  h->dropped_bits = 0;
  if (h->bin_count < FEW_BINS) {
    for (uint32_t i = 0; i < h->bin_count; i++) {
      h->slots[h->bins[i].slot] = 0;
    }
  } else {
    memset(h->slots, 0, sizeof h->slots);
  }
  h->bin_count = h->located = 0;
}

void ccodecs_palette_histogram_destroy(ccodecs_palette_histogram *h) {
  if (h != NULL) {
    ccodecs_free(h->budget, h);
  }
}

static uint32_t kept_bits(uint32_t dropped_bits) {
  return 0x01010101u * (0xffu >> dropped_bits << dropped_bits & 0xff);
}

/// Returns the slot that has the key, or the empty one where it belongs, or NULL if that is too far away: colors that
/// an adversary chose to share slots must not make lookups slow.
static uint16_t *find_slot(ccodecs_palette_histogram *h, uint32_t key) {
  const uint32_t first = (key ^ key >> 15) * 0x9e3779b1u >> 16;
  for (uint32_t i = 0; i < MAX_PROBES; i++) {
    uint16_t *slot = h->slots + (first + i) % PALETTE_SLOTS;
    if (*slot == 0 || h->bins[*slot - 1].key == key) {
      return slot;
    }
  }
  return NULL;
}

/// Merges the bins whose keys have become equal. Returns false if a key has no slot.
static bool merge_bins(ccodecs_palette_histogram *h) {
  const uint32_t count = h->bin_count, kept = kept_bits(h->dropped_bits);
  bool has_slots = true;
  memset(h->slots, 0, sizeof h->slots);
  h->bin_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    palette_bin bin = h->bins[i];
    bin.key &= kept;
    uint16_t *slot = has_slots ? find_slot(h, bin.key) : NULL;
    if (slot == NULL || *slot == 0) {
      has_slots = slot != NULL;
      bin.slot = has_slots ? (uint32_t)(slot - h->slots) : 0;
      h->bins[h->bin_count] = bin;
      memmove(h->sums[h->bin_count++], h->sums[i], sizeof h->sums[i]);
      if (has_slots) {
        *slot = (uint16_t)h->bin_count;
      }
      continue;
    }
    const uint32_t same = *slot - 1u;
    h->bins[same].weight += bin.weight;
    for (int c = 0; c < 4; c++) {
      h->sums[same][c] += h->sums[i][c];
    }
  }
  return has_slots;
}

/// Drops one more bit, or several if keys have no slots otherwise. Without any bits there is one key.
static void drop_bit(ccodecs_palette_histogram *h) {
  for (uint32_t i = 0; i < h->bin_count && h->dropped_bits == 0; i++) {
    for (int c = 0; c < 4; c++) {
      h->sums[i][c] = h->bins[i].weight * (h->bins[i].key >> 8 * c & 0xff);
    }
  }
  h->located = 0;
  do {
    h->dropped_bits++;
  } while (!merge_bins(h));
}

static void count_color(ccodecs_palette_histogram *h, uint32_t color, uint32_t weight) {
  uint16_t *slot = find_slot(h, color & kept_bits(h->dropped_bits));
  while (slot == NULL || (*slot == 0 && h->bin_count == PALETTE_MAX_BINS)) {
    drop_bit(h);
    slot = find_slot(h, color & kept_bits(h->dropped_bits));
  }
  if (*slot == 0) {
    const uint32_t key = color & kept_bits(h->dropped_bits);
    h->bins[h->bin_count] = (palette_bin){.key = key, .slot = (uint32_t)(slot - h->slots)};
    if (h->dropped_bits > 0) {
      memset(h->sums[h->bin_count], 0, sizeof h->sums[0]);
    }
    *slot = (uint16_t)++h->bin_count;
  }
  const uint32_t bin = *slot - 1u;
  h->bins[bin].weight += weight;
  for (int c = 0; c < 4 && h->dropped_bits > 0; c++) {
    h->sums[bin][c] += (uint64_t)weight * (color >> 8 * c & 0xff);
  }
  h->located = h->dropped_bits > 0 ? 0 : h->located;
}

void ccodecs_palette_histogram_locate(ccodecs_palette_histogram *h) {
  for (; h->located < h->bin_count; h->located++) {
    uint8_t rgba[4];
    palette_bin_color(h, h->located, rgba);
    h->points[h->located] = ccodecs_palette_space_point(&h->space, rgba);
  }
}

/// Counts pixels, except those that equal a pixel of `before` if it is not NULL.
static inline __attribute__((always_inline)) void count_pixels(
    ccodecs_palette_histogram *h, const uint8_t *pixels, const uint8_t *before, uint32_t channels, uint32_t count) {
  const bool is_binary = h->transparency != CCODECS_PALETTE_ALPHA;
  uint32_t last = 0, run = 0;
  for (size_t x = 0; x < count; x++) {
    if (before != NULL && palette_are_many_equal(pixels, before, channels, x, count)) {
      x += PALETTE_MANY - 1;
      continue;
    }
    const uint32_t pixel = palette_read_pixel(pixels + x * channels, channels);
    if (before != NULL && pixel == palette_read_pixel(before + x * channels, channels)) {
      continue;
    }
    const uint32_t color = palette_represented(pixel, is_binary);
    if (color == 0) {
      h->has_transparent = true;
      if (is_binary) {
        continue;
      }
    }
    if (color != last && run > 0) {
      count_color(h, last, run);
      run = 0;
    }
    last = color;
    run++;
  }
  if (run > 0) {
    count_color(h, last, run);
  }
}

void ccodecs_palette_histogram_add(
    ccodecs_palette_histogram *h, const uint8_t *pixels, uint32_t channels, uint32_t count) {
  ccodecs_palette_histogram_add_changes(h, pixels, NULL, channels, count);
}

void ccodecs_palette_histogram_add_changes(
    ccodecs_palette_histogram *h, const uint8_t *pixels, const uint8_t *before, uint32_t channels, uint32_t count) {
  if (channels == 4) {
    count_pixels(h, pixels, before, 4, count);
  } else {
    count_pixels(h, pixels, before, channels, count);
  }
}

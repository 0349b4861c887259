// Keeps the coefficients of an image, and writes them as the scans of a progressive file (T.81, annex G).

#include "jpeg_encode.h"
#include "jpeg_encode_tokens.h"

// MARK: Store

bool ccodecs_jpeg_store_init(jpeg_store *store, uint32_t columns, uint32_t rows, ccodecs_budget *budget) {
  const size_t count = (size_t)columns * rows;
  store->columns = columns;
  store->rows = rows;
  store->masks = ccodecs_allocate(budget, count * sizeof *store->masks);
  store->dc = ccodecs_allocate(budget, count * sizeof *store->dc);
  return store->masks != NULL && store->dc != NULL;
}

bool ccodecs_jpeg_store_append(jpeg_store *store, const jpeg_block *block, ccodecs_budget *budget) {
  const uint32_t count = (uint32_t)__builtin_popcountll(block->mask);
  if (store->last == NULL || store->last->count + count > JPEG_LEVELS_PER_CHUNK) {
    jpeg_level_chunk *chunk = ccodecs_allocate(budget, sizeof *chunk);
    if (chunk == NULL) {
      return false;
    }
    chunk->next = NULL;
    chunk->count = 0;
    if (store->last != NULL) {
      store->last->next = chunk;
    } else {
      store->first = chunk;
    }
    store->last = chunk;
  }
  store->masks[store->count] = block->mask;
  store->dc[store->count] = block->dc;
  int16_t *levels = store->last->levels + store->last->count;
  for (uint64_t mask = block->mask; mask != 0; mask &= mask - 1) {
    *levels++ = block->levels[ccodecs_jpeg_transposed_zigzag[__builtin_ctzll(mask)]];
  }
  store->last->count += count;
  store->count++;
  return true;
}

void ccodecs_jpeg_store_read(const jpeg_store *store, jpeg_store_cursor *cursor, jpeg_block *block) {
  if (cursor->block == 0) {
    cursor->chunk = store->first;
  }
  block->mask = store->masks[cursor->block];
  block->dc = store->dc[cursor->block++];
  const uint32_t count = (uint32_t)__builtin_popcountll(block->mask);
  if (count > 0 && cursor->level == cursor->chunk->count) {
    cursor->chunk = cursor->chunk->next;
    cursor->level = 0;
  }
  const int16_t *levels = count == 0 ? NULL : cursor->chunk->levels + cursor->level;
  for (uint64_t mask = block->mask; mask != 0; mask &= mask - 1) {
    block->levels[ccodecs_jpeg_transposed_zigzag[__builtin_ctzll(mask)]] = *levels++;
  }
  cursor->level += count;
}

void ccodecs_jpeg_store_free(jpeg_store *store, ccodecs_budget *budget) {
  while (store->first != NULL) {
    jpeg_level_chunk *chunk = store->first;
    store->first = chunk->next;
    ccodecs_free(budget, chunk);
  }
  ccodecs_free(budget, store->masks);
  ccodecs_free(budget, store->dc);
}

// MARK: Blocks of AC scans

enum {
  JPEG_FINE_QUALITY = 88,
  MAX_RUN = 0x7FFF,    ///< Blocks in one end of a band.
  MAX_DEFERRED = 1024, ///< Correction bits that wait for the end of a band.
};

/// The state of a scan of AC coefficients.
typedef struct band_writer {
  jpeg_scan_writer *scan;
  uint32_t code;
  uint32_t run;            ///< Blocks whose band has ended and that are not yet written.
  uint32_t deferred_count; ///< Correction bits of these blocks.
  uint8_t deferred[MAX_DEFERRED + JPEG_BLOCK];
} band_writer;

static void put_corrections(jpeg_scan_writer *scan, const uint8_t *bits, uint32_t count) {
  while (count > 0) {
    const uint32_t step = count < 16 ? count : 16;
    uint32_t value = 0;
    for (uint32_t i = 0; i < step; i++) {
      value = value << 1 | bits[i];
    }
    ccodecs_jpeg_put_raw(scan, step, value);
    bits += step;
    count -= step;
  }
}

static void end_run(band_writer *w) {
  if (w->run > 0) {
    const uint32_t size = ccodecs_jpeg_size(w->run) - 1;
    ccodecs_jpeg_put_token(w->scan, w->code, size << 4, w->run & ((1U << size) - 1));
    w->run = 0;
    put_corrections(w->scan, w->deferred, w->deferred_count);
    w->deferred_count = 0;
  }
}

static void end_band(band_writer *w) {
  w->run++;
  if (w->run == MAX_RUN || w->deferred_count > MAX_DEFERRED - JPEG_BLOCK) {
    end_run(w);
  }
}

static inline uint32_t shifted(int16_t level, uint32_t low) {
  return (uint32_t)(level < 0 ? -level : level) >> low;
}

/// Writes the band of a block for the first time.
static void put_first(band_writer *w, const jpeg_scan *scan, uint64_t mask, const int16_t *levels) {
  uint32_t next = scan->first;
  for (; mask != 0; mask &= mask - 1, levels++) {
    const uint32_t magnitude = shifted(*levels, scan->low);
    if (magnitude == 0) {
      continue;
    }
    const uint32_t k = (uint32_t)__builtin_ctzll(mask);
    uint32_t run = k - next;
    next = k + 1;
    end_run(w);
    for (; run > 15; run -= 16) {
      ccodecs_jpeg_put_token(w->scan, w->code, 0xF0, 0);
    }
    const uint32_t size = ccodecs_jpeg_size(magnitude);
    const int32_t value = *levels < 0 ? -(int32_t)magnitude : (int32_t)magnitude;
    ccodecs_jpeg_put_token(w->scan, w->code, run << 4 | size, ccodecs_jpeg_value_bits(value, size));
  }
  if (next <= scan->last) {
    end_band(w);
  }
}

/// Writes one more bit of each coefficient in the band of a block.
static void put_refinement(band_writer *w, const jpeg_scan *scan, uint64_t mask, const int16_t *levels) {
  // The coefficients that become other than zero in this scan; runs of zeros after the last of them are not written.
  uint32_t new_count = 0;
  for (uint32_t i = 0; i < (uint32_t)__builtin_popcountll(mask); i++) {
    new_count += shifted(levels[i], scan->low) == 1;
  }
  uint8_t bits[JPEG_BLOCK];
  uint32_t bit_count = 0, next = scan->first, run = 0;
  for (; mask != 0; mask &= mask - 1, levels++) {
    const uint32_t k = (uint32_t)__builtin_ctzll(mask);
    run += k - next;
    next = k + 1;
    const uint32_t magnitude = shifted(*levels, scan->low);
    if (magnitude == 0) {
      run++;
      continue;
    }
    for (; run > 15 && new_count > 0; run -= 16) {
      end_run(w);
      ccodecs_jpeg_put_token(w->scan, w->code, 0xF0, 0);
      put_corrections(w->scan, bits, bit_count);
      bit_count = 0;
    }
    if (magnitude > 1) {
      bits[bit_count++] = magnitude & 1;
      continue;
    }
    end_run(w);
    ccodecs_jpeg_put_token(w->scan, w->code, run << 4 | 1, *levels > 0);
    put_corrections(w->scan, bits, bit_count);
    bit_count = 0;
    run = 0;
    new_count--;
  }
  run += scan->last + 1U - next;
  if (run > 0 || bit_count > 0) {
    memcpy(w->deferred + w->deferred_count, bits, bit_count);
    w->deferred_count += bit_count;
    end_band(w);
  }
}

// MARK: Scans

static bool put_ac_scan(jpeg_scan_writer *writer, const jpeg_store *store, const jpeg_scan *scan, uint32_t interval) {
  band_writer w = {.scan = writer, .code = JPEG_CODE_AC + (scan->component > 0)};
  const uint64_t band = (~(uint64_t)0 >> (63 - scan->last)) & (~(uint64_t)0 << scan->first);
  const uint64_t below = ((uint64_t)1 << scan->first) - 1;
  const jpeg_level_chunk *chunk = store->first;
  uint32_t at = 0, left = interval, marker = 0;
  for (uint32_t i = 0; i < store->count; i++) {
    if (!ccodecs_jpeg_scan_reserve(writer)) {
      return false;
    }
    if (interval > 0 && left-- == 0) {
      end_run(&w);
      ccodecs_jpeg_put_restart(writer, marker++ % 8);
      left = interval - 1;
    }
    const uint64_t mask = store->masks[i];
    if (mask != 0 && at == chunk->count) {
      chunk = chunk->next;
      at = 0;
    }
    const int16_t *levels = mask == 0 ? NULL : chunk->levels + at + __builtin_popcountll(mask & below);
    if (scan->high == 0) {
      put_first(&w, scan, mask & band, levels);
    } else {
      put_refinement(&w, scan, mask & band, levels);
    }
    at += (uint32_t)__builtin_popcountll(mask);
  }
  if (!ccodecs_jpeg_scan_reserve(writer)) {
    return false;
  }
  end_run(&w);
  return true;
}

static bool put_dc_scan(
    jpeg_scan_writer *writer, const jpeg_store *stores, const jpeg_geometry *geometry, uint32_t interval) {
  int32_t previous[3] = {0, 0, 0};
  uint32_t left = interval, marker = 0;
  for (uint32_t mcu = 0; mcu < geometry->mcu_columns * geometry->mcu_rows; mcu++) {
    if (!ccodecs_jpeg_scan_reserve(writer)) {
      return false;
    }
    if (interval > 0 && left-- == 0) {
      ccodecs_jpeg_put_restart(writer, marker++ % 8);
      left = interval - 1;
      memset(previous, 0, sizeof previous);
    }
    for (uint32_t c = 0; c < geometry->component_count; c++) {
      const uint32_t across = geometry->across[c], down = geometry->down[c];
      const uint32_t x0 = mcu % geometry->mcu_columns * across, y0 = mcu / geometry->mcu_columns * down;
      for (uint32_t i = 0; i < across * down; i++) {
        const uint32_t x = x0 + i % across, y = y0 + i / across;
        const bool is_real = x < stores[c].columns && y < stores[c].rows;
        const int32_t dc = is_real ? stores[c].dc[(size_t)y * stores[c].columns + x] : previous[c];
        ccodecs_jpeg_put_dc(writer, JPEG_CODE_DC + (c > 0), dc - previous[c]);
        previous[c] = dc;
      }
    }
  }
  return true;
}

/// The order of the scans of AC coefficients. Bands with tables of their own save more than bits that follow later,
/// except in the many coefficients of high qualities.
static const jpeg_scan scans[] = {
    {.component = 0, .first = 1, .last = 1},  {.component = 0, .first = 2, .last = 2},
    {.component = 2, .first = 1, .last = 2},  {.component = 1, .first = 1, .last = 2},
    {.component = 0, .first = 3, .last = 9},  {.component = 2, .first = 3, .last = 63},
    {.component = 1, .first = 3, .last = 63}, {.component = 0, .first = 10, .last = 63},
};
static const jpeg_scan fine_scans[] = {
    {.component = 0, .first = 1, .last = 1},
    {.component = 0, .first = 2, .last = 2},
    {.component = 2, .first = 1, .last = 2},
    {.component = 1, .first = 1, .last = 2},
    {.component = 0, .first = 3, .last = 9, .low = 1},
    {.component = 2, .first = 3, .last = 63},
    {.component = 1, .first = 3, .last = 63},
    {.component = 0, .first = 10, .last = 63, .low = 1},
    {.component = 0, .first = 3, .last = 63, .high = 1},
};

bool ccodecs_jpeg_put_progressive(jpeg_scan_writer *writer, const jpeg_store *stores, const jpeg_geometry *geometry) {
  const ccodecs_encode_options *options = &writer->encoder->options;
  const uint32_t restart_rows = options->jpeg.restart_row_count;
  const bool is_fine = options->quality >= JPEG_FINE_QUALITY;
  const jpeg_scan *script = is_fine ? fine_scans : scans;
  const size_t scan_count = is_fine ? sizeof fine_scans / sizeof *fine_scans : sizeof scans / sizeof *scans;
  const jpeg_scan dc = {0};
  uint32_t interval = ccodecs_jpeg_begin_scan(writer, geometry, &dc, geometry->component_count, restart_rows);
  if (!put_dc_scan(writer, stores, geometry, interval) || !ccodecs_jpeg_scan_end(writer)) {
    return false;
  }
  for (size_t i = 0; i < scan_count; i++) {
    if (script[i].component < geometry->component_count) {
      interval = ccodecs_jpeg_begin_scan(writer, geometry, &script[i], 1, restart_rows);
      if (!put_ac_scan(writer, &stores[script[i].component], &script[i], interval) || !ccodecs_jpeg_scan_end(writer)) {
        return false;
      }
    }
  }
  return true;
}

// Progressive scans of the own JPEG decoder: T.81 annex G, for the coefficients that the scale needs.
//
// A refinement scan holds one more bit for each coefficient of its band that is not zero yet, needed or not, so which
// are not zero is kept for all of them: 64 marks for each block. They also make refinement fast, as the coefficients to
// refine are found by bit operations.

#include "jpeg_bits.h"

static uint32_t tiles_across(const jpeg_component *c) {
  return c->padded_across / JPEG_LANES;
}

static size_t tile_size(uint32_t n) {
  return (size_t)n * n * JPEG_LANES;
}

static uint64_t block_count(const jpeg_component *c) {
  return (uint64_t)c->padded_across * c->padded_down;
}

uint64_t ccodecs_jpeg_progressive_bytes(const jpeg_decoder *d, uint32_t n) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < d->component_count; i++) {
    const uint64_t marks = n == 1 ? 0 : sizeof(uint64_t);
    bytes += block_count(&d->components[i]) * (n * n * sizeof(int16_t) + marks) + 256;
  }
  return bytes;
}

static ccodecs_status refuse(jpeg_decoder *d, uint64_t byte_count) {
  return ccodecs_decoder_fail(
      &d->base, CCODECS_NO_MEMORY, "its coefficients need %llu bytes of memory", (unsigned long long)byte_count);
}

ccodecs_status ccodecs_jpeg_progressive_create(jpeg_decoder *d) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    const uint64_t bytes = block_count(c) * d->n * d->n * sizeof(int16_t);
    c->tiles = bytes > SIZE_MAX / 2 ? NULL : ccodecs_allocate(d->base.budget, (size_t)bytes);
    if (c->tiles == NULL) {
      return refuse(d, ccodecs_jpeg_progressive_bytes(d, d->n));
    }
    memset(c->tiles, 0, (size_t)bytes);
  }
  return CCODECS_OK;
}

void ccodecs_jpeg_progressive_destroy(jpeg_decoder *d) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    ccodecs_free(d->base.budget, d->components[i].tiles);
    ccodecs_free(d->base.budget, d->components[i].nonzero);
  }
}

// MARK: Scan parameters

static bool is_needed(const jpeg_decoder *d, uint32_t k) {
  return d->places[k + 1] < tile_size(d->n);
}

/// Allocates a component's marks, and sets them for the coefficients that are there.
static ccodecs_status create_marks(jpeg_decoder *d, jpeg_component *c) {
  const uint64_t count = block_count(c);
  c->nonzero = count > SIZE_MAX / 16 ? NULL : ccodecs_allocate(d->base.budget, (size_t)count * sizeof *c->nonzero);
  if (c->nonzero == NULL) {
    return refuse(d, ccodecs_jpeg_progressive_bytes(d, d->n));
  }
  memset(c->nonzero, 0, (size_t)count * sizeof *c->nonzero);
  for (uint32_t k = 1; k < d->limit; k++) {
    if (c->known_bits[k] < 0 || !is_needed(d, k)) {
      continue;
    }
    for (size_t i = 0; i < count; i++) {
      const int16_t *tile = c->tiles + i / JPEG_LANES * tile_size(d->n);
      c->nonzero[i] |= (uint64_t)(tile[d->places[k + 1] + i % JPEG_LANES] != 0) << k;
    }
  }
  return CCODECS_OK;
}

/// Whether a scan of AC coefficients matters: for a needed one, or for marks that a later scan may need.
static bool is_ac_useful(const jpeg_decoder *d) {
  if (d->n == 1) {
    return false;
  }
  bool is_useful = d->scan.low_bit > 0;
  for (uint32_t k = d->scan.spectral_start; k <= d->scan.spectral_end; k++) {
    is_useful = is_useful || is_needed(d, k);
  }
  return is_useful;
}

/// Notes which bits a scan brings. What contradicts earlier scans is only a warning, as in libjpeg.
static void note_bits(jpeg_decoder *d, jpeg_component *c) {
  const jpeg_scan *scan = &d->scan;
  bool is_odd = scan->spectral_start > 0 && c->known_bits[0] < 0;
  for (uint32_t k = scan->spectral_start; k <= scan->spectral_end; k++) {
    const int32_t expected = c->known_bits[k] < 0 ? 0 : c->known_bits[k];
    is_odd = is_odd || scan->high_bit != expected;
    c->known_bits[k] = (int8_t)scan->low_bit;
  }
  d->base.header.warnings |= is_odd ? CCODECS_WARNING_DAMAGED : 0u;
}

ccodecs_status ccodecs_jpeg_progressive_start(jpeg_decoder *d) {
  jpeg_scan *scan = &d->scan;
  const bool is_dc = scan->spectral_start == 0;
  const bool is_band = is_dc ? scan->spectral_end == 0
                             : scan->spectral_start <= scan->spectral_end && scan->spectral_end < 64 &&
                                   scan->component_count == 1;
  const bool is_bit = scan->low_bit <= 13 && (scan->high_bit == 0 || scan->low_bit == scan->high_bit - 1);
  if (!is_band || !is_bit) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, "a progressive scan has the parameters %u to %u, bits %u to %u",
        scan->spectral_start, scan->spectral_end, scan->high_bit, scan->low_bit);
  }
  scan->is_skipped = !is_dc && !is_ac_useful(d);
  jpeg_component *first = scan->components[0];
  if (!is_dc && !scan->is_skipped && first->nonzero == NULL && (scan->low_bit > 0 || scan->high_bit > 0)) {
    const ccodecs_status status = create_marks(d, first);
    if (status != CCODECS_OK) {
      return status;
    }
  }
  for (uint32_t i = 0; i < scan->component_count; i++) {
    note_bits(d, scan->components[i]);
  }
  return CCODECS_OK;
}

bool ccodecs_jpeg_progressive_is_complete(const jpeg_decoder *d) {
  bool is_complete = true;
  for (uint32_t i = 0; i < d->component_count; i++) {
    for (uint32_t k = 0; k < 64; k++) {
      is_complete = is_complete && d->components[i].known_bits[k] == 0;
    }
  }
  return is_complete;
}

// MARK: DC

static int16_t *block_at(const jpeg_decoder *d, const jpeg_component *c, uint32_t x, uint32_t y) {
  const size_t tile = (size_t)y * tiles_across(c) + x / JPEG_LANES;
  return c->tiles + tile * tile_size(d->n) + x % JPEG_LANES;
}

/// The DC coefficients of a unit, or one bit of each. False for a bad code, or a sum that is out of range.
static bool read_dc_unit(jpeg_decoder *d, jpeg_reader *r, uint32_t mcu_x) {
  jpeg_scan *scan = &d->scan;
  uint32_t row = 0;
  for (uint32_t i = 0; i < scan->block_count; i++) {
    const jpeg_block_plan *plan = &scan->blocks[i];
    const jpeg_component *c = scan->components[plan->component];
    if (plan->column == 0) {
      row = i > 0 && scan->blocks[i - 1].component == plan->component ? row + 1 : 0;
    }
    const uint32_t y = scan->mcu_y * (scan->component_count == 1 ? 1u : c->vertical) + row;
    int16_t *block = block_at(d, c, mcu_x * plan->across + plan->column, y);
    if (scan->high_bit != 0) {
      refill(r);
      *block = (int16_t)(*block | (int16_t)(take(r, 1) << scan->low_bit));
      continue;
    }
    int32_t difference;
    if (!take_dc(r, plan->dc, &difference) ||
        __builtin_add_overflow(
            scan->predictions[plan->component], difference, &scan->predictions[plan->component])) {
      return false;
    }
    *block = (int16_t)(uint16_t)((uint32_t)scan->predictions[plan->component] << scan->low_bit);
  }
  return true;
}

// MARK: AC

/// What reading a band needs to know.
typedef struct jpeg_band {
  const jpeg_table *table;
  const uint16_t *places;
  uint32_t place_limit; ///< Places from here on are not kept.
  uint32_t first;
  uint32_t last;
  uint32_t low_bit;
} jpeg_band;

/// The length of a run of ended blocks, this one included.
INLINE uint32_t take_end_run(jpeg_reader *r, uint32_t size) {
  return (1u << size) + (size == 0 ? 0 : take(r, size));
}

/// First bits of a block's band. `marks` may be NULL. False for a bad code.
INLINE bool read_first(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t *marks, uint32_t *end_run) {
  uint64_t found = 0;
  uint32_t k = band->first;
  while (k <= band->last) {
    refill(r);
    const uint32_t entry = band->table->values[r->bits >> (64 - JPEG_VALUE_BITS)];
    uint32_t advance = entry >> 8 & 0xFF;
    int32_t value = (int16_t)(entry >> 16);
    if (advance <= 16) {
      consume(r, entry & JPEG_VALUE_LENGTH);
    } else if (advance == JPEG_ADVANCE_END) {
      consume(r, entry & JPEG_VALUE_LENGTH);
      break;
    } else {
      jpeg_symbol symbol;
      if (!take_slow(r, band->table, entry, &symbol)) {
        return false;
      }
      if (symbol.size == 0 && symbol.run < 15) {
        *end_run = take_end_run(r, symbol.run) - 1;
        break;
      }
      advance = symbol.run + 1;
      value = symbol.size == 0 ? 0 : take_value(r, symbol.size);
    }
    k += advance;
    if (value != 0) {
      const int16_t coefficient = (int16_t)(uint16_t)((uint32_t)value << band->low_bit);
      found |= (uint64_t)(coefficient != 0) << (k > 64 ? 63 : k - 1);
      if (band->places[k] < band->place_limit) {
        block[band->places[k]] = coefficient;
      }
    }
  }
  if (marks != NULL) {
    *marks |= found;
  }
  return true;
}

/// One more bit for each of the marked coefficients of `marks`.
INLINE void refine(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t marks) {
  const int16_t step = (int16_t)(1 << band->low_bit);
  while (marks != 0) {
    refill(r);
    // 56 at a time, and no more is needed of those that are not kept.
    for (uint32_t i = 0; i < 56 && marks != 0; i++, marks &= marks - 1) {
      if (take(r, 1) == 0) {
        continue;
      }
      const uint32_t place = band->places[__builtin_ctzll(marks) + 1];
      if (place < band->place_limit && (block[place] & step) == 0) {
        block[place] = (int16_t)(block[place] >= 0 ? block[place] + step : block[place] - step);
      }
    }
  }
}

/// The bits of `marks` from `first` to `last`.
INLINE uint64_t range(uint32_t first, uint32_t last) {
  return first > last ? 0 : (~0ull >> (63 - (last - first))) << first;
}

/// A symbol of a refinement scan. False for a bad code.
INLINE bool take_refinement(jpeg_reader *r, const jpeg_table *table, jpeg_symbol *symbol) {
  refill(r);
  uint32_t found = ccodecs_jpeg_table_search(table, (uint32_t)(r->bits >> 48));
  if (found == 0) {
    return false;
  }
  consume(r, found >> 8);
  *symbol = (jpeg_symbol){.run = found >> 4 & 15, .size = found & 15};
  return true;
}

/// The next bit of a block's band. False for a bad code.
INLINE bool read_refinement(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t *marks, uint32_t *end_run) {
  uint32_t k = band->first;
  while (*end_run == 0 && k <= band->last) {
    jpeg_symbol symbol;
    if (!take_refinement(r, band->table, &symbol) || symbol.size > 1) {
      return false;
    }
    if (symbol.size == 0 && symbol.run < 15) {
      *end_run = take_end_run(r, symbol.run);
      break;
    }
    const bool is_positive = symbol.size != 0 && take(r, 1) != 0;
    // Pass over `run` coefficients that are zero, refining those that are not on the way to the next zero.
    uint64_t zeros = ~*marks & range(k, band->last);
    for (uint32_t i = 0; i < symbol.run; i++) {
      zeros &= zeros - (zeros != 0);
    }
    const uint32_t target = zeros == 0 ? band->last + 1 : (uint32_t)__builtin_ctzll(zeros);
    refine(r, band, block, target == k ? 0 : *marks & range(k, target - 1));
    k = target + 1;
    if (symbol.size != 0) {
      const int32_t step = 1 << band->low_bit;
      *marks |= 1ull << (target > 63 ? 63 : target);
      if (band->places[target + 1] < band->place_limit) {
        block[band->places[target + 1]] = (int16_t)(is_positive ? step : -step);
      }
    }
  }
  if (*end_run > 0) {
    refine(r, band, block, *marks & range(k, band->last));
    (*end_run)--;
  }
  return true;
}

/// Blocks of an AC scan in one row, up to `count` and while the reader is not behind `stop`. How many; less than 0 for a
/// bad code.
static int32_t read_ac_blocks(jpeg_decoder *d, uint32_t count, const uint8_t *stop) {
  jpeg_scan *scan = &d->scan;
  const jpeg_component *c = scan->components[0];
  const jpeg_band band = {
      .table = scan->blocks[0].ac,
      .places = d->places,
      .place_limit = (uint32_t)tile_size(d->n),
      .first = scan->spectral_start,
      .last = scan->spectral_end,
      .low_bit = scan->low_bit,
  };
  jpeg_reader r = reader_open(&d->in);
  uint64_t *marks = c->nonzero == NULL ? NULL : c->nonzero + (size_t)scan->mcu_y * c->padded_across;
  uint32_t end_run = scan->end_run;
  uint32_t done = 0;
  bool is_good = true;
  while (done < count && r.next <= stop && is_good) {
    const uint32_t x = scan->mcu_x + done;
    if (scan->high_bit != 0) {
      is_good = read_refinement(&r, &band, block_at(d, c, x, scan->mcu_y), &marks[x], &end_run);
      done++;
    } else if (end_run > 0) {
      const uint32_t passed = end_run < count - done ? end_run : count - done;
      end_run -= passed;
      done += passed;
    } else {
      is_good = read_first(&r, &band, block_at(d, c, x, scan->mcu_y), marks == NULL ? NULL : &marks[x], &end_run);
      done++;
    }
  }
  scan->end_run = end_run;
  reader_close(&r, &d->in);
  return is_good ? (int32_t)done : -1;
}

static int32_t read_dc_units(jpeg_decoder *d, uint32_t count, const uint8_t *stop) {
  jpeg_reader r = reader_open(&d->in);
  uint32_t done = 0;
  bool is_good = true;
  for (; done < count && r.next <= stop && is_good; done++) {
    is_good = read_dc_unit(d, &r, d->scan.mcu_x + done);
  }
  reader_close(&r, &d->in);
  return is_good ? (int32_t)done : -1;
}

// MARK: Scans and rows

ccodecs_status ccodecs_jpeg_progressive_read(jpeg_decoder *d, ccodecs_input *window) {
  jpeg_scan *scan = &d->scan;
  while (!scan->is_skipped && scan->mcu_y < scan->mcus_down) {
    const uint8_t *stop;
    ccodecs_status status = ccodecs_jpeg_scan_prepare(d, window, &stop);
    if (status != CCODECS_OK) {
      return status;
    }
    uint32_t count = scan->mcus_across - scan->mcu_x;
    count = d->restart_interval == 0 || count < scan->restart_left ? count : scan->restart_left;
    const int32_t done = scan->spectral_start == 0 ? read_dc_units(d, count, stop) : read_ac_blocks(d, count, stop);
    status = ccodecs_jpeg_scan_check(d, done >= 0);
    if (status != CCODECS_OK) {
      return status;
    }
    scan->mcu_x += (uint32_t)done;
    scan->restart_left -= d->restart_interval == 0 ? 0 : (uint32_t)done;
    if (scan->mcu_x == scan->mcus_across) {
      scan->mcu_x = 0;
      scan->mcu_y++;
    }
  }
  return CCODECS_OK;
}

void ccodecs_jpeg_progressive_output(jpeg_decoder *d, uint32_t mcu_row) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    const jpeg_component *c = &d->components[i];
    for (uint32_t row = 0; row < c->vertical; row++) {
      const int16_t *tile = block_at(d, c, 0, mcu_row * c->vertical + row);
      uint8_t *samples = c->plane + (size_t)row * d->n * c->stride;
      for (uint32_t x = 0; x < tiles_across(c); x++) {
        d->transform(tile, c->quant, samples + (size_t)x * JPEG_LANES * d->n, c->stride, 63);
        tile += tile_size(d->n);
      }
    }
  }
}

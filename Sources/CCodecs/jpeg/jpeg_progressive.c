// Progressive scans of the native JPEG decoder: T.81 annex G, for the coefficients that the scale needs.
//
// A refinement scan contains one more bit for each nonzero coefficient of its band, whether it is needed or not. So the
// decoder records which of all coefficients are nonzero: 64 marks for each block. They also make refinement fast,
// because bit operations find the coefficients to refine.

#include "jpeg_bits.h"

#include <cinstructions.h>

static uint32_t tiles_across(const jpeg_component *c) {
  return c->padded_across / JPEG_LANES;
}

static size_t tile_size(uint32_t n) {
  return (size_t)n * n * JPEG_LANES;
}

/// Returns the rows of blocks in memory: all of them at 1/8, where scans are decoded as they arrive; otherwise those of
/// one row of units.
static uint32_t buffered_rows(const jpeg_decoder *d, const jpeg_component *c, uint32_t n) {
  return ccodecs_jpeg_buffers_scans(d, n) ? c->vertical : c->padded_down;
}

static uint64_t tile_bytes(const jpeg_decoder *d, const jpeg_component *c, uint32_t n) {
  return (uint64_t)c->padded_across * buffered_rows(d, c, n) * n * n * sizeof(int16_t);
}

static size_t mark_bytes(const jpeg_component *c) {
  return (size_t)c->padded_across * c->vertical * sizeof(uint64_t);
}

uint64_t ccodecs_jpeg_progressive_charge(const jpeg_decoder *d, uint32_t n, uint64_t buffered) {
  uint64_t charge = 0;
  for (uint32_t i = 0; i < d->component_count; i++) {
    const jpeg_component *c = &d->components[i];
    charge += ccodecs_spill_charge(tile_bytes(d, c, n), buffered + charge, &d->base.limits);
    charge += ccodecs_jpeg_buffers_scans(d, n) ? mark_bytes(c) + 128 : 0;
  }
  return charge;
}

ccodecs_status ccodecs_jpeg_progressive_create(jpeg_decoder *d) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    if (!ccodecs_spill_create(&c->tiles, tile_bytes(d, c, d->n), &d->base.limits, d->base.budget)) {
      return ccodecs_decoder_fail(
          &d->base, CCODECS_NO_MEMORY, "a component's coefficients need %llu bytes, which do not fit",
          (unsigned long long)tile_bytes(d, c, d->n));
    }
    if (ccodecs_jpeg_buffers_scans(d, d->n)) {
      c->marks = ccodecs_allocate(d->base.budget, mark_bytes(c));
      if (c->marks == NULL) {
        return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for a row's coefficients");
      }
      memset(c->marks, 0, mark_bytes(c));
    }
  }
  return CCODECS_OK;
}

void ccodecs_jpeg_progressive_destroy(jpeg_decoder *d) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    ccodecs_spill_destroy(&d->components[i].tiles, d->base.budget);
    ccodecs_free(d->base.budget, d->components[i].marks);
  }
}

// MARK: Scan parameters

static bool is_needed(const jpeg_decoder *d, uint32_t k) {
  return d->needed >> k & 1;
}

/// Returns the coefficients of a block. `y` is the row of blocks in the image.
static int16_t *block_at(const jpeg_decoder *d, const jpeg_component *c, uint32_t x, uint32_t y) {
  const size_t tile = (size_t)(y - d->band_row * c->vertical) * tiles_across(c) + x / JPEG_LANES;
  return (int16_t *)c->tiles.bytes + tile * tile_size(d->n) + x % JPEG_LANES;
}

/// Returns the marks of a row of blocks.
static uint64_t *marks_at(const jpeg_decoder *d, const jpeg_component *c, uint32_t y) {
  return c->marks + (size_t)(y - d->band_row * c->vertical) * c->padded_across;
}

/// Reports that a pass over a component's blocks no longer needs any row before `y`.
static void pass_rows(const jpeg_decoder *d, jpeg_component *c, uint32_t y) {
  if (!ccodecs_jpeg_buffers_scans(d, d->n)) {
    ccodecs_spill_pass(&c->tiles, (size_t)y * tiles_across(c) * tile_size(d->n) * sizeof(int16_t));
  }
}

/// Returns whether a scan of AC coefficients matters: for a needed coefficient, or for marks that a later scan may
/// need.
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

/// Records which bits a scan contains. A contradiction of earlier scans is only a warning, as in libjpeg.
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
  const bool is_band =
      is_dc ? scan->spectral_end == 0
            : scan->spectral_start <= scan->spectral_end && scan->spectral_end < 64 && scan->component_count == 1;
  const bool is_bit = scan->low_bit <= 13 && (scan->high_bit == 0 || scan->low_bit == scan->high_bit - 1);
  if (!is_band || !is_bit) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, "a progressive scan has the parameters %u to %u, bits %u to %u",
        scan->spectral_start, scan->spectral_end, scan->high_bit, scan->low_bit);
  }
  scan->is_skipped = !is_dc && !is_ac_useful(d);
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

/// Decodes the DC coefficients of a unit, or one bit of each. Returns false for an invalid code, or a sum that is out
/// of range.
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
        __builtin_add_overflow(scan->predictions[plan->component], difference, &scan->predictions[plan->component])) {
      return false;
    }
    *block = (int16_t)(uint16_t)((uint32_t)scan->predictions[plan->component] << scan->low_bit);
  }
  return true;
}

// MARK: AC

/// Parameters for decoding a band.
typedef struct jpeg_band {
  const jpeg_table *table;
  const uint16_t *places;
  uint32_t first;
  uint32_t last;
  uint32_t low_bit;
  uint64_t needed; ///< The coefficients to keep, by zigzag index.
} jpeg_band;

/// Returns a mask of the bits from `first` to `last`.
INLINE uint64_t range(uint32_t first, uint32_t last) {
  return first > last ? 0 : (~0ull >> (63 - (last - first))) << first;
}

/// Distributes the lowest bits of `bits` over the set bits of `mask`. This is BMI2's pdep; call it only if
/// `has_deposit` is set. It is written in assembly because a function that targets a processor cannot be inlined into
/// one that does not.
INLINE uint64_t deposit(uint64_t bits, uint64_t mask) {
#if defined(__x86_64__)
  uint64_t result;
  __asm__("pdep %2, %1, %0" : "=r"(result) : "r"(bits), "r"(mask));
  return result;
#else
  (void)bits;
  return mask;
#endif
}

/// Returns the length of a run of ended blocks, including the first.
INLINE uint32_t take_end_run(jpeg_reader *r, uint32_t size) {
  return (1u << size) + (size == 0 ? 0 : take(r, size));
}

/// Stores a coefficient at zigzag index k - 1. A run that goes past the end of the block stores it at the last index.
INLINE void place(const jpeg_band *band, int16_t *block, uint64_t *marks, uint32_t k, int16_t coefficient) {
  const uint32_t index = k > 64 ? 63 : k - 1;
  *marks = (*marks & ~(1ull << index)) | (uint64_t)(coefficient != 0) << index;
  if (band->needed >> index & 1) {
    block[band->places[k]] = coefficient;
  }
}

/// Decodes the first bits of a block's band, and marks them in *marks. Returns false for an invalid code.
INLINE bool read_first(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t *marks, uint32_t *end_run) {
  uint32_t k = band->first;
  while (k <= band->last) {
    refill(r);
    const uint32_t entry = band->table->values[r->bits >> (64 - JPEG_VALUE_BITS)];
    uint32_t advance = entry >> 8 & 0xFF;
    int32_t value = (int16_t)(entry >> 16);
    consume(r, entry);
    if (advance > 16) {
      if (advance == JPEG_ADVANCE_END) {
        return true;
      }
      jpeg_symbol symbol;
      if (!take_slow(r, band->table, entry, &symbol)) {
        return false;
      }
      if (symbol.size == 0 && symbol.run < 15) {
        *end_run = take_end_run(r, symbol.run) - 1;
        return true;
      }
      advance = symbol.run + 1;
      value = symbol.size == 0 ? 0 : take_value(r, symbol.size);
    }
    k += advance;
    if (value != 0) {
      place(band, block, marks, k, (int16_t)(uint16_t)((uint32_t)value << band->low_bit));
    }
  }
  return true;
}

/// Adds a bit to a nonzero coefficient, away from zero, unless it has that bit already, which is possible in damaged
/// files.
INLINE void refine_one(const jpeg_band *band, int16_t *block, uint32_t k, int32_t is_set) {
  const int32_t step = 1 << band->low_bit;
  int16_t *coefficient = &block[band->places[k + 1]];
  const int32_t old = *coefficient;
  const int32_t is_due = is_set & ((old & step) == 0);
  *coefficient = (int16_t)(old + (old >= 0 ? step : -step) * is_due);
}

/// Reads one more bit for each coefficient in `marks`.
INLINE void refine(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t marks) {
  while (marks != 0) {
    refill(r);
    uint64_t bits = r->bits;
    const uint32_t marked = (uint32_t)__builtin_popcountll(marks);
    const uint32_t count = marked < 56 ? marked : 56;
    consume(r, count);
    if ((marks & band->needed) == 0 && marked == count) {
      return;
    }
    for (uint32_t i = 0; i < count; i++, marks &= marks - 1, bits <<= 1) {
      const uint32_t k = (uint32_t)__builtin_ctzll(marks);
      if ((band->needed >> k & 1) != 0) {
        refine_one(band, block, k, (int32_t)(bits >> 63)); // without branches, because the bits are random
      }
    }
  }
}

/// Decodes a symbol of a refinement scan that does not fit into its table entry. Sets *run to the zeros that it skips
/// and *sign to the new coefficient after them, -1 to 1. Sets *end_size for a run of ended blocks, otherwise to
/// UINT32_MAX. Returns false for an invalid code.
INLINE bool take_long_refinement(
    jpeg_reader *r, const jpeg_table *table, uint32_t entry, uint32_t *run, int32_t *sign, uint32_t *end_size) {
  *end_size = UINT32_MAX;
  if ((entry >> 8 & 0xFF) == JPEG_ADVANCE_END) {
    *end_size = 0;
    return true;
  }
  jpeg_symbol symbol;
  if (!take_slow(r, table, entry, &symbol) || symbol.size > 1) {
    return false;
  }
  *end_size = symbol.size == 0 && symbol.run < 15 ? symbol.run : UINT32_MAX;
  *run = symbol.run;
  *sign = symbol.size == 0 ? 0 : take_value(r, 1);
  return true;
}

/// Decodes any symbol of a refinement scan.
INLINE bool take_refinement(jpeg_reader *r, const jpeg_table *table, uint32_t *run, int32_t *sign, uint32_t *end_size) {
  refill(r);
  const uint32_t entry = table->values[r->bits >> (64 - JPEG_VALUE_BITS)];
  const uint32_t advance = entry >> 8 & 0xFF;
  consume(r, entry);
  if (advance > 16) {
    return take_long_refinement(r, table, entry, run, sign, end_size);
  }
  *end_size = UINT32_MAX;
  *run = advance - 1;
  *sign = (int16_t)(entry >> 16);
  return *sign >= -1 && *sign <= 1;
}

/// Decodes the next bit of a block's band. Returns false for an invalid code.
INLINE bool read_refinement(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t *marks, uint32_t *end_run) {
  uint32_t k = band->first;
  while (*end_run == 0 && k <= band->last) {
    uint32_t run;
    int32_t sign;
    uint32_t end_size;
    if (!take_refinement(r, band->table, &run, &sign, &end_size)) {
      return false;
    }
    if (end_size != UINT32_MAX) {
      *end_run = take_end_run(r, end_size);
      break;
    }
    // Skips `run` zero coefficients, and refines the nonzero ones on the way to the next zero.
    uint64_t zeros = ~*marks & range(k, band->last);
    for (; run > 0; run--) {
      zeros &= zeros - (zeros != 0);
    }
    const uint32_t target = zeros == 0 ? band->last + 1 : (uint32_t)__builtin_ctzll(zeros);
    refine(r, band, block, target == k ? 0 : *marks & range(k, target - 1));
    k = target + 1;
    if (sign != 0) {
      place(band, block, marks, k, (int16_t)(sign * (1 << band->low_bit)));
    }
  }
  if (*end_run > 0) {
    refine(r, band, block, *marks & range(k, band->last));
    (*end_run)--;
  }
  return true;
}

/// Consumes the bits of the coefficients in `marks`, and returns those to refine. If they need more than the `left`
/// bits of the reader, refines them at once.
INLINE uint64_t take_due(jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t marks, uint32_t left) {
  const uint32_t count = (uint32_t)__builtin_popcountll(marks);
  if (count > left) {
    refine(r, band, block, marks);
    return 0;
  }
  // The first bit is the highest, and belongs to the lowest mark.
  const uint64_t due = deposit(__builtin_bitreverse64(r->bits), marks);
  consume(r, count);
  return due;
}

/// Same as read_refinement, for processors with a fast `deposit`. The coefficients to refine are collected in a mask,
/// so there is one loop for a block instead of one for each symbol. The length of those loops is random, and a
/// mispredicted branch costs as much as a dozen other steps.
INLINE bool read_refinement_by_masks(
    jpeg_reader *r, const jpeg_band *band, int16_t *block, uint64_t *marks, uint32_t *end_run) {
  const uint64_t old = *marks;
  uint64_t placed = 0;
  uint64_t due = 0;
  uint64_t rest = range(band->first, band->last);
  bool is_good = true;
  while (*end_run == 0 && rest != 0) {
    refill(r);
    const uint32_t entry = band->table->values[r->bits >> (64 - JPEG_VALUE_BITS)];
    uint32_t run = (entry >> 8 & 0xFF) - 1;
    int32_t sign = (int16_t)(entry >> 16);
    consume(r, entry);
    if (run >= 16 || (uint32_t)(sign + 1) > 2) {
      uint32_t end_size;
      // A value that the entry contains completely, but that is none of these, is an invalid code.
      is_good = run >= 16 && take_long_refinement(r, band->table, entry, &run, &sign, &end_size);
      if (!is_good) {
        break;
      }
      if (end_size != UINT32_MAX) {
        *end_run = take_end_run(r, end_size);
        break;
      }
    }
    const uint64_t zero = deposit(1ull << run, ~old & rest); // position of the new coefficient, if there is room
    const uint64_t passed = zero - 1;                        // all positions, if there is no room
    due |= take_due(r, band, block, old & rest & passed, 56 - 17);
    rest &= ~(passed | zero);
    if (sign != 0) {
      // If a run goes past the end, the coefficient goes after the last one.
      const uint32_t index = zero != 0 ? (uint32_t)__builtin_ctzll(zero) : band->last < 63 ? band->last + 1 : 63;
      placed |= 1ull << index;
      if (band->needed >> index & 1) {
        block[band->places[index + 1]] = (int16_t)(sign * (1 << band->low_bit));
      }
    }
  }
  if (*end_run > 0 && is_good) {
    refill(r);
    due |= take_due(r, band, block, old & rest, 56);
    (*end_run)--;
  }
  *marks = old | placed;
  for (due &= band->needed & ~placed; due != 0; due &= due - 1) {
    refine_one(band, block, (uint32_t)__builtin_ctzll(due), 1);
  }
  return is_good;
}

/// Returns whether bits beyond the last byte were read. In an unfinished scan, the loops below stop at the first block
/// that needs such bits: how far the reader has loaded depends on the kernel.
INLINE bool is_past_end(const jpeg_decoder *d, const jpeg_reader *r) {
  return r->next - ((r->count & 63) >> 3) > d->in.bytes + d->in.count;
}

/// Decodes up to `count` blocks of an AC scan in one row, until the reader passes `stop`. Returns the number of blocks;
/// a negative number after an invalid code.
INLINE int32_t
read_ac_blocks(jpeg_decoder *d, uint32_t count, const uint8_t *stop, const bool is_refinement, const bool has_deposit) {
  jpeg_scan *scan = &d->scan;
  jpeg_component *c = scan->components[0];
  const jpeg_band band = {
      .table = scan->blocks[0].ac,
      .places = d->places,
      .first = scan->spectral_start,
      .last = scan->spectral_end,
      .low_bit = scan->low_bit,
      .needed = d->needed,
  };
  const uint64_t band_marks = range(band.first, band.last);
  const size_t size = tile_size(d->n);
  int16_t *tiles = block_at(d, c, 0, scan->mcu_y);
  uint64_t *marks = marks_at(d, c, scan->mcu_y);
  jpeg_reader r = reader_open(&d->in);
  uint32_t end_run = scan->end_run;
  uint32_t done = 0;
  bool is_good = true;
  while (done < count && r.next <= stop && is_good && !is_past_end(d, &r)) {
    const uint32_t x = scan->mcu_x + done;
    int16_t *block = tiles + x / JPEG_LANES * size + x % JPEG_LANES;
    if (is_refinement) {
      if (end_run > 0 && (marks[x] & band_marks) == 0) {
        end_run--;
      } else {
        is_good = has_deposit ? read_refinement_by_masks(&r, &band, block, &marks[x], &end_run)
                              : read_refinement(&r, &band, block, &marks[x], &end_run);
      }
      done++;
    } else if (end_run > 0) {
      const uint32_t passed = end_run < count - done ? end_run : count - done;
      end_run -= passed;
      done += passed;
    } else {
      is_good = read_first(&r, &band, block, &marks[x], &end_run);
      done++;
    }
  }
  scan->end_run = end_run;
  reader_close(&r, &d->in);
  return is_good ? (int32_t)done : -1;
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,popcnt"))) static int32_t read_first_bmi2(
    jpeg_decoder *d, uint32_t count, const uint8_t *stop) {
  return read_ac_blocks(d, count, stop, false, false);
}

__attribute__((target("bmi,bmi2,popcnt"))) static int32_t read_refinement_bmi2(
    jpeg_decoder *d, uint32_t count, const uint8_t *stop) {
  return read_ac_blocks(d, count, stop, true, true);
}

static bool has_bmi2(void) {
  return cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

/// AMD processors before Zen 3 need hundreds of cycles for a pdep.
static bool has_fast_deposit(void) {
  return has_bmi2() && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
}
#endif

static int32_t read_ac_row(jpeg_decoder *d, uint32_t count, const uint8_t *stop) {
  const bool is_refinement = d->scan.high_bit != 0;
#if defined(__x86_64__)
  if (is_refinement && has_fast_deposit()) {
    return read_refinement_bmi2(d, count, stop);
  }
  if (!is_refinement && has_bmi2()) {
    return read_first_bmi2(d, count, stop);
  }
#endif
  return is_refinement ? read_ac_blocks(d, count, stop, true, false) : read_ac_blocks(d, count, stop, false, false);
}

static int32_t read_dc_units(jpeg_decoder *d, uint32_t count, const uint8_t *stop) {
  jpeg_reader r = reader_open(&d->in);
  uint32_t done = 0;
  bool is_good = true;
  for (; done < count && r.next <= stop && is_good && !is_past_end(d, &r); done++) {
    is_good = read_dc_unit(d, &r, d->scan.mcu_x + done);
  }
  reader_close(&r, &d->in);
  return is_good ? (int32_t)done : -1;
}

// MARK: Scans and rows

ccodecs_status ccodecs_jpeg_progressive_read(jpeg_decoder *d, ccodecs_input *window, uint32_t end) {
  jpeg_scan *scan = &d->scan;
  while (!scan->is_skipped && scan->mcu_y < end) {
    const uint8_t *stop;
    CCODECS_TRY(ccodecs_jpeg_scan_prepare(d, window, &stop));
    uint32_t count = scan->mcus_across - scan->mcu_x;
    count = d->restart_interval == 0 || count < scan->restart_left ? count : scan->restart_left;
    const int32_t done = scan->spectral_start == 0 ? read_dc_units(d, count, stop) : read_ac_row(d, count, stop);
    if (d->in.marker != 0 && ccodecs_jpeg_scan_is_cut(d, done >= 0)) {
      // The missing part of the scan only affects sharpness, and later scans may still contain it.
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      scan->mcu_y = scan->mcus_down;
      return CCODECS_OK;
    }
    CCODECS_TRY(ccodecs_jpeg_scan_check(d, done >= 0));
    scan->mcu_x += (uint32_t)done;
    scan->restart_left -= d->restart_interval == 0 ? 0 : (uint32_t)done;
    if (scan->mcu_x == scan->mcus_across) {
      scan->mcu_x = 0;
      scan->mcu_y++;
      for (uint32_t i = 0; i < scan->component_count; i++) {
        jpeg_component *c = scan->components[i];
        pass_rows(d, c, scan->mcu_y * (scan->component_count == 1 ? 1u : c->vertical));
      }
    }
  }
  return CCODECS_OK;
}

/// Returns the maximum zigzag index in a tile that may be nonzero.
static uint32_t extent_of(const uint64_t marks[JPEG_LANES]) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < JPEG_LANES; i++) {
    all |= marks[i];
  }
  return all == 0 ? 0 : 63 - (uint32_t)__builtin_clzll(all);
}

void ccodecs_jpeg_progressive_output(jpeg_decoder *d, uint32_t mcu_row) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    for (uint32_t row = 0; row < c->vertical; row++) {
      const uint32_t y = mcu_row * c->vertical + row;
      int16_t *tile = block_at(d, c, 0, y);
      const uint64_t *marks = c->marks == NULL ? NULL : marks_at(d, c, y);
      uint8_t *samples = c->samples.bytes + (size_t)row * d->n * c->stride;
      for (uint32_t x = 0; x < tiles_across(c); x++) {
        const uint32_t extent = marks == NULL ? 0 : extent_of(marks + (size_t)x * JPEG_LANES);
        d->transform(tile, c->quant, samples + (size_t)x * JPEG_LANES * d->n, c->stride, extent);
        if (marks != NULL) {
          memset(tile, 0, tile_size(d->n) * sizeof *tile);
        }
        tile += tile_size(d->n);
      }
    }
    if (c->marks != NULL) {
      memset(c->marks, 0, mark_bytes(c));
    }
    pass_rows(d, c, mcu_row * c->vertical);
  }
}

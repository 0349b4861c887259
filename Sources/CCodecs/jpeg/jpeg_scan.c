// Sequential scans of the native JPEG decoder: T.81 F.2, and the code that progressive scans share with them.
//
// decode_units is one long function on purpose: the bit buffer must stay in registers from block to block.

#include "jpeg_ahead.h"
#include "jpeg_blocks.h"
#include "jpeg_codes.h"

#include <cinstructions.h>
#include <string.h>

// MARK: Preparation

/// More bits skip more symbols, but only a large image justifies building a table of 8192 entries.
static uint32_t skip_bits(const jpeg_decoder *d) {
  if (d->is_progressive || d->limit == 64) {
    return 0;
  }
  if (d->n == 1 && ccodecs_jpeg_ahead_is_useful(d, 1)) {
    return 8; // for the little that is not found ahead
  }
  const uint64_t pixels = (uint64_t)d->base.header.width * d->base.header.height;
  return pixels >= 4000000 ? JPEG_SKIP_BITS : pixels >= 1000000 ? 12 : pixels >= 250000 ? 11 : 10;
}

static ccodecs_status prepare_table(jpeg_decoder *d, bool is_dc, uint32_t index) {
  if (index >= 4) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a scan uses Huffman table %u", index);
  }
  jpeg_code *code = is_dc ? &d->dc_codes[index] : &d->ac_codes[index];
  if (!code->is_defined && index < 2 && !d->is_progressive) {
    ccodecs_jpeg_code_standard(code, is_dc, index);
  }
  if (!code->is_defined) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "Huffman table %u is not defined", index);
  }
  const jpeg_table_kind sequential_kind = d->limit == 1 ? JPEG_TABLE_SKIPPED_AC : JPEG_TABLE_AC;
  const jpeg_table_kind ac_kind = d->is_progressive ? JPEG_TABLE_PROGRESSIVE_AC : sequential_kind;
  const jpeg_table_kind kind = is_dc ? JPEG_TABLE_DC : ac_kind;
  jpeg_table **table = is_dc ? &d->dc_tables[index] : &d->ac_tables[index];
  if (*table != NULL && code->has_table) {
    return CCODECS_OK; // of another component, or of an earlier scan
  }
  const uint32_t bits = is_dc ? 0 : skip_bits(d);
  if (*table == NULL) {
    *table = ccodecs_allocate(d->base.budget, ccodecs_jpeg_table_bytes(kind, bits));
    if (*table == NULL) {
      return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for Huffman tables");
    }
  }
  if (!ccodecs_jpeg_table_build(*table, code, kind, bits)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "Huffman table %u is not a Huffman code", index);
  }
  code->has_table = true;
  return CCODECS_OK;
}

static ccodecs_status prepare_component(jpeg_decoder *d, jpeg_component *c) {
  if (!c->has_quant) {
    if (c->quant_index >= 4 || !d->has_quant[c->quant_index]) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "quantization table %u is not defined", c->quant_index);
    }
    for (uint32_t v = 0; v < d->n; v++) {
      for (uint32_t u = 0; u < d->n; u++) {
        c->quant[v * d->n + u] = d->quant[c->quant_index][v * 8 + u];
      }
    }
    c->has_quant = true;
  }
  const jpeg_scan *scan = &d->scan;
  const bool needs_dc = !d->is_progressive || (scan->spectral_start == 0 && scan->high_bit == 0);
  const bool needs_ac = !d->is_progressive || scan->spectral_start != 0;
  CCODECS_TRY(needs_dc ? prepare_table(d, true, c->dc_index) : CCODECS_OK);
  return needs_ac ? prepare_table(d, false, c->ac_index) : CCODECS_OK;
}

/// Lists the blocks of a unit, and assigns each its tiles in the group.
static ccodecs_status plan_blocks(jpeg_decoder *d) {
  jpeg_scan *scan = &d->scan;
  const bool is_single = scan->component_count == 1;
  uint32_t tile_count = 0;
  scan->block_count = 0;
  for (uint32_t i = 0; i < scan->component_count; i++) {
    const jpeg_component *c = scan->components[i];
    const uint32_t across = is_single ? 1 : c->horizontal;
    const uint32_t down = is_single ? 1 : c->vertical;
    if (scan->block_count + across * down > JPEG_MAX_MCU_BLOCKS) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a scan has more than 10 blocks in a unit");
    }
    for (uint32_t row = 0; row < down; row++, tile_count += across) {
      for (uint32_t column = 0; column < across; column++) {
        scan->blocks[scan->block_count++] = (jpeg_block_plan){
            .dc = c->dc_index < 4 ? d->dc_tables[c->dc_index] : NULL,
            .ac = c->ac_index < 4 ? d->ac_tables[c->ac_index] : NULL,
            .tiles = d->group == NULL ? NULL : d->group + (size_t)tile_count * d->tile_size,
            .extents = d->extents + tile_count,
            .component = (uint8_t)i,
            .across = (uint8_t)across,
            .column = (uint8_t)column,
        };
      }
    }
  }
  const bool is_dc = d->is_progressive && scan->spectral_start == 0;
  scan->unit_bytes = scan->block_count * (is_dc ? JPEG_DC_BYTES : JPEG_BLOCK_BYTES);
  return CCODECS_OK;
}

ccodecs_status ccodecs_jpeg_scan_start(jpeg_decoder *d) {
  jpeg_scan *scan = &d->scan;
  const uint32_t limit = d->base.limits.max_scans;
  if (limit != 0 && d->scan_count > limit) {
    return ccodecs_decoder_exceed(&d->base, "scans", (ccodecs_excess){"max_scans", limit, d->scan_count});
  }
  if (scan->component_count == 1) {
    scan->mcus_across = scan->components[0]->blocks_across;
    scan->mcus_down = scan->components[0]->blocks_down;
  } else {
    const uint32_t unit = 8 * d->max_horizontal;
    scan->mcus_across = (d->base.header.width + unit - 1) / unit;
    scan->mcus_down = d->mcu_rows;
  }
  if (d->is_progressive) {
    CCODECS_TRY(ccodecs_jpeg_progressive_start(d));
  } else if (scan->spectral_start != 0 || scan->spectral_end != 63 || scan->high_bit != 0 || scan->low_bit != 0) {
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
  }
  for (uint32_t i = 0; i < scan->component_count; i++) {
    jpeg_component *c = scan->components[i];
    if (!d->is_progressive && c->has_scan) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a component of a sequential image has two scans");
    }
    CCODECS_TRY(prepare_component(d, c));
  }
  scan->restart_left = d->restart_interval;
  ccodecs_jpeg_input_reset(&d->in);
  const ccodecs_status status = plan_blocks(d);
  for (uint32_t i = 0; i < scan->component_count && status == CCODECS_OK; i++) {
    scan->components[i]->has_scan = true;
  }
  return status;
}

// MARK: Restarts and ends

/// Returns the failure for reading past the end.
static ccodecs_status overrun(jpeg_decoder *d) {
  if (d->in.marker == 0) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the input ends inside a scan");
  }
  return ccodecs_decoder_fail(
      &d->base, CCODECS_CORRUPT, "marker 0x%02x truncates a scan's entropy-coded data", d->in.marker);
}

/// Consumes the restart marker that is due. Returns CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
static ccodecs_status restart(jpeg_decoder *d, ccodecs_input *window) {
  jpeg_scan *scan = &d->scan;
  bool has_dropped = false;
  const bool is_there = ccodecs_jpeg_input_drop(&d->in, window, &has_dropped);
  d->base.header.warnings |= has_dropped ? CCODECS_WARNING_DAMAGED : 0u;
  if (!is_there) {
    return CCODECS_NEEDS_INPUT;
  }
  if (d->in.marker == 0) {
    return overrun(d);
  }
  if (d->in.marker != RST0 + scan->restart_next) {
    return ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, "marker 0x%02x replaces restart marker %u", d->in.marker, scan->restart_next);
  }
  ccodecs_jpeg_input_reset(&d->in);
  memset(scan->predictions, 0, sizeof scan->predictions);
  scan->end_run = 0;
  scan->restart_next = (scan->restart_next + 1) & 7;
  scan->restart_left = d->restart_interval;
  return CCODECS_OK;
}

// MARK: Units

/// Decodes up to `mcu_count` units, until `in.next` passes `stop`. Returns the number of units, negated when the last
/// of them has an invalid code.
INLINE int32_t decode_units(jpeg_decoder *d, uint32_t mcu_count, const uint8_t *stop, const uint32_t limit) {
  jpeg_scan *scan = &d->scan;
  jpeg_reader r = reader_open(&d->in);
  const size_t tile_size = d->tile_size;
  const uint16_t *places = d->places;
  const jpeg_block_plan *plans_end = scan->blocks + scan->block_count;
  uint32_t predictions[3];
  memcpy(predictions, scan->predictions, sizeof predictions);
  const uint32_t first = scan->mcu_x % JPEG_LANES;
  uint32_t done = 0;
  bool is_good = true;
  for (; done < mcu_count && r.next <= stop && is_good; done++) {
    for (const jpeg_block_plan *plan = scan->blocks; plan < plans_end && is_good; plan++) {
      const uint32_t position = (first + done) * plan->across + plan->column;
      int16_t *block = plan->tiles + position / JPEG_LANES * tile_size + position % JPEG_LANES;
      int32_t difference;
      is_good = take_dc(&r, plan->dc, &difference);
      const uint32_t dc = predictions[plan->component] + (uint32_t)difference;
      predictions[plan->component] = dc;
      block[0] = (int16_t)dc;
      if (limit == 1) {
        is_good = is_good && skip_ac(&r, plan->ac, 1);
      } else {
        uint32_t last = 0;
        is_good = is_good && read_ac(&r, plan->ac, block, places, 1, limit, true, &last);
        uint16_t *extent = &plan->extents[position / JPEG_LANES];
        *extent = last > *extent ? (uint16_t)last : *extent;
      }
    }
  }
  memcpy(scan->predictions, predictions, sizeof predictions);
  reader_close(&r, &d->in);
  return is_good ? (int32_t)done : -(int32_t)done;
}

/// Decides whether blocks are found ahead, when enough bytes have arrived. Returns CCODECS_OK or CCODECS_NEEDS_INPUT.
static ccodecs_status start_ahead(jpeg_decoder *d, ccodecs_input *window) {
  if (d->in.count + window->count < JPEG_AHEAD_BYTES_MIN) {
    ccodecs_jpeg_input_fill(&d->in, window);
    if (!d->in.is_ended) {
      return CCODECS_NEEDS_INPUT;
    }
  } else {
    ccodecs_jpeg_ahead_start(d);
  }
  d->may_go_ahead = false;
  return CCODECS_OK;
}

/// Decodes up to `count` units that were found ahead; finds more when there are none left. Sets *done to the number of
/// units: zero when the plain reader must go on. Returns CCODECS_OK or CCODECS_NEEDS_INPUT.
static ccodecs_status read_ahead(jpeg_decoder *d, ccodecs_input *window, uint32_t count, uint32_t *done) {
  jpeg_ahead *ahead = d->ahead;
  if (ahead->next == ahead->count) {
    const ccodecs_status status = ccodecs_jpeg_ahead_find(ahead, &d->in, window);
    if (status != CCODECS_OK || ahead->count == 0) {
      return status;
    }
  }
  const uint32_t left = (ahead->count - ahead->next) / ahead->block_count;
  *done = count < left ? count : left;
  ccodecs_jpeg_ahead_take(d, *done);
  d->has_units = true;
  return CCODECS_OK;
}

typedef int32_t (*jpeg_decode)(jpeg_decoder *d, uint32_t mcu_count, const uint8_t *stop);

#define DECODE(name, limit)                                                                                            \
  static int32_t name(jpeg_decoder *d, uint32_t mcu_count, const uint8_t *stop) {                                      \
    return decode_units(d, mcu_count, stop, limit);                                                                    \
  }

DECODE(decode_full, 64)
DECODE(decode_reduced, d->limit)
DECODE(decode_dc, 1)

static jpeg_decode choose_plain(uint32_t limit) {
  return limit == 64 ? decode_full : limit == 1 ? decode_dc : decode_reduced;
}

#if defined(__x86_64__)
// With BMI2 a shift takes its count from any register, without an instruction to mask it.
#define DECODE_BMI2(name, limit) __attribute__((target("bmi,bmi2"))) DECODE(name, limit)

DECODE_BMI2(decode_full_bmi2, 64)
DECODE_BMI2(decode_reduced_bmi2, d->limit)
DECODE_BMI2(decode_dc_bmi2, 1)

static jpeg_decode choose(uint32_t limit) {
  if (!cinstructions_allow(CINSTRUCTIONS_VECTORS) || !__builtin_cpu_supports("bmi2")) {
    return choose_plain(limit);
  }
  return limit == 64 ? decode_full_bmi2 : limit == 1 ? decode_dc_bmi2 : decode_reduced_bmi2;
}
#else
static jpeg_decode choose(uint32_t limit) {
  return choose_plain(limit);
}
#endif

// MARK: Rows

/// Transforms the group that ends before unit `end` of the row, and clears it.
static void flush_group(jpeg_decoder *d, uint32_t end) {
  jpeg_scan *scan = &d->scan;
  const uint32_t first = (end - 1) / JPEG_LANES * JPEG_LANES;
  const uint32_t n = d->n;
  for (uint32_t i = 0; i < scan->block_count; i++) {
    const jpeg_block_plan *plan = &scan->blocks[i];
    if (plan->column != 0) {
      continue; // the first block of each row of a unit represents the row
    }
    jpeg_component *c = scan->components[plan->component];
    uint32_t row = 0; // row of blocks in the plane
    for (uint32_t j = 0; j < i; j++) {
      row += scan->blocks[j].component == plan->component && scan->blocks[j].column == 0;
    }
    row += d->is_multiscan ? scan->mcu_y * (scan->component_count == 1 ? 1u : c->vertical)
                           : d->decoded_row % d->strip_rows * c->vertical;
    uint8_t *samples = c->samples.bytes + (size_t)row * n * c->stride + (size_t)first * plan->across * n;
    const uint32_t block_count = (end - first) * plan->across;
    for (uint32_t tile = 0; tile * JPEG_LANES < block_count; tile++) {
      int16_t *coefficients = plan->tiles + (size_t)tile * d->tile_size;
      d->transform(coefficients, c->quant, samples + (size_t)tile * JPEG_LANES * n, c->stride, plan->extents[tile]);
      memset(coefficients, 0, (size_t)n * n * JPEG_LANES * sizeof *coefficients);
      plan->extents[tile] = 0;
    }
  }
}

/// Returns the last position from which a whole unit can be decoded; NULL when there is none.
static const uint8_t *last_start(const jpeg_decoder *d) {
  if (d->in.is_ended) {
    return d->in.bytes + d->in.count + 8;
  }
  const size_t maximum = d->scan.unit_bytes + 16;
  return d->in.count < maximum ? NULL : d->in.bytes + d->in.count - maximum;
}

ccodecs_status ccodecs_jpeg_scan_prepare(jpeg_decoder *d, ccodecs_input *window, const uint8_t **stop) {
  if (d->restart_interval != 0 && d->scan.restart_left == 0) {
    CCODECS_TRY(restart(d, window));
  }
  *stop = last_start(d);
  if (*stop == NULL || d->in.bytes + d->in.next > *stop) {
    ccodecs_jpeg_input_fill(&d->in, window);
    *stop = last_start(d);
  }
  return *stop == NULL || d->in.bytes + d->in.next > *stop ? CCODECS_NEEDS_INPUT : CCODECS_OK;
}

bool ccodecs_jpeg_scan_is_cut(const jpeg_decoder *d, bool is_good) {
  const bool is_near_end =
      d->in.count * 8 + d->in.bit_count < d->in.next * 8 + 16; // an invalid code there is a truncated one
  return d->in.is_ended && (ccodecs_jpeg_input_is_overrun(&d->in) || (!is_good && is_near_end));
}

ccodecs_status ccodecs_jpeg_scan_check(jpeg_decoder *d, bool is_good) {
  if (ccodecs_jpeg_scan_is_cut(d, is_good)) {
    return overrun(d);
  }
  if (is_good) {
    return CCODECS_OK;
  }
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a code is not in its Huffman table");
}

/// Makes a partly decoded unit of the group gray.
static void clear_unit(jpeg_decoder *d, uint32_t mcu_x) {
  for (uint32_t i = 0; i < d->scan.block_count; i++) {
    const jpeg_block_plan *plan = &d->scan.blocks[i];
    const uint32_t position = mcu_x % JPEG_LANES * plan->across + plan->column;
    int16_t *block = plan->tiles + position / JPEG_LANES * d->tile_size + position % JPEG_LANES;
    for (uint32_t k = 0; k < d->n * d->n; k++) {
      block[k * JPEG_LANES] = 0;
    }
  }
}

/// Decodes up to `count` units, or skips them as gray when damage is tolerated. Sets *done to their number. Returns
/// CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status read_units(
    jpeg_decoder *d, ccodecs_input *window, jpeg_decode decode, uint32_t count, uint32_t *done) {
  jpeg_scan *scan = &d->scan;
  *done = 0;
  if (scan->gray_units > 0) {
    *done = count < scan->gray_units ? count : (uint32_t)scan->gray_units;
    scan->gray_units -= *done;
    return CCODECS_OK;
  }
  ccodecs_status status = d->may_go_ahead ? start_ahead(d, window) : CCODECS_OK;
  if (status == CCODECS_OK && d->ahead != NULL) {
    status = read_ahead(d, window, count, done);
  }
  if (status != CCODECS_OK || *done > 0) {
    return status;
  }
  const uint8_t *stop;
  status = ccodecs_jpeg_scan_prepare(d, window, &stop);
  if (status != CCODECS_OK) {
    return ccodecs_jpeg_damage_begin(d, status);
  }
  count = d->restart_interval == 0 || count < scan->restart_left ? count : scan->restart_left;
  // Decode one unit at a time at the end of a scan, because of several it is unknown which one is cut.
  count = d->base.tolerates_damage && d->in.is_ended ? 1 : count;
  const uint64_t begin = d->in.next * 8 - d->in.bit_count;
  const int32_t result = decode(d, count, stop);
  status = ccodecs_jpeg_scan_check(d, result >= 0);
  *done = status == CCODECS_OK ? (uint32_t)result : result < 0 ? (uint32_t)-result - 1 : 0;
  if (d->ahead != NULL && status == CCODECS_OK) {
    ccodecs_jpeg_ahead_note(d->ahead, d->in.next * 8 - d->in.bit_count - begin, *done);
  }
  if (status != CCODECS_OK && d->base.tolerates_damage) {
    clear_unit(d, scan->mcu_x + *done);
  }
  d->has_units = d->has_units || *done > 0;
  scan->restart_left -= d->restart_interval == 0 ? 0 : *done;
  return ccodecs_jpeg_damage_begin(d, status);
}

ccodecs_status ccodecs_jpeg_scan_read_row(jpeg_decoder *d, ccodecs_input *window) {
  jpeg_scan *scan = &d->scan;
  const jpeg_decode decode = choose(d->limit);
  for (;;) {
    uint32_t count = JPEG_LANES - scan->mcu_x % JPEG_LANES;
    count = count < scan->mcus_across - scan->mcu_x ? count : scan->mcus_across - scan->mcu_x;
    uint32_t done = 0;
    CCODECS_TRY(scan->is_lost ? ccodecs_jpeg_damage_seek(d, window) : read_units(d, window, decode, count, &done));
    scan->mcu_x += done;
    const bool is_row_done = scan->mcu_x == scan->mcus_across;
    if (done > 0 && (is_row_done || scan->mcu_x % JPEG_LANES == 0)) {
      flush_group(d, scan->mcu_x);
    }
    if (is_row_done) {
      scan->mcu_x = 0;
      scan->mcu_y++;
      return CCODECS_ROWS_READY;
    }
  }
}

// Decoding the units that were found ahead (jpeg_ahead.c), in the native JPEG decoder.
//
// It is known where each block begins, so nothing is read after the last coefficient that is needed. The blocks have no
// errors.

#include "jpeg_blocks.h"

#include <string.h>

/// Decodes units that were found ahead.
INLINE void take_units(jpeg_decoder *d, uint32_t mcu_count, const uint32_t limit) {
  jpeg_scan *scan = &d->scan;
  jpeg_ahead *ahead = d->ahead;
  const uint8_t *bytes = d->in.bytes;
  const uint32_t *end = ahead->ends + ahead->next;
  const size_t tile_size = d->tile_size;
  const uint16_t *places = d->places;
  const jpeg_block_plan *plans_end = scan->blocks + scan->block_count;
  const uint32_t first = scan->mcu_x % JPEG_LANES;
  uint32_t predictions[3];
  memcpy(predictions, scan->predictions, sizeof predictions);
  uint64_t begin = ahead->begin;
  for (uint32_t done = 0; done < mcu_count; done++) {
    for (const jpeg_block_plan *plan = scan->blocks; plan < plans_end; plan++) {
      const uint32_t position = (first + done) * plan->across + plan->column;
      int16_t *block = plan->tiles + position / JPEG_LANES * tile_size + position % JPEG_LANES;
      jpeg_reader r = reader_at(bytes, begin);
      int32_t difference;
      begin = *end++;
      take_filled_dc(&r, plan->dc, &difference);
      const uint32_t dc = predictions[plan->component] + (uint32_t)difference;
      predictions[plan->component] = dc;
      block[0] = (int16_t)dc;
      if (limit > 1) {
        uint32_t last = 0;
        refill(&r);
        read_ac(&r, plan->ac, block, places, limit, false, &last);
        uint16_t *extent = &plan->extents[position / JPEG_LANES];
        *extent = last > *extent ? (uint16_t)last : *extent;
      }
    }
  }
  memcpy(scan->predictions, predictions, sizeof predictions);
  ahead->begin = begin;
  ahead->next += mcu_count * scan->block_count;
}

typedef void (*jpeg_take)(jpeg_decoder *d, uint32_t mcu_count);

#define TAKE(name, limit)                                                                                              \
  static void name(jpeg_decoder *d, uint32_t mcu_count) {                                                              \
    take_units(d, mcu_count, limit);                                                                                   \
  }

TAKE(take_reduced, d->limit)
TAKE(take_dc_only, 1)

#if defined(__x86_64__)
// With BMI2 a shift takes its count from any register, without an instruction to mask it.
#define TAKE_BMI2(name, limit) __attribute__((target("bmi,bmi2"))) TAKE(name, limit)

TAKE_BMI2(take_reduced_bmi2, d->limit)
TAKE_BMI2(take_dc_only_bmi2, 1)
#endif

static jpeg_take choose(uint32_t limit) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("bmi2")) {
    return limit == 1 ? take_dc_only_bmi2 : take_reduced_bmi2;
  }
#endif
  return limit == 1 ? take_dc_only : take_reduced;
}

void ccodecs_jpeg_ahead_take(jpeg_decoder *d, uint32_t mcu_count) {
  choose(d->limit)(d, mcu_count);
}

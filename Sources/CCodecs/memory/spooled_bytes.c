// Bytes of a result that waits for its end, as the start of its file depends on it.

#include "held.h"

/// Bytes that stay in memory if there is a spill directory: all of most results that are shown on a screen.
static const uint64_t max_memory_bytes = 1u << 20;

struct ccodecs_spooled_bytes {
  ccodecs_spool spool;
  ccodecs_limits limits;
  ccodecs_budget *budget;
};

uint64_t ccodecs_spooled_bytes_estimate(uint64_t byte_count, const ccodecs_limits *limits) {
  const bool is_file = limits->can_spill && byte_count > max_memory_bytes;
  // The block that is written to the file is charged with those in memory.
  return ccodecs_spool_charge(is_file ? max_memory_bytes : byte_count, 0, limits) + sizeof(ccodecs_spooled_bytes) + 128;
}

ccodecs_spooled_bytes *ccodecs_spooled_bytes_create(const ccodecs_limits *limits, ccodecs_budget *budget) {
  ccodecs_spooled_bytes *spooled = ccodecs_allocate(budget, sizeof *spooled);
  if (spooled != NULL) {
    *spooled = (ccodecs_spooled_bytes){.spool = {.max_memory = max_memory_bytes}, .limits = *limits, .budget = budget};
  }
  return spooled;
}

bool ccodecs_spooled_bytes_append(ccodecs_spooled_bytes *spooled, const uint8_t *bytes, size_t count) {
  return ccodecs_spool_append(&spooled->spool, bytes, count, &spooled->limits, spooled->budget);
}

bool ccodecs_spooled_bytes_end(ccodecs_spooled_bytes *spooled) {
  const bool is_written = ccodecs_spool_end(&spooled->spool);
  spooled->budget->has_machine_failed |= !is_written;
  return is_written;
}

bool ccodecs_spooled_bytes_read(ccodecs_spooled_bytes *spooled, uint64_t offset, const uint8_t **bytes, size_t *count) {
  ccodecs_input window = {0};
  if (offset < spooled->spool.count && !ccodecs_spool_window(&spooled->spool, offset, spooled->spool.count, &window)) {
    spooled->budget->has_machine_failed = true;
    return false;
  }
  *bytes = window.bytes;
  *count = window.count;
  return true;
}

void ccodecs_spooled_bytes_destroy(ccodecs_spooled_bytes *spooled) {
  if (spooled != NULL) {
    ccodecs_spool_destroy(&spooled->spool, spooled->budget);
    ccodecs_free(spooled->budget, spooled);
  }
}

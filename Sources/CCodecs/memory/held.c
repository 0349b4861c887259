#ifndef _GNU_SOURCE
#define _GNU_SOURCE // pread, pwrite
#endif

#include "held.h"

#include "spill.h"

#include <string.h>
#include <unistd.h>

enum {
  CHARGED_BYTES = 64 << 10,
  /// Of a block, less what the budget adds to it. Below the size from which malloc maps, so that pages are used again
  /// by the next picture.
  BLOCK_BYTES = CHARGED_BYTES - 64,
  READ_BYTES = 4096, ///< Of the file at a time: no more than a reader takes.
  FIRST_CAPACITY = 32,
};

uint64_t ccodecs_held_charge(uint64_t byte_count, uint64_t held, const ccodecs_limits *limits) {
  uint64_t blocks = (byte_count + BLOCK_BYTES - 1) / BLOCK_BYTES + 1; // with the staging
  if (limits->can_spill) {
    const uint64_t most = held < CCODECS_SPILL_BYTES ? (CCODECS_SPILL_BYTES - held) / CHARGED_BYTES : 0;
    blocks = blocks > most + 1 ? most + 1 : blocks;
  }
  const uint64_t list = 3 * sizeof(uint8_t *) * (blocks + FIRST_CAPACITY); // the old and the new one while it grows
  return blocks * CHARGED_BYTES + list + 2 * 128;
}

/// Makes room in the list for one more block.
static bool reserve_entry(ccodecs_held *held, ccodecs_budget *budget) {
  if (held->block_count < held->block_capacity) {
    return true;
  }
  const size_t capacity = held->block_capacity == 0 ? FIRST_CAPACITY : 2 * held->block_capacity;
  uint8_t **blocks = ccodecs_allocate(budget, capacity * sizeof *blocks);
  if (blocks == NULL) {
    return false;
  }
  if (held->block_count > 0) {
    memcpy(blocks, held->blocks, held->block_count * sizeof *blocks);
  }
  ccodecs_free(budget, held->blocks);
  held->blocks = blocks;
  held->block_capacity = capacity;
  return true;
}

static bool begin_file(ccodecs_held *held, const ccodecs_limits *limits, ccodecs_budget *budget) {
  uint8_t *staging = ccodecs_allocate(budget, BLOCK_BYTES);
  if (staging == NULL) {
    return false;
  }
  held->file = ccodecs_spill_create_file(limits->spill_directory);
  if (held->file < 0) {
    budget->has_machine_failed = true;
    ccodecs_free(budget, staging);
    return false;
  }
  held->staging = staging;
  held->memory_count = held->count;
  return true;
}

/// Writes the first `count` bytes of the staging, which are the last that came.
static bool write_staging(ccodecs_held *held, size_t count) {
  const uint8_t *next = held->staging;
  uint64_t place = held->count - held->memory_count - count;
  while (count > 0) {
    const ssize_t written = pwrite(held->file, next, count, (off_t)place);
    if (written <= 0) {
      return false;
    }
    next += written;
    place += (uint64_t)written;
    count -= (size_t)written;
  }
  return true;
}

/// The block for the next byte, which begins one; NULL without room.
static uint8_t *begin_block(ccodecs_held *held, const ccodecs_limits *limits, ccodecs_budget *budget) {
  if (held->staging != NULL) {
    const bool is_written = held->count == held->memory_count || write_staging(held, BLOCK_BYTES);
    budget->has_machine_failed |= !is_written;
    return is_written ? held->staging : NULL;
  }
  const bool is_most = held->count + BLOCK_BYTES > held->memory_most;
  if (limits->can_spill && (is_most || budget->used + CHARGED_BYTES > CCODECS_SPILL_BYTES)) {
    return begin_file(held, limits, budget) ? held->staging : NULL;
  }
  uint8_t *block = reserve_entry(held, budget) ? ccodecs_allocate(budget, BLOCK_BYTES) : NULL;
  if (block != NULL) {
    held->blocks[held->block_count++] = block;
  }
  return block;
}

bool ccodecs_held_append(
    ccodecs_held *held, const uint8_t *bytes, size_t count, const ccodecs_limits *limits, ccodecs_budget *budget) {
  while (count > 0) {
    const size_t used = (size_t)(held->count % BLOCK_BYTES);
    uint8_t *block = held->staging != NULL ? held->staging : used > 0 ? held->blocks[held->block_count - 1] : NULL;
    block = used > 0 ? block : begin_block(held, limits, budget);
    if (block == NULL) {
      return false;
    }
    const size_t taken = count < BLOCK_BYTES - used ? count : BLOCK_BYTES - used;
    memcpy(block + used, bytes, taken);
    held->count += taken;
    bytes += taken;
    count -= taken;
  }
  return true;
}

bool ccodecs_held_end(ccodecs_held *held) {
  if (held->staging == NULL || held->count == held->memory_count) {
    return true;
  }
  const size_t used = (size_t)(held->count % BLOCK_BYTES);
  return write_staging(held, used == 0 ? BLOCK_BYTES : used);
}

bool ccodecs_held_window(ccodecs_held *held, uint64_t offset, uint64_t end, ccodecs_input *window) {
  const bool is_in_file = held->staging != NULL && offset >= held->memory_count;
  const uint64_t left = end - offset;
  const uint64_t first = offset % BLOCK_BYTES;
  const uint64_t most = is_in_file ? READ_BYTES : BLOCK_BYTES - first;
  *window = (ccodecs_input){.count = (size_t)(left < most ? left : most), .is_last = left <= most};
  if (window->count == 0) {
    return true;
  }
  window->bytes = is_in_file ? held->staging : held->blocks[offset / BLOCK_BYTES] + first;
  for (size_t done = 0; is_in_file && done < window->count;) {
    const uint64_t place = offset - held->memory_count + done;
    const ssize_t count = pread(held->file, held->staging + done, window->count - done, (off_t)place);
    if (count <= 0) {
      return false;
    }
    done += (size_t)count;
  }
  return true;
}

void ccodecs_held_destroy(ccodecs_held *held, ccodecs_budget *budget) {
  if (held->staging != NULL) {
    close(held->file);
    ccodecs_free(budget, held->staging);
  }
  for (size_t i = 0; i < held->block_count; i++) {
    ccodecs_free(budget, held->blocks[i]);
  }
  ccodecs_free(budget, held->blocks);
  memset(held, 0, sizeof *held);
}

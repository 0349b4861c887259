#ifndef _GNU_SOURCE
#define _GNU_SOURCE // pread, pwrite
#endif

#include "held.h"

#include "spill.h"

#include <string.h>
#include <unistd.h>

enum {
  CHARGED_BYTES = 64 << 10,
  /// The usable size of a block, without the budget's header. Below malloc's mmap threshold, so that the next image
  /// reuses the pages.
  BLOCK_BYTES = CHARGED_BYTES - 64,
  READ_BYTES = 4096, ///< Bytes per read of the file: no more than a reader consumes.
  FIRST_CAPACITY = 32,
};

uint64_t ccodecs_spool_charge(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits) {
  uint64_t blocks = (byte_count + BLOCK_BYTES - 1) / BLOCK_BYTES + 1; // including the staging block
  if (limits->can_spill) {
    const uint64_t maximum = buffered < CCODECS_SPILL_BYTES ? (CCODECS_SPILL_BYTES - buffered) / CHARGED_BYTES : 0;
    blocks = blocks > maximum + 1 ? maximum + 1 : blocks;
  }
  const uint64_t list = 3 * sizeof(uint8_t *) * (blocks + FIRST_CAPACITY); // the old and the new list while it grows
  return blocks * CHARGED_BYTES + list + 2 * 128;
}

/// Makes room for one more block in the list. Returns false if the budget is exhausted.
static bool reserve_entry(ccodecs_spool *buffered, ccodecs_budget *budget) {
  if (buffered->block_count < buffered->block_capacity) {
    return true;
  }
  const size_t capacity = buffered->block_capacity == 0 ? FIRST_CAPACITY : 2 * buffered->block_capacity;
  uint8_t **blocks = ccodecs_allocate(budget, capacity * sizeof *blocks);
  if (blocks == NULL) {
    return false;
  }
  if (buffered->block_count > 0) {
    memcpy(blocks, buffered->blocks, buffered->block_count * sizeof *blocks);
  }
  ccodecs_free(budget, buffered->blocks);
  buffered->blocks = blocks;
  buffered->block_capacity = capacity;
  return true;
}

static bool begin_file(ccodecs_spool *buffered, const ccodecs_limits *limits, ccodecs_budget *budget) {
  uint8_t *staging = ccodecs_allocate(budget, BLOCK_BYTES);
  if (staging == NULL) {
    return false;
  }
  buffered->file = ccodecs_spill_new_file(limits, 0);
  if (buffered->file < 0) {
    budget->has_machine_failed = true;
    ccodecs_free(budget, staging);
    return false;
  }
  buffered->staging = staging;
  buffered->memory_count = buffered->count;
  return true;
}

/// Writes the first `count` bytes of the staging block, which are the last bytes appended.
static bool write_staging(ccodecs_spool *buffered, size_t count) {
  const uint8_t *next = buffered->staging;
  uint64_t place = buffered->count - buffered->memory_count - count;
  while (count > 0) {
    const ssize_t written = pwrite(buffered->file, next, count, (off_t)place);
    if (written <= 0) {
      return false;
    }
    next += written;
    place += (uint64_t)written;
    count -= (size_t)written;
  }
  return true;
}

/// Returns a new block for the next byte, or NULL if the budget or the disk is exhausted.
static uint8_t *begin_block(ccodecs_spool *buffered, const ccodecs_limits *limits, ccodecs_budget *budget) {
  if (buffered->staging != NULL) {
    const bool is_written = buffered->count == buffered->memory_count || write_staging(buffered, BLOCK_BYTES);
    budget->has_machine_failed |= !is_written;
    return is_written ? buffered->staging : NULL;
  }
  const bool is_most = buffered->count + BLOCK_BYTES > buffered->max_memory;
  if (limits->can_spill && (is_most || budget->used + CHARGED_BYTES > CCODECS_SPILL_BYTES)) {
    return begin_file(buffered, limits, budget) ? buffered->staging : NULL;
  }
  uint8_t *block = reserve_entry(buffered, budget) ? ccodecs_allocate(budget, BLOCK_BYTES) : NULL;
  if (block != NULL) {
    buffered->blocks[buffered->block_count++] = block;
  }
  return block;
}

bool ccodecs_spool_append(
    ccodecs_spool *buffered, const uint8_t *bytes, size_t count, const ccodecs_limits *limits, ccodecs_budget *budget) {
  while (count > 0) {
    const size_t used = (size_t)(buffered->count % BLOCK_BYTES);
    uint8_t *block = buffered->staging != NULL ? buffered->staging
                     : used > 0                ? buffered->blocks[buffered->block_count - 1]
                                               : NULL;
    block = used > 0 ? block : begin_block(buffered, limits, budget);
    if (block == NULL) {
      return false;
    }
    const size_t taken = count < BLOCK_BYTES - used ? count : BLOCK_BYTES - used;
    memcpy(block + used, bytes, taken);
    buffered->count += taken;
    bytes += taken;
    count -= taken;
  }
  return true;
}

bool ccodecs_spool_end(ccodecs_spool *buffered) {
  if (buffered->staging == NULL || buffered->count == buffered->memory_count) {
    return true;
  }
  const size_t used = (size_t)(buffered->count % BLOCK_BYTES);
  return write_staging(buffered, used == 0 ? BLOCK_BYTES : used);
}

bool ccodecs_spool_window(ccodecs_spool *buffered, uint64_t offset, uint64_t end, ccodecs_input *window) {
  const bool is_in_file = buffered->staging != NULL && offset >= buffered->memory_count;
  const uint64_t left = end - offset;
  const uint64_t first = offset % BLOCK_BYTES;
  const uint64_t maximum = is_in_file ? READ_BYTES : BLOCK_BYTES - first;
  *window = (ccodecs_input){.count = (size_t)(left < maximum ? left : maximum), .is_last = left <= maximum};
  if (window->count == 0) {
    return true;
  }
  window->bytes = is_in_file ? buffered->staging : buffered->blocks[offset / BLOCK_BYTES] + first;
  for (size_t done = 0; is_in_file && done < window->count;) {
    const uint64_t place = offset - buffered->memory_count + done;
    const ssize_t count = pread(buffered->file, buffered->staging + done, window->count - done, (off_t)place);
    if (count <= 0) {
      return false;
    }
    done += (size_t)count;
  }
  return true;
}

void ccodecs_spool_destroy(ccodecs_spool *buffered, ccodecs_budget *budget) {
  if (buffered->staging != NULL) {
    close(buffered->file);
    ccodecs_free(budget, buffered->staging);
  }
  for (size_t i = 0; i < buffered->block_count; i++) {
    ccodecs_free(budget, buffered->blocks[i]);
  }
  ccodecs_free(budget, buffered->blocks);
  memset(buffered, 0, sizeof *buffered);
}

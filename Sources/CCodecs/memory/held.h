// A spool: bytes are appended, then read at any offset, from memory or from a file. Private to CCodecs.
//
//   ccodecs_spool spool = {.max_memory = bytes};
//   while there are bytes: if (!ccodecs_spool_append(&spool, bytes, count, &limits, budget)) ...
//   if (!ccodecs_spool_end(&spool)) ...
//   while (offset < spool.count): { if (!ccodecs_spool_window(&spool, offset, spool.count, &window)) ... use window }
//   ccodecs_spool_destroy(&spool, budget);
//
// The bytes are stored in blocks of 64 KiB. If another block would raise the image's memory above CCODECS_SPILL_BYTES,
// or the spool's above `max_memory`, this block and all later ones go to an unnamed file in limits.spill_directory, if
// set. The file is accessed with read and write calls instead of a mapping, because it is read once in small pieces,
// and because a disk failure is then an error instead of a signal.

#pragma once

#include "ccodecs.h"

/// A spool; initialize it to zero, except for `max_memory`.
typedef struct ccodecs_spool {
  uint64_t max_memory; ///< Maximum number of bytes in memory if there is a spill directory.
  uint64_t count;      ///< Number of bytes appended.
  uint8_t **blocks;
  size_t block_count;
  size_t block_capacity;
  uint8_t *staging;      ///< With a file: the unwritten block; after the end, the bytes read last.
  uint64_t memory_count; ///< With a file: the number of bytes in memory, which precede the file's.
  int file;              ///< The file's descriptor, valid if `staging` is not NULL.
} ccodecs_spool;

/// Returns an upper bound of the bytes that a spool of `byte_count` bytes charges while the image's other memory is at
/// least `buffered` bytes. With a spill directory and a `max_memory` of at most `byte_count`, the bound holds for any
/// number of bytes.
uint64_t ccodecs_spool_charge(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits);

/// Appends a copy of `count` bytes. Returns false if the budget, the system's memory or the disk is exhausted.
bool ccodecs_spool_append(
    ccodecs_spool *buffered, const uint8_t *bytes, size_t count, const ccodecs_limits *limits, ccodecs_budget *budget);

/// Ends the appended data. Returns false if the disk is full.
bool ccodecs_spool_end(ccodecs_spool *buffered);

/// Returns in `window` some bytes at `offset`, up to `end`, valid until the next call. Sets window.is_last if it
/// reaches `end`. Returns false if the disk fails.
bool ccodecs_spool_window(ccodecs_spool *buffered, uint64_t offset, uint64_t end, ccodecs_input *window);

/// Frees the spool and refunds its budget. A zeroed ccodecs_spool is valid.
void ccodecs_spool_destroy(ccodecs_spool *buffered, ccodecs_budget *budget);

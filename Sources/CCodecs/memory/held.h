// Bytes that are appended as they come and then read from any place, in memory or in a file. Private to CCodecs.
//
//   ccodecs_spool held = {.memory_most = bytes};
//   while there are bytes: if (!ccodecs_spool_append(&held, bytes, count, &limits, budget)) ...
//   if (!ccodecs_spool_end(&held)) ...
//   while (offset < held.count): { if (!ccodecs_spool_window(&held, offset, held.count, &window)) ... use some of it }
//   ccodecs_spool_destroy(&held, budget);
//
// They lie in blocks of 64 KiB. A block with which the image would hold more than CCODECS_SPILL_BYTES, or this more
// than `memory_most`, goes to a file without a name in limits.spill_directory, if there is one, and so does what
// follows. The file is written and read by calls, not mapped: what is read of it is little at a time and read once, and
// a disk that fails is an error, not a signal.

#ifndef CCODECS_HELD_H
#define CCODECS_HELD_H

#include "ccodecs.h"

typedef struct ccodecs_spool {
  uint64_t memory_most;
  uint64_t count;
  uint8_t **blocks;
  size_t block_count;
  size_t block_capacity;
  uint8_t *staging;      ///< With a file: the block that is not written yet; later what was read last.
  uint64_t memory_count; ///< With a file: the bytes before it.
  int file;              ///< Its descriptor, where there is `staging`.
} ccodecs_spool;

/// What `byte_count` bytes will charge, as an upper bound, while the image holds no less than `held`; and any number
/// of them, where there is a directory and `memory_most` is no more than it.
uint64_t ccodecs_spool_charge(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits);

/// Appends a copy. False when the budget, the system's memory or the disk has no room.
bool ccodecs_spool_append(
    ccodecs_spool *buffered, const uint8_t *bytes, size_t count, const ccodecs_limits *limits, ccodecs_budget *budget);

/// Ends the appending. False when the disk has no room.
bool ccodecs_spool_end(ccodecs_spool *buffered);

/// Gives some of the bytes from `offset` to `end`, valid until the next call; is_last when they are all. False when the
/// disk fails.
bool ccodecs_spool_window(ccodecs_spool *buffered, uint64_t offset, uint64_t end, ccodecs_input *window);

/// Also of a zeroed ccodecs_spool.
void ccodecs_spool_destroy(ccodecs_spool *buffered, ccodecs_budget *budget);

#endif

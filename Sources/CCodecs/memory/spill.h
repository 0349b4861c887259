// Large blocks that several passes traverse from front to back, in memory or in a mapped file. Private to CCodecs.
//
//   ccodecs_spill block;
//   if (!ccodecs_spill_create(&block, byte_count, &limits, budget)) ...
//   for each pass: for each row: { use block.bytes + row's offset; ccodecs_spill_pass(&block, end of the row); }
//   ccodecs_spill_destroy(&block, budget);
//
// A block that would raise the image's memory above CCODECS_SPILL_BYTES goes to a file in limits.spill_directory, if
// set. The file has no name, so it disappears with the process in any case. Its disk space is allocated at once, so
// that later writes cannot fail. The file is mapped. Its beginning stays resident, up to CCODECS_SPILL_BYTES including
// the image's other memory, if that is at least a third of the block. Behind it, each pass releases the pages that it
// has left, and the system writes them to the file at any time. The cost of a file is that each pass reads these pages
// again.

#pragma once

#include "ccodecs.h"

/// A block of zeroed bytes, in memory or in a mapped file.
typedef struct ccodecs_spill {
  uint8_t *bytes; ///< Initially zeroed; aligned to 64 bytes.
  size_t byte_count;
  bool is_file;
  size_t kept;     ///< In a file: number of bytes at its beginning that stay resident.
  size_t resident; ///< In a file: offset of the first byte behind them that this pass has not released.
  size_t touched;  ///< In a file: offset of the first byte that this pass has not prefetched.
} ccodecs_spill;

/// Returns an upper bound of the bytes that a block of `byte_count` bytes charges while the image's other memory is at
/// least `buffered` bytes.
uint64_t ccodecs_spill_charge(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits);

/// Creates a zeroed block. Returns false and charges nothing if the budget, the system's memory or the disk is
/// exhausted.
bool ccodecs_spill_create(
    ccodecs_spill *spill, uint64_t byte_count, const ccodecs_limits *limits, ccodecs_budget *budget);

/// Reports that this pass no longer needs the bytes before `offset`. An offset below the last one starts a new pass.
void ccodecs_spill_pass(ccodecs_spill *spill, size_t offset);

/// Frees the block and refunds its budget. A zeroed ccodecs_spill is valid.
void ccodecs_spill_destroy(ccodecs_spill *spill, ccodecs_budget *budget);

/// Returns the descriptor of a new file for reading and writing, or -1. The file has `byte_count` bytes of disk space;
/// with 0 it is empty and grows as it is written.
int ccodecs_spill_new_file(const ccodecs_limits *limits, uint64_t byte_count);

/// Requests the file from another process. Private to spill.c.
int ccodecs_spill_receive_file(int socket, uint64_t byte_count);

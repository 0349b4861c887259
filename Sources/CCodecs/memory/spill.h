// Large blocks that are gone through from front to back again and again, in memory or in a file. Private to CCodecs.
//
//   ccodecs_spill block;
//   if (!ccodecs_spill_create(&block, byte_count, &limits, budget)) ...
//   for each pass: for each row: { use block.bytes + row's offset; ccodecs_spill_pass(&block, end of the row); }
//   ccodecs_spill_destroy(&block, budget);
//
// A block with which the image would hold more than CCODECS_SPILL_BYTES goes to a file in limits.spill_directory, if
// there is one. The file has no name, so it goes with the process however that ends; its room on the disk is taken at
// once, so that writing to it can't fail later. It is mapped. Its beginning stays in memory, up to CCODECS_SPILL_BYTES
// with all else that the image holds, if that is a third of it at least; of the rest, what a pass has left behind is
// let go: the system writes it to the file when it likes. That each pass has to fetch it again is what a file costs.

#ifndef CCODECS_SPILL_H
#define CCODECS_SPILL_H

#include "ccodecs.h"

typedef struct ccodecs_spill {
  uint8_t *bytes; ///< Zeroed at first; aligned to 64 bytes.
  size_t byte_count;
  bool is_file;
  size_t kept;     ///< In a file: bytes at its beginning that are never let go,
  size_t resident; ///< the offset of the first byte behind them that this pass has not let go,
  size_t touched;  ///< and of the first that it did not bring in.
} ccodecs_spill;

/// What a block of `byte_count` bytes will charge, as an upper bound, while the image holds no less than `held`.
uint64_t ccodecs_spill_charge(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits);

/// False, and nothing held, when the budget, the system's memory or the disk has no room.
bool ccodecs_spill_create(
    ccodecs_spill *spill, uint64_t byte_count, const ccodecs_limits *limits, ccodecs_budget *budget);

/// Says that this pass needs nothing before `offset` any more. An offset below the last one begins a new pass.
void ccodecs_spill_pass(ccodecs_spill *spill, size_t offset);

/// Also of a zeroed ccodecs_spill.
void ccodecs_spill_destroy(ccodecs_spill *spill, ccodecs_budget *budget);

/// An empty file without a name in a directory, open for reading and writing; or -1.
int ccodecs_spill_create_file(int directory);

#endif

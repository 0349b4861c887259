// Address space for the rows of a whole image, of which only a window is backed by memory. Private to CCodecs.
//
//   ccodecs_row_space space;
//   if (!ccodecs_row_space_create(&space, row_bytes * height)) ...
//   repeatedly: { a library writes rows at space.base, in order; they are used;
//                 ccodecs_row_space_pass(&space, end of the rows used, end of the rows written); }
//   ccodecs_row_space_destroy(&space);
//
// It is for libraries that write to a buffer of the whole image but never read it back. Pages are allocated as they are
// written. If the system supports it, used pages are moved ahead of the written rows, so that no page is cleared twice
// and all of them stay in the processor's cache; otherwise they are returned to the system. Up to
// ccodecs_row_space_slack bytes are allocated in addition to the window's rows. Nothing is charged to a budget: the
// size of the window depends on the caller.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ccodecs_row_space {
  uint8_t *base; ///< NULL without address space.
  size_t byte_count;
  size_t step;   ///< Bytes to move at a time: large enough for the calls to cost nothing, and for at most 512 steps.
  size_t passed; ///< Offset of the first byte that still has its memory.
  size_t ahead;  ///< Offset after the last byte that ever had memory moved to it.
} ccodecs_row_space;

/// Returns the maximum number of bytes allocated in addition to the window's rows, for a space of `byte_count` bytes.
size_t ccodecs_row_space_slack(size_t byte_count);

/// Reserves address space; returns false when there is none.
///
/// A byte that was not written is zero, or has a value written earlier elsewhere in the space.
bool ccodecs_row_space_create(ccodecs_row_space *space, size_t byte_count);

/// Reports that no byte before `used` is needed any more, and that no byte from `written` on was written.
void ccodecs_row_space_pass(ccodecs_row_space *space, size_t used, size_t written);

/// Releases the address space. Also accepts a zeroed ccodecs_row_space.
void ccodecs_row_space_destroy(ccodecs_row_space *space);

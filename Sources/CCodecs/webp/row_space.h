// Address space for the rows of a whole image, of which only a window has memory. Private to CCodecs.
//
//   ccodecs_row_space space;
//   if (!ccodecs_row_space_create(&space, row_bytes * height)) ...
//   repeatedly: { a library writes rows at space.base, in order; they are used;
//                 ccodecs_row_space_pass(&space, end of the rows used, end of the rows written); }
//   ccodecs_row_space_destroy(&space);
//
// For libraries that write to a buffer of the whole image but never read it back. Pages appear as they are written;
// those that were used are moved ahead of what is written, where the system can do that, so that no page is cleared
// twice and all of them stay in the processor's cache; else they go back to the system. Beside a window's rows up to
// ccodecs_row_space_slack bytes have memory. Nothing is charged to a budget: the window depends on its user.

#ifndef CCODECS_ROW_SPACE_H
#define CCODECS_ROW_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ccodecs_row_space {
  uint8_t *base; ///< NULL without any.
  size_t byte_count;
  size_t step;   ///< Moved at a time: large enough that the calls cost nothing, and that no more than 512 parts arise.
  size_t passed; ///< The offset of the first byte that has its memory still,
  size_t ahead;  ///< and of the first behind all that ever had.
} ccodecs_row_space;

/// Bytes beside the window's rows that may have memory, of a space of `byte_count`.
size_t ccodecs_row_space_slack(size_t byte_count);

/// False without address space. What was never written is zero, or what was written before it.
bool ccodecs_row_space_create(ccodecs_row_space *space, size_t byte_count);

/// Says that no byte before `used` is needed any more, and none from `written` on was written.
void ccodecs_row_space_pass(ccodecs_row_space *space, size_t used, size_t written);

/// Also of a zeroed ccodecs_row_space.
void ccodecs_row_space_destroy(ccodecs_row_space *space);

#endif

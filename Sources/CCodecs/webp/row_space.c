#ifndef _GNU_SOURCE
#define _GNU_SOURCE // mremap, anonymous maps
#endif

#include "row_space.h"

#include <sys/mman.h>

static const int map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

static size_t round_up(size_t count, size_t unit) {
  return (count + unit - 1) / unit * unit;
}

static size_t step_bytes(size_t byte_count) {
  const size_t minimum = 128 << 10; // a multiple of every page size
  return round_up(byte_count / 512 + 1, minimum);
}

size_t ccodecs_row_space_slack(size_t byte_count) {
  return 2 * step_bytes(byte_count);
}

bool ccodecs_row_space_create(ccodecs_row_space *space, size_t byte_count) {
  const size_t step = step_bytes(byte_count);
  byte_count = round_up(byte_count, step);
  void *base = mmap(NULL, byte_count, PROT_READ | PROT_WRITE, map_flags, -1, 0);
  *space = (ccodecs_row_space){.base = base == MAP_FAILED ? NULL : base, .byte_count = byte_count, .step = step};
  return space->base != NULL;
}

/// Moves the memory of one step ahead of the written bytes. Returns false when there is no position ahead, or when the
/// system does not support it.
static bool move_ahead(ccodecs_row_space *space, size_t written) {
#if defined(MREMAP_DONTUNMAP)
  const size_t free_from = round_up(written, space->step);
  const size_t ahead = space->ahead < free_from ? free_from : space->ahead;
  if (ahead >= space->byte_count) {
    return false;
  }
  // The step's own addresses stay mapped, without memory, so that nothing else is mapped there.
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(space->base + space->passed, space->step, space->step, flags, space->base + ahead) == MAP_FAILED) {
    // The failed call may have unmapped the destination, so map it again. If that fails too, a write to it ends the
    // process, which is better than a write to memory that someone else mapped there.
    mmap(space->base + ahead, space->step, PROT_READ | PROT_WRITE, map_flags | MAP_FIXED, -1, 0);
    space->ahead = space->byte_count; // no further attempt
    return false;
  }
  space->ahead = ahead + space->step;
  return true;
#else
  (void)space;
  (void)written;
  return false;
#endif
}

void ccodecs_row_space_pass(ccodecs_row_space *space, size_t used, size_t written) {
  while (space->base != NULL && space->passed + space->step <= used) {
    if (!move_ahead(space, written)) {
      madvise(space->base + space->passed, space->step, MADV_DONTNEED);
    }
    space->passed += space->step;
  }
}

void ccodecs_row_space_destroy(ccodecs_row_space *space) {
  if (space->base != NULL) {
    munmap(space->base, space->byte_count);
  }
  *space = (ccodecs_row_space){0};
}

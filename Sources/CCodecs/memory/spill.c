#ifndef _GNU_SOURCE
#define _GNU_SOURCE // posix_fallocate, openat
#endif

#include "spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  /// Bytes released at a time: large enough to make the cost of the calls negligible.
  STEP_BYTES = 256 << 10,
  /// The resident bytes of a file: one step, and the row of blocks in use.
  WINDOW_BYTES = 1 << 20,
};

/// Returns whether a block goes to a file. A block within the window size would save no memory in a file.
static bool is_for_file(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits) {
  return limits->can_spill && byte_count > WINDOW_BYTES && buffered + byte_count > CCODECS_SPILL_BYTES;
}

/// Returns the number of bytes at the beginning of a file that stay resident: what is left of CCODECS_SPILL_BYTES after
/// the window, or 0 if that is too small a part of the file to be useful.
static size_t kept_bytes(uint64_t byte_count, uint64_t buffered) {
  const uint64_t taken = buffered + WINDOW_BYTES;
  const uint64_t kept = taken >= CCODECS_SPILL_BYTES ? 0 : (CCODECS_SPILL_BYTES - taken) / STEP_BYTES * STEP_BYTES;
  return 3 * kept < byte_count ? 0 : (size_t)kept;
}

uint64_t ccodecs_spill_charge(uint64_t byte_count, uint64_t buffered, const ccodecs_limits *limits) {
  return is_for_file(byte_count, buffered, limits) ? kept_bytes(byte_count, buffered) + WINDOW_BYTES : byte_count + 128;
}

/// Allocates `byte_count` bytes of disk space for a new file. Returns `file`, or -1 after closing it.
static int allocated(int file, uint64_t byte_count) {
  if (file < 0 || byte_count == 0) {
    return file;
  }
#if defined(__linux__)
  const bool has_room = byte_count <= INT64_MAX && posix_fallocate(file, 0, (off_t)byte_count) == 0;
#else
  const bool has_room = byte_count <= INT64_MAX && ftruncate(file, (off_t)byte_count) == 0;
#endif
  if (!has_room) {
    close(file);
    return -1;
  }
  return file;
}

static int create_empty_file(int directory) {
  static atomic_uint serial;
  for (int attempt = 0; attempt < 64; attempt++) {
    char name[64];
    snprintf(name, sizeof name, ".image-worker-%ld-%u", (long)getpid(), atomic_fetch_add(&serial, 1));
    const int file = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      unlinkat(directory, name, 0);
      return file;
    }
    if (errno != EEXIST) {
      return -1;
    }
  }
  return -1;
}

int ccodecs_spill_create_file(int directory, uint64_t byte_count) {
  return allocated(create_empty_file(directory), byte_count);
}

int ccodecs_spill_new_file(const ccodecs_limits *limits, uint64_t byte_count) {
  return limits->spill_is_socket ? ccodecs_spill_receive_file(limits->spill_directory, byte_count)
                                 : ccodecs_spill_create_file(limits->spill_directory, byte_count);
}

int ccodecs_spill_open(const char *path) {
  const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) {
    return -1;
  }
  const int probe = ccodecs_spill_create_file(directory, 1);
  if (probe < 0) {
    close(directory);
    return -1;
  }
  close(probe);
  return directory;
}

void ccodecs_spill_close(int directory) {
  close(directory);
}

static bool create_file(ccodecs_spill *spill, const ccodecs_limits *limits, ccodecs_budget *budget) {
  spill->kept = kept_bytes(spill->byte_count, budget->used);
  if (!ccodecs_budget_charge(budget, spill->kept + WINDOW_BYTES)) {
    return false;
  }
  const int file = ccodecs_spill_new_file(limits, spill->byte_count);
  void *map = file < 0 ? MAP_FAILED : mmap(NULL, spill->byte_count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) {
    close(file); // the mapping keeps the file
  }
  if (map == MAP_FAILED) {
    budget->has_machine_failed = true;
    ccodecs_budget_refund(budget, spill->kept + WINDOW_BYTES);
    return false;
  }
  spill->bytes = map;
  spill->is_file = true;
  spill->resident = spill->kept;
  spill->touched = spill->kept;
  return true;
}

bool ccodecs_spill_create(
    ccodecs_spill *spill, uint64_t byte_count, const ccodecs_limits *limits, ccodecs_budget *budget) {
  memset(spill, 0, sizeof *spill);
  if (byte_count > SIZE_MAX / 2) {
    return false;
  }
  spill->byte_count = (size_t)byte_count;
  if (is_for_file(byte_count, budget->used, limits)) {
    return create_file(spill, limits, budget);
  }
  spill->bytes = ccodecs_allocate(budget, spill->byte_count);
  if (spill->bytes != NULL) {
    memset(spill->bytes, 0, spill->byte_count);
  }
  return spill->bytes != NULL;
}

/// Releases the pages from `first` to `end`; their content stays in the file.
static void let_go(ccodecs_spill *spill, size_t first, size_t end) {
  if (end > first) {
    madvise(spill->bytes + first, end - first, MADV_DONTNEED);
  }
}

/// Prefetches the pages of a step in one call, which costs less than separate page faults. Older kernels reject it,
/// which is harmless.
static void touch(ccodecs_spill *spill, size_t first) {
#if defined(MADV_POPULATE_WRITE)
  const size_t left = spill->byte_count - first;
  madvise(spill->bytes + first, left < STEP_BYTES ? left : STEP_BYTES, MADV_POPULATE_WRITE);
#else
  (void)spill;
  (void)first;
#endif
}

void ccodecs_spill_pass(ccodecs_spill *spill, size_t offset) {
  if (!spill->is_file) {
    return;
  }
  if (offset < spill->resident && spill->touched > spill->kept) { // the previous pass may have ended anywhere
    let_go(spill, spill->resident, spill->byte_count);
    spill->resident = spill->kept;
    spill->touched = spill->kept;
  }
  const size_t step = offset / STEP_BYTES * STEP_BYTES; // a multiple of every page size
  if (step > spill->resident) {
    let_go(spill, spill->resident, step);
    spill->resident = step;
  }
  if (step >= spill->touched && step < spill->byte_count) {
    touch(spill, step);
    spill->touched = step + STEP_BYTES;
  }
}

void ccodecs_spill_destroy(ccodecs_spill *spill, ccodecs_budget *budget) {
  if (spill->is_file) {
    munmap(spill->bytes, spill->byte_count);
    ccodecs_budget_refund(budget, spill->kept + WINDOW_BYTES);
  } else {
    ccodecs_free(budget, spill->bytes);
  }
  memset(spill, 0, sizeof *spill);
}

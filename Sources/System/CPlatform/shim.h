// Functions of the system that Swift's Glibc module omits, or whose types it resolves to another module's.
#ifndef CPLATFORM_SHIM_H
#define CPLATFORM_SHIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/// Maps zeroed pages. Returns NULL if there is no memory.
static inline void *cplatform_map(size_t byte_count) {
  void *pages = mmap(NULL, byte_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : pages;
}

/// Returns pages of `cplatform_map` to the system.
static inline void cplatform_unmap(void *pages, size_t byte_count) {
  munmap(pages, byte_count);
}

/// A file, without following a link. Swift sees `struct stat` in several modules, of which it may choose one that a
/// file cannot import.
typedef struct cplatform_file {
  /// The number of the file in its file system.
  uint64_t number;
  bool is_socket;
} cplatform_file;

/// Reads the status of a file. Returns whether it exists and can be read.
static inline bool cplatform_file_read(const char *path, cplatform_file *file) {
  struct stat status;
  if (lstat(path, &status) != 0)
    return false;
  file->number = (uint64_t)status.st_ino;
  file->is_socket = S_ISSOCK(status.st_mode);
  return true;
}

#endif

// A file in memory for libtiff, and the errors that libtiff reports. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

#ifdef CCODECS_TIFF

#include <tiffio.h>

/// Maximum size in bytes of a directory's array or a block that libtiff allocates.
enum { CCODECS_TIFF_LARGEST_BLOCK = 1 << 28 };

typedef struct ccodecs_tiff_file {
  ccodecs_bytes bytes;
  size_t position;    ///< libtiff's read position.
  TIFF *tiff;         ///< NULL while the file is not open, and when it cannot be opened.
  char reason[120];   ///< libtiff's last error.
  bool lacks_palette; ///< The file has a color map that cannot be read.
} ccodecs_tiff_file;

/// Returns how many bytes libtiff allocates for the values of the directory at `offset`, or of the first one at 0. Any
/// number of tags, known or not, may share bytes of the file.
uint64_t ccodecs_tiff_file_directory_bytes(const ccodecs_tiff_file *file, uint64_t offset);

/// Opens the first directory of `bytes`, which must not change until TIFFClose. Returns false without memory.
bool ccodecs_tiff_file_open(ccodecs_tiff_file *file);

/// Counts the pages: the first directory, and those of images that are neither reduced versions nor masks. Sets *offset
/// to that of the page at `index`. Returns 0 if the directories form a loop, UINT32_MAX if there are too many of them.
uint32_t ccodecs_tiff_file_count_pages(const ccodecs_tiff_file *file, uint32_t index, uint64_t *offset);

/// Returns whether the file is truncated: it ends before its first directory, or before the values of one of its tags.
bool ccodecs_tiff_file_is_truncated(const ccodecs_tiff_file *file);

#endif

// A file in memory as libtiff reads it, and what libtiff says of it. Private to CCodecs.

#ifndef CCODECS_TIFF_FILE_H
#define CCODECS_TIFF_FILE_H

#include "../memory/bytes.h"

#ifdef CCODECS_TIFF

#include <tiffio.h>

/// No array of a directory and no block that libtiff allocates is larger.
enum { CCODECS_TIFF_LARGEST_BLOCK = 1 << 28 };

typedef struct ccodecs_tiff_file {
  ccodecs_bytes bytes;
  size_t position;    ///< Of libtiff.
  TIFF *tiff;         ///< NULL while it is not open, and when it can't be opened.
  char reason[120];   ///< libtiff's last error.
  bool lacks_palette; ///< A colour map is there that can't be read.
} ccodecs_tiff_file;

/// Opens the first directory of `bytes`, which must stay as they are; TIFFClose ends it. False without memory.
bool ccodecs_tiff_file_open(ccodecs_tiff_file *file);

#endif

#endif

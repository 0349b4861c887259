#include "tiff_file.h"

#ifdef CCODECS_TIFF

#include "../core/tiff_directory.h"

#include <stdio.h>

static tmsize_t on_read(thandle_t handle, void *destination, tmsize_t count) {
  ccodecs_tiff_file *f = (ccodecs_tiff_file *)handle;
  const size_t left = f->bytes.count - f->position;
  const size_t taken = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
  if (taken > 0) {
    memcpy(destination, ccodecs_bytes_start(&f->bytes) + f->position, taken);
  }
  f->position += taken;
  return (tmsize_t)taken;
}

static tmsize_t on_write(thandle_t handle, void *source, tmsize_t count) {
  (void)handle, (void)source, (void)count;
  return -1;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  ccodecs_tiff_file *f = (ccodecs_tiff_file *)handle;
  const toff_t from = whence == SEEK_CUR ? f->position : whence == SEEK_END ? f->bytes.count : 0;
  const toff_t to = from + offset;
  if (to > f->bytes.count) {
    return (toff_t)-1;
  }
  f->position = (size_t)to;
  return to;
}

static int on_close(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t on_size(thandle_t handle) {
  return ((ccodecs_tiff_file *)handle)->bytes.count;
}

static int on_map(thandle_t handle, void **base, toff_t *size) {
  ccodecs_tiff_file *f = (ccodecs_tiff_file *)handle;
  *base = ccodecs_bytes_start(&f->bytes);
  *size = f->bytes.count;
  return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size) {
  (void)handle, (void)base, (void)size;
}

static int on_error(TIFF *tiff, void *context, const char *module, const char *format, va_list arguments) {
  (void)tiff, (void)module;
  ccodecs_tiff_file *f = context;
  vsnprintf(f->reason, sizeof f->reason, format, arguments);
  return 1;
}

/// libtiff treats palette indices as gray when it cannot read the color map, and only warns.
static int on_warning(TIFF *tiff, void *context, const char *module, const char *format, va_list arguments) {
  (void)tiff, (void)module;
  ccodecs_tiff_file *f = context;
  char text[120];
  vsnprintf(text, sizeof text, format, arguments);
  f->lacks_palette = f->lacks_palette || strstr(text, "\"ColorMap\"") != NULL;
  return 1;
}

bool ccodecs_tiff_file_open(ccodecs_tiff_file *file) {
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (options == NULL) {
    return false;
  }
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, CCODECS_TIFF_LARGEST_BLOCK);
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, file);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, file);
  file->tiff =
      TIFFClientOpenExt("", "r", file, on_read, on_write, on_seek, on_close, on_size, on_map, on_unmap, options);
  TIFFOpenOptionsFree(options);
  return true;
}

// MARK: Directories

static ccodecs_tiff contents_of(const ccodecs_tiff_file *file) {
  return ccodecs_tiff_of(ccodecs_bytes_start(&file->bytes), file->bytes.count);
}

/// Returns whether a directory is that of a reduced version or a mask. Entries are sorted by their tags, and this one
/// has nearly the lowest.
static bool is_secondary(const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory) {
  enum { MAX_ENTRIES = 8 };
  ccodecs_tiff_directory first = *directory;
  first.count = first.count < MAX_ENTRIES ? first.count : MAX_ENTRIES;
  ccodecs_tiff_entry entry;
  uint64_t kind = 0;
  return ccodecs_tiff_find(tiff, &first, TIFFTAG_SUBFILETYPE, &entry) &&
         ccodecs_tiff_number(tiff, entry.place, entry.type == TIFF_SHORT ? 2 : 4, &kind) &&
         (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0;
}

/// Returns how many bytes libtiff allocates for the values of an entry; those that are not in the file it does not
/// read.
static uint64_t allocated_bytes(const ccodecs_tiff *tiff, const ccodecs_tiff_entry *entry) {
  enum { BLOCK_VALUE_BYTES = 16 }; // libtiff widens the places and sizes of blocks to 8 bytes, in a copy
  if (entry->value_bytes == 0) {
    return 0;
  }
  const uint64_t fitting = tiff->count / entry->value_bytes;
  const uint64_t present = entry->count < fitting ? entry->count : fitting;
  const bool is_of_blocks = entry->tag == TIFFTAG_STRIPOFFSETS || entry->tag == TIFFTAG_STRIPBYTECOUNTS ||
                            entry->tag == TIFFTAG_TILEOFFSETS || entry->tag == TIFFTAG_TILEBYTECOUNTS;
  return present * (is_of_blocks ? BLOCK_VALUE_BYTES : entry->value_bytes);
}

uint64_t ccodecs_tiff_file_directory_bytes(const ccodecs_tiff_file *file, uint64_t offset) {
  const ccodecs_tiff tiff = contents_of(file);
  if (offset == 0 && !ccodecs_tiff_first_directory(&tiff, &offset)) {
    return 0;
  }
  uint64_t total = 0;
  const ccodecs_tiff_directory directory = ccodecs_tiff_directory_at(&tiff, offset);
  for (uint64_t i = 0; i < directory.count; i++) {
    const ccodecs_tiff_entry entry = ccodecs_tiff_entry_at(&tiff, &directory, i);
    total += allocated_bytes(&tiff, &entry);
  }
  return total;
}

uint32_t ccodecs_tiff_file_count_pages(const ccodecs_tiff_file *file, uint32_t index, uint64_t *offset) {
  enum { MAX_DIRECTORIES = 65536 };
  const ccodecs_tiff tiff = contents_of(file);
  uint64_t at = 0;
  uint64_t marked = 0;
  uint32_t pages = 0;
  ccodecs_tiff_first_directory(&tiff, &at);
  for (uint32_t i = 0; at != 0; i++) {
    if (at == marked || i == MAX_DIRECTORIES) {
      return at == marked ? 0 : UINT32_MAX;
    }
    marked = (i & (i - 1)) == 0 ? at : marked; // a loop contains one of these from some power of two on
    const ccodecs_tiff_directory directory = ccodecs_tiff_directory_at(&tiff, at);
    const bool is_readable = directory.is_whole && directory.count > 0;
    if (i == 0 || (is_readable && !is_secondary(&tiff, &directory))) {
      *offset = pages == index ? at : *offset;
      pages++;
    }
    at = is_readable ? ccodecs_tiff_next_directory(&tiff, &directory) : 0;
  }
  return pages;
}

bool ccodecs_tiff_file_is_truncated(const ccodecs_tiff_file *file) {
  const ccodecs_tiff tiff = contents_of(file);
  uint64_t at = 0;
  if (!ccodecs_tiff_first_directory(&tiff, &at)) {
    return true;
  }
  const ccodecs_tiff_directory directory = ccodecs_tiff_directory_at(&tiff, at);
  for (uint64_t i = 0; i < directory.count; i++) {
    const ccodecs_tiff_entry entry = ccodecs_tiff_entry_at(&tiff, &directory, i);
    size_t count;
    if (entry.value_bytes > 0 && entry.count > 0 && ccodecs_tiff_values(&tiff, &entry, &count) == NULL) {
      return true;
    }
  }
  return !directory.is_whole;
}

#endif

#include "tiff_file.h"

#ifdef CCODECS_TIFF

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

/// The numbers of a file in its byte order, and in its variant: classic, or with sizes of eight bytes (BigTIFF).
typedef struct tiff_numbers {
  const uint8_t *bytes;
  uint64_t count;
  bool is_big_endian;
  bool is_wide;
} tiff_numbers;

/// Reads a number of 2, 4 or 8 bytes. Returns false past the end.
static bool read_number(const tiff_numbers *n, uint64_t at, uint32_t size, uint64_t *value) {
  if (at > n->count || size > n->count - at) {
    return false;
  }
  *value = 0;
  for (uint32_t i = 0; i < size; i++) {
    *value = *value << 8 | n->bytes[at + (n->is_big_endian ? i : size - 1 - i)];
  }
  return true;
}

/// The bytes of a value, by its type.
static const uint8_t type_bytes[19] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};

/// Returns whether the values of the directory entry at `at` lie in the file.
static bool has_values(const tiff_numbers *n, uint64_t at) {
  const uint32_t size = n->is_wide ? 8 : 4;
  uint64_t type;
  uint64_t count;
  uint64_t offset;
  if (!read_number(n, at + 2, 2, &type) || !read_number(n, at + 4, size, &count) ||
      !read_number(n, at + 4 + size, size, &offset)) {
    return false;
  }
  const uint64_t value_bytes = type < sizeof type_bytes ? type_bytes[type] : 0;
  if (value_bytes == 0 || count <= size / value_bytes) {
    return true;
  }
  return offset <= n->count && count <= (n->count - offset) / value_bytes;
}

static tiff_numbers numbers_of(const ccodecs_tiff_file *file) {
  tiff_numbers n = {.bytes = ccodecs_bytes_start(&file->bytes), .count = file->bytes.count};
  n.is_big_endian = n.count > 0 && n.bytes[0] == 'M';
  uint64_t version = 0;
  n.is_wide = read_number(&n, 2, 2, &version) && version == 43;
  return n;
}

/// Reads the offset of the first directory. Returns false past the end.
static bool find_first_directory(const tiff_numbers *n, uint64_t *directory) {
  return read_number(n, n->is_wide ? 8 : 4, n->is_wide ? 8 : 4, directory);
}

/// Returns whether a directory, given by its entries, is a reduced version or a mask. Entries are sorted by their tags,
/// and this one has nearly the lowest.
static bool is_secondary(const tiff_numbers *n, uint64_t entry, uint64_t count) {
  enum { MAX_ENTRIES = 8 };
  for (uint64_t i = 0; i < count && i < MAX_ENTRIES; i++, entry += n->is_wide ? 20 : 12) {
    uint64_t tag = 0;
    uint64_t type = 0;
    uint64_t kind = 0;
    if (read_number(n, entry, 2, &tag) && tag == TIFFTAG_SUBFILETYPE && read_number(n, entry + 2, 2, &type) &&
        read_number(n, entry + (n->is_wide ? 12 : 8), type == TIFF_SHORT ? 2 : 4, &kind)) {
      return (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0;
    }
  }
  return false;
}

/// Returns the offset of the directory after the one at `at`, 0 without one. Sets *is_page.
static uint64_t next_directory(const tiff_numbers *n, uint64_t at, bool *is_page) {
  const uint64_t entry_bytes = n->is_wide ? 20 : 12;
  const uint32_t count_bytes = n->is_wide ? 8 : 2;
  uint64_t entries = 0;
  uint64_t next = 0;
  *is_page = false;
  if (!read_number(n, at, count_bytes, &entries) || entries == 0 ||
      entries > (n->count - at - count_bytes) / entry_bytes) {
    return 0;
  }
  *is_page = !is_secondary(n, at + count_bytes, entries);
  return read_number(n, at + count_bytes + entries * entry_bytes, n->is_wide ? 8 : 4, &next) ? next : 0;
}

/// Returns how many bytes libtiff allocates for the values of the directory entry at `at`; those that are not in the
/// file it does not read.
static uint64_t entry_bytes_at(const tiff_numbers *n, uint64_t at) {
  enum { BLOCK_VALUE_BYTES = 16 }; // libtiff widens the places and sizes of blocks to 8 bytes, in a copy
  uint64_t tag = 0;
  uint64_t type = 0;
  uint64_t count = 0;
  if (!read_number(n, at, 2, &tag) || !read_number(n, at + 2, 2, &type) || type >= sizeof type_bytes ||
      !read_number(n, at + 4, n->is_wide ? 8 : 4, &count)) {
    return 0;
  }
  const uint64_t value_bytes = type_bytes[type];
  const uint64_t present = value_bytes == 0 ? 0 : count < n->count / value_bytes ? count : n->count / value_bytes;
  const bool is_of_blocks = tag == TIFFTAG_STRIPOFFSETS || tag == TIFFTAG_STRIPBYTECOUNTS ||
                            tag == TIFFTAG_TILEOFFSETS || tag == TIFFTAG_TILEBYTECOUNTS;
  return present * (is_of_blocks ? BLOCK_VALUE_BYTES : value_bytes);
}

uint64_t ccodecs_tiff_file_directory_bytes(const ccodecs_tiff_file *file, uint64_t offset) {
  const tiff_numbers n = numbers_of(file);
  const uint64_t entry_bytes = n.is_wide ? 20 : 12;
  const uint32_t count_bytes = n.is_wide ? 8 : 2;
  uint64_t entries = 0;
  if ((offset == 0 && !find_first_directory(&n, &offset)) || !read_number(&n, offset, count_bytes, &entries)) {
    return 0;
  }
  uint64_t total = 0;
  const uint64_t fitting = (n.count - offset - count_bytes) / entry_bytes;
  entries = entries < fitting ? entries : fitting;
  for (uint64_t at = offset + count_bytes; entries > 0; entries--, at += entry_bytes) {
    total += entry_bytes_at(&n, at);
  }
  return total;
}

uint32_t ccodecs_tiff_file_count_pages(const ccodecs_tiff_file *file, uint32_t index, uint64_t *offset) {
  enum { MAX_DIRECTORIES = 65536 };
  const tiff_numbers n = numbers_of(file);
  uint64_t at = 0;
  uint64_t marked = 0;
  uint32_t pages = 0;
  find_first_directory(&n, &at);
  for (uint32_t i = 0; at != 0; i++) {
    if (at == marked || i == MAX_DIRECTORIES) {
      return at == marked ? 0 : UINT32_MAX;
    }
    marked = (i & (i - 1)) == 0 ? at : marked; // a loop contains one of these from some power of two on
    bool is_page;
    const uint64_t next = next_directory(&n, at, &is_page);
    if (is_page || i == 0) {
      *offset = pages == index ? at : *offset;
      pages++;
    }
    at = next;
  }
  return pages;
}

bool ccodecs_tiff_file_is_truncated(const ccodecs_tiff_file *file) {
  const tiff_numbers n = numbers_of(file);
  uint64_t directory = 0;
  uint64_t entries = 0;
  if (!find_first_directory(&n, &directory) || !read_number(&n, directory, n.is_wide ? 8 : 2, &entries)) {
    return true;
  }
  const uint64_t entry_bytes = n.is_wide ? 20 : 12;
  const uint64_t first = directory + (n.is_wide ? 8 : 2);
  if (entries > (n.count - first) / entry_bytes) {
    return true;
  }
  for (uint64_t i = 0; i < entries; i++) {
    if (!has_values(&n, first + i * entry_bytes)) {
      return true;
    }
  }
  return false;
}

#endif

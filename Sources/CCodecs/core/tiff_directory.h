// The directories of TIFF files and EXIF blocks, classic or BigTIFF. Private to CCodecs.

#pragma once

#include "../memory/bytes.h"

enum {
  CCODECS_TIFF_ASCII = 2,
  CCODECS_TIFF_SHORT = 3,
  CCODECS_TIFF_LONG = 4,
  CCODECS_TIFF_UTF8 = 129, ///< Of Exif 3.0.
};

/// The bytes of a file or block, and how its numbers are stored.
typedef struct ccodecs_tiff {
  const uint8_t *bytes;
  uint64_t count;
  bool is_big_endian;
  bool is_wide; ///< It is a BigTIFF, whose sizes have 8 bytes.
} ccodecs_tiff;

/// A directory, as far as the file contains it.
typedef struct ccodecs_tiff_directory {
  uint64_t entries; ///< Offset of the first entry.
  uint64_t count;   ///< Number of entries.
  bool is_whole;
} ccodecs_tiff_directory;

/// An entry of a directory.
typedef struct ccodecs_tiff_entry {
  uint64_t at; ///< Its offset.
  uint32_t tag;
  uint32_t type;
  uint64_t count;       ///< Number of values.
  uint32_t value_bytes; ///< Size of a value; 0 if the type is unknown.
  uint64_t place;       ///< Offset of the values, which may lie outside the file.
} ccodecs_tiff_entry;

ccodecs_tiff ccodecs_tiff_of(const uint8_t *bytes, uint64_t count);

/// Reads a number of at most 8 bytes. Returns false past the end.
bool ccodecs_tiff_number(const ccodecs_tiff *tiff, uint64_t at, uint32_t size, uint64_t *value);

/// Reads the offset of the first directory. Returns false past the end.
bool ccodecs_tiff_first_directory(const ccodecs_tiff *tiff, uint64_t *at);

/// Returns the directory at `at`; one that is not whole and has no entries if there is none.
ccodecs_tiff_directory ccodecs_tiff_directory_at(const ccodecs_tiff *tiff, uint64_t at);

/// Returns the entry at `index`, which is less than the directory's count.
ccodecs_tiff_entry ccodecs_tiff_entry_at(
    const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory, uint64_t index);

/// Finds an entry by its tag. Returns false if the directory has none.
bool ccodecs_tiff_find(
    const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory, uint32_t tag, ccodecs_tiff_entry *entry);

/// Returns the values of an entry, in *byte_count bytes; NULL if the file does not contain them, there are none, or
/// their type is unknown.
const uint8_t *ccodecs_tiff_values(const ccodecs_tiff *tiff, const ccodecs_tiff_entry *entry, size_t *byte_count);

/// Returns the offset of the directory after the one given, 0 without one.
uint64_t ccodecs_tiff_next_directory(const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory);

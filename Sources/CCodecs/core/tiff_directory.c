#include "tiff_directory.h"

enum { BIG_TIFF_VERSION = 43 };

/// The size of an offset and of a number of values.
static uint32_t offset_bytes(const ccodecs_tiff *tiff) {
  return tiff->is_wide ? 8 : 4;
}

/// The size of a number of entries.
static uint32_t count_bytes(const ccodecs_tiff *tiff) {
  return tiff->is_wide ? 8 : 2;
}

static uint32_t entry_bytes(const ccodecs_tiff *tiff) {
  return 4 + 2 * offset_bytes(tiff);
}

ccodecs_tiff ccodecs_tiff_of(const uint8_t *bytes, uint64_t count) {
  ccodecs_tiff tiff = {.bytes = bytes, .count = count};
  tiff.is_big_endian = count > 0 && bytes[0] == 'M';
  uint64_t version = 0;
  tiff.is_wide = ccodecs_tiff_number(&tiff, 2, 2, &version) && version == BIG_TIFF_VERSION;
  return tiff;
}

bool ccodecs_tiff_number(const ccodecs_tiff *tiff, uint64_t at, uint32_t size, uint64_t *value) {
  if (at > tiff->count || size > tiff->count - at) {
    return false;
  }
  *value = 0;
  for (uint32_t i = 0; i < size; i++) {
    *value = *value << 8 | tiff->bytes[at + (tiff->is_big_endian ? i : size - 1 - i)];
  }
  return true;
}

bool ccodecs_tiff_first_directory(const ccodecs_tiff *tiff, uint64_t *at) {
  return ccodecs_tiff_number(tiff, offset_bytes(tiff), offset_bytes(tiff), at);
}

ccodecs_tiff_directory ccodecs_tiff_directory_at(const ccodecs_tiff *tiff, uint64_t at) {
  uint64_t stated = 0;
  if (!ccodecs_tiff_number(tiff, at, count_bytes(tiff), &stated)) {
    return (ccodecs_tiff_directory){0};
  }
  const uint64_t entries = at + count_bytes(tiff);
  const uint64_t room = (tiff->count - entries) / entry_bytes(tiff);
  return (ccodecs_tiff_directory){entries, stated < room ? stated : room, stated <= room};
}

ccodecs_tiff_entry ccodecs_tiff_entry_at(
    const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory, uint64_t index) {
  static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
  ccodecs_tiff_entry entry = {.at = directory->entries + index * entry_bytes(tiff)};
  const uint32_t size = offset_bytes(tiff);
  uint64_t tag = 0;
  uint64_t type = 0;
  ccodecs_tiff_number(tiff, entry.at, 2, &tag);
  ccodecs_tiff_number(tiff, entry.at + 2, 2, &type);
  ccodecs_tiff_number(tiff, entry.at + 4, size, &entry.count);
  entry.tag = (uint32_t)tag;
  entry.type = (uint32_t)type;
  entry.value_bytes = type == CCODECS_TIFF_UTF8 ? 1 : type < sizeof sizes ? sizes[type] : 0;
  entry.place = entry.at + 4 + size;
  if (entry.value_bytes > 0 && entry.count > size / entry.value_bytes) {
    ccodecs_tiff_number(tiff, entry.place, size, &entry.place);
  }
  return entry;
}

bool ccodecs_tiff_find(
    const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory, uint32_t tag, ccodecs_tiff_entry *entry) {
  for (uint64_t i = 0; i < directory->count; i++) {
    *entry = ccodecs_tiff_entry_at(tiff, directory, i);
    if (entry->tag == tag) {
      return true;
    }
  }
  return false;
}

const uint8_t *ccodecs_tiff_values(const ccodecs_tiff *tiff, const ccodecs_tiff_entry *entry, size_t *byte_count) {
  if (entry->value_bytes == 0 || entry->count == 0 || entry->place > tiff->count ||
      entry->count > (tiff->count - entry->place) / entry->value_bytes) {
    return NULL;
  }
  *byte_count = (size_t)entry->count * entry->value_bytes;
  return tiff->bytes + entry->place;
}

uint64_t ccodecs_tiff_next_directory(const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory) {
  uint64_t next = 0;
  const uint64_t end = directory->entries + directory->count * entry_bytes(tiff);
  return ccodecs_tiff_number(tiff, end, offset_bytes(tiff), &next) ? next : 0;
}

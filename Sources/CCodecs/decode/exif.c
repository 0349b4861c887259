#include "decoder.h"

#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3 };

static uint32_t read16(const uint8_t *p, bool is_big) {
  return is_big ? (uint32_t)(p[0] << 8 | p[1]) : (uint32_t)(p[1] << 8 | p[0]);
}

static uint32_t read32(const uint8_t *p, bool is_big) {
  return is_big ? read16(p, true) << 16 | read16(p + 2, true) : read16(p + 2, false) << 16 | read16(p, false);
}

uint8_t ccodecs_exif_orientation(const uint8_t *bytes, size_t count, bool *is_broken) {
  *is_broken = true;
  if (count < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0)) {
    return 1;
  }
  const bool is_big = bytes[0] == 'M';
  const size_t directory = read32(bytes + 4, is_big);
  if (directory < 8 || directory > count || count - directory < 2) {
    return 1;
  }
  const size_t entries = read16(bytes + directory, is_big);
  for (size_t i = 0; i < entries; i++) {
    const size_t at = directory + 2 + 12 * i;
    if (at > count || count - at < 12) {
      return 1;
    }
    const uint8_t *entry = bytes + at;
    if (read16(entry, is_big) != TAG_ORIENTATION) {
      continue;
    }
    const uint32_t value = read16(entry + 8, is_big);
    // 0 is written by some cameras for "not known".
    *is_broken = read16(entry + 2, is_big) != TYPE_SHORT || read32(entry + 4, is_big) != 1 || value > 8;
    return *is_broken || value == 0 ? 1 : (uint8_t)value;
  }
  *is_broken = false;
  return 1;
}

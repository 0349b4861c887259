#include "decoder.h"

#include <string.h>

enum {
  TAG_ORIENTATION = 0x0112,
  TAG_ARTIST = 0x013B,
  TAG_COPYRIGHT = 0x8298,
  TAG_MP_ENTRIES = 0xB002,
  TYPE_ASCII = 2,
  TYPE_SHORT = 3,
  TYPE_UTF8 = 129, // Exif 3.0
  TIFF_HEADER_BYTES = 8,
  TIFF_ENTRY_BYTES = 12,
  MP_ENTRY_BYTES = 16,
  MP_CLASS_MULTI_FRAME = 2,
  MP_CLASS_PRIMARY = 3,
};

static uint32_t read16(const uint8_t *p, bool is_big) {
  return is_big ? ccodecs_be16(p) : ccodecs_le16(p);
}

static uint32_t read32(const uint8_t *p, bool is_big) {
  return is_big ? ccodecs_be32(p) : ccodecs_le32(p);
}

/// The first directory of a TIFF block, as far as the block contains it.
typedef struct tiff_directory {
  const uint8_t *entries;
  size_t count;
  bool is_whole;
  bool is_big; ///< Its numbers are big-endian.
} tiff_directory;

/// Returns the first directory of a TIFF block; one that is not whole and has no entries if there is none.
static tiff_directory find_directory(const uint8_t *bytes, size_t count) {
  if (count < TIFF_HEADER_BYTES || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0)) {
    return (tiff_directory){0};
  }
  const bool is_big = bytes[0] == 'M';
  const size_t at = read32(bytes + 4, is_big);
  if (at < TIFF_HEADER_BYTES || at > count || count - at < 2) {
    return (tiff_directory){0};
  }
  const size_t stated = read16(bytes + at, is_big);
  const size_t room = (count - at - 2) / TIFF_ENTRY_BYTES;
  return (tiff_directory){bytes + at + 2, stated < room ? stated : room, stated <= room, is_big};
}

uint8_t ccodecs_exif_orientation(const uint8_t *bytes, size_t count, bool *is_broken) {
  const tiff_directory directory = find_directory(bytes, count);
  const bool is_big = directory.is_big;
  for (size_t i = 0; i < directory.count; i++) {
    const uint8_t *entry = directory.entries + i * TIFF_ENTRY_BYTES;
    if (read16(entry, is_big) == TAG_ORIENTATION) {
      const uint32_t value = read16(entry + 8, is_big);
      // Some cameras write 0 for "unknown".
      *is_broken = read16(entry + 2, is_big) != TYPE_SHORT || read32(entry + 4, is_big) != 1 || value > 8;
      return *is_broken || value == 0 ? 1 : (uint8_t)value;
    }
  }
  *is_broken = !directory.is_whole;
  return 1;
}

// MARK: Multi-picture format

bool ccodecs_mpf_has_more_images(const uint8_t *bytes, size_t count) {
  const tiff_directory directory = find_directory(bytes, count);
  const bool is_big = directory.is_big;
  for (size_t e = 0; e < directory.count; e++) {
    const uint8_t *entry = directory.entries + e * TIFF_ENTRY_BYTES;
    if (read16(entry, is_big) != TAG_MP_ENTRIES) {
      continue;
    }
    const size_t images = read32(entry + 4, is_big) / MP_ENTRY_BYTES;
    const size_t start = read32(entry + 8, is_big);
    // The first is the image that was decoded.
    for (size_t i = 1; i < images && start <= count && (count - start) / MP_ENTRY_BYTES > i; i++) {
      const uint32_t class = read32(bytes + start + i * MP_ENTRY_BYTES, is_big) >> 16 & 0xFF;
      if (class == MP_CLASS_MULTI_FRAME || class == MP_CLASS_PRIMARY) {
        return true;
      }
    }
  }
  return false;
}

// MARK: Copyright metadata

bool ccodecs_decoder_keep_text(ccodecs_decoder *decoder, ccodecs_bytes *kept, const uint8_t *text, size_t count) {
  // First, as each of many entries may claim the same bytes.
  count = count < CCODECS_MAX_COPYRIGHT_TEXT ? count : CCODECS_MAX_COPYRIGHT_TEXT;
  while (count > 0 && (text[count - 1] == 0 || text[count - 1] == ' ')) {
    count--;
  }
  ccodecs_bytes_take(kept, kept->count);
  return ccodecs_bytes_append(kept, text, count, decoder->budget);
}

bool ccodecs_exif_keep_copyright(ccodecs_decoder *decoder, const uint8_t *bytes, size_t count) {
  if (!ccodecs_decoder_keep_block(decoder, &decoder->exif, bytes, count)) {
    return false;
  }
  const tiff_directory directory = find_directory(bytes, count);
  const bool is_big = directory.is_big;
  bool has_room = true;
  for (size_t i = 0; i < directory.count && has_room; i++) {
    const uint8_t *entry = directory.entries + i * TIFF_ENTRY_BYTES;
    const uint32_t tag = read16(entry, is_big);
    const uint32_t type = read16(entry + 2, is_big);
    const size_t length = read32(entry + 4, is_big);
    const size_t place = length <= 4 ? (size_t)(entry - bytes) + 8 : read32(entry + 8, is_big);
    const bool is_text = (type == TYPE_ASCII || type == TYPE_UTF8) && place <= count && length <= count - place;
    if (is_text && (tag == TAG_ARTIST || tag == TAG_COPYRIGHT)) {
      ccodecs_bytes *kept = tag == TAG_ARTIST ? &decoder->artist : &decoder->copyright;
      has_room = ccodecs_decoder_keep_text(decoder, kept, bytes + place, length);
    }
  }
  return has_room;
}

/// Writes the directory entry of a text. A text that does not fit into the entry goes to block + *end.
static void write_text(uint8_t *block, uint8_t *entry, uint32_t tag, const ccodecs_bytes *text, size_t *end) {
  const size_t length = text->count + 1;
  ccodecs_put_le16(entry, tag);
  ccodecs_put_le16(entry + 2, TYPE_ASCII);
  ccodecs_put_le32(entry + 4, (uint32_t)length);
  const bool is_short = length <= 4;
  uint8_t *to = is_short ? entry + 8 : block + *end;
  if (!is_short) {
    ccodecs_put_le32(entry + 8, (uint32_t)*end);
    *end += length + (length & 1); // values start at even offsets
  }
  memcpy(to, ccodecs_bytes_start(text), text->count);
}

size_t ccodecs_decoder_trailing_metadata(const ccodecs_decoder *decoder, uint8_t block[CCODECS_MAX_COPYRIGHT_BYTES]) {
  const uint32_t entries = (decoder->artist.count > 0) + (decoder->copyright.count > 0);
  if (entries == 0) {
    return 0;
  }
  memset(block, 0, CCODECS_MAX_COPYRIGHT_BYTES);
  memcpy(block, "II*\0\x08\0\0\0", TIFF_HEADER_BYTES);
  ccodecs_put_le16(block + TIFF_HEADER_BYTES, entries);
  uint8_t *entry = block + TIFF_HEADER_BYTES + 2;
  size_t end = TIFF_HEADER_BYTES + 2 + entries * TIFF_ENTRY_BYTES + 4; // no directory follows
  if (decoder->artist.count > 0) {
    write_text(block, entry, TAG_ARTIST, &decoder->artist, &end);
    entry += TIFF_ENTRY_BYTES;
  }
  if (decoder->copyright.count > 0) {
    write_text(block, entry, TAG_COPYRIGHT, &decoder->copyright, &end);
  }
  return end;
}

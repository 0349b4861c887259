#include "decoder.h"

#include <string.h>

enum {
  TAG_ORIENTATION = 0x0112,
  TAG_ARTIST = 0x013B,
  TAG_XMP = 0x02BC,
  TAG_COPYRIGHT = 0x8298,
  TAG_IPTC = 0x83BB,
  TAG_EXIF_DIRECTORY = 0x8769,
  TAG_GPS_DIRECTORY = 0x8825,
  TAG_CREDENTIALS = 0xCD41, // of C2PA
  TAG_MP_ENTRIES = 0xB002,
  TYPE_ASCII = 2,
  TYPE_SHORT = 3,
  TYPE_LONG = 4,
  TYPE_DIRECTORY = 13, // of TIFF Supplement 1, as libtiff writes it
  TYPE_UTF8 = 129,     // Exif 3.0
  TIFF_HEADER_BYTES = 8,
  TIFF_ENTRY_BYTES = 12,
  MP_ENTRY_BYTES = 16,
  MP_CLASS_MULTI_FRAME = 2,
  MP_CLASS_PRIMARY = 3,
  MAX_COPIED_BLOCK = 65536,
  MAX_COPIED_VALUE = 4096,
  MAX_COPIED_ENTRIES = 500,
};

static uint32_t read16(const uint8_t *p, bool is_big) {
  return is_big ? ccodecs_be16(p) : ccodecs_le16(p);
}

static uint32_t read32(const uint8_t *p, bool is_big) {
  return is_big ? ccodecs_be32(p) : ccodecs_le32(p);
}

static void put16(uint8_t *p, uint32_t value, bool is_big) {
  p[is_big ? 0 : 1] = (uint8_t)(value >> 8);
  p[is_big ? 1 : 0] = (uint8_t)value;
}

static void put32(uint8_t *p, uint32_t value, bool is_big) {
  put16(p + (is_big ? 0 : 2), value >> 16, is_big);
  put16(p + (is_big ? 2 : 0), value, is_big);
}

/// A directory of a TIFF block, as far as the block contains it.
typedef struct tiff_directory {
  const uint8_t *entries;
  size_t count;
  bool is_whole;
  bool is_big; ///< Its numbers are big-endian.
} tiff_directory;

/// Returns whether bytes begin as a TIFF block does.
static bool is_block(const uint8_t *bytes, size_t count) {
  return count >= TIFF_HEADER_BYTES && (memcmp(bytes, "II*\0", 4) == 0 || memcmp(bytes, "MM\0*", 4) == 0);
}

/// Returns the directory at `at`; one that is not whole and has no entries if there is none.
static tiff_directory directory_at(const uint8_t *bytes, size_t count, size_t at) {
  const bool is_big = bytes[0] == 'M';
  if (at < TIFF_HEADER_BYTES || at > count || count - at < 2) {
    return (tiff_directory){0};
  }
  const size_t stated = read16(bytes + at, is_big);
  const size_t room = (count - at - 2) / TIFF_ENTRY_BYTES;
  return (tiff_directory){bytes + at + 2, stated < room ? stated : room, stated <= room, is_big};
}

/// Returns the first directory of a TIFF block; one that is not whole and has no entries if there is none.
static tiff_directory find_directory(const uint8_t *bytes, size_t count) {
  return is_block(bytes, count) ? directory_at(bytes, count, read32(bytes + 4, bytes[0] == 'M')) : (tiff_directory){0};
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

/// Stores Artist and Copyright from a directory of a TIFF block.
static bool keep_texts(ccodecs_decoder *decoder, const uint8_t *bytes, size_t count, tiff_directory directory) {
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

bool ccodecs_exif_keep_copyright(ccodecs_decoder *decoder, const uint8_t *bytes, size_t count) {
  return ccodecs_decoder_keep_block(decoder, &decoder->exif, bytes, count) &&
         keep_texts(decoder, bytes, count, find_directory(bytes, count));
}

// MARK: Metadata of TIFF files

/// A TIFF file, and a block with copies of its values.
typedef struct tiff_copy {
  const uint8_t *file;
  size_t file_count;
  uint8_t *block;
  size_t count; ///< Of the bytes in the block.
} tiff_copy;

/// Returns the value of a directory entry, in *count bytes; NULL if the file does not contain it.
static const uint8_t *find_value(const tiff_copy *c, const uint8_t *entry, size_t *count) {
  static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
  const bool is_big = c->file[0] == 'M';
  const uint32_t type = read16(entry + 2, is_big);
  const uint64_t size = type == TYPE_UTF8 ? 1 : type < sizeof sizes ? sizes[type] : 0;
  const uint64_t bytes = size * read32(entry + 4, is_big);
  const size_t place = bytes <= 4 ? (size_t)(entry - c->file) + 8 : read32(entry + 8, is_big);
  *count = (size_t)bytes;
  return bytes > 0 && place <= c->file_count && bytes <= c->file_count - place ? c->file + place : NULL;
}

static const uint8_t *find_entry(tiff_directory directory, uint32_t tag) {
  for (size_t i = 0; i < directory.count; i++) {
    const uint8_t *entry = directory.entries + i * TIFF_ENTRY_BYTES;
    if (read16(entry, directory.is_big) == tag) {
      return entry;
    }
  }
  return NULL;
}

/// Appends a copy of a directory, and of its values as far as they are short and the block has at most `limit` bytes.
/// Returns its place; 0 if there is no room for it.
static size_t copy_directory(tiff_copy *c, tiff_directory directory, size_t limit) {
  const size_t start = c->count;
  const size_t entry_count = directory.count < MAX_COPIED_ENTRIES ? directory.count : MAX_COPIED_ENTRIES;
  const size_t bytes = 2 + entry_count * TIFF_ENTRY_BYTES + 4; // no directory follows
  if (start > limit || limit - start < bytes) {
    return 0;
  }
  uint8_t *copies = c->block + start + 2;
  uint32_t kept = 0;
  c->count += bytes;
  memset(c->block + start, 0, bytes);
  for (size_t i = 0; i < entry_count; i++) {
    const uint8_t *entry = directory.entries + i * TIFF_ENTRY_BYTES;
    size_t count;
    const uint8_t *value = find_value(c, entry, &count);
    if (value == NULL || count > MAX_COPIED_VALUE || count > limit - c->count) {
      continue;
    }
    uint8_t *copy = copies + kept++ * TIFF_ENTRY_BYTES;
    memcpy(copy, entry, TIFF_ENTRY_BYTES);
    if (count > 4) {
      put32(copy + 8, (uint32_t)c->count, directory.is_big);
      memcpy(c->block + c->count, value, count);
      c->count += count;
    }
  }
  put16(c->block + start, kept, directory.is_big);
  return start;
}

/// Appends a copy of the directory to which `tag` of the copied first one refers.
static void copy_subdirectory(tiff_copy *c, uint32_t tag, size_t limit) {
  const bool is_big = c->file[0] == 'M';
  const uint8_t *found = find_entry(find_directory(c->block, c->count), tag);
  if (found == NULL) {
    return;
  }
  uint8_t *entry = c->block + (found - c->block);
  const uint32_t type = read16(entry + 2, is_big);
  const bool is_pointer = (type == TYPE_LONG || type == TYPE_DIRECTORY) && read32(entry + 4, is_big) == 1;
  const tiff_directory directory = directory_at(c->file, c->file_count, read32(entry + 8, is_big));
  const size_t place = is_pointer ? copy_directory(c, directory, limit) : 0;
  put16(entry + 2, place > 0 ? TYPE_LONG : 0, is_big); // 0 is the type of no value
  put32(entry + 8, (uint32_t)place, is_big);
}

/// Keeps XMP or IPTC, which a TIFF file stores in a tag.
static bool keep_tag(
    ccodecs_decoder *decoder, const tiff_copy *c, tiff_directory directory, uint32_t tag, ccodecs_bytes *kept) {
  size_t count = 0;
  const uint8_t *entry = find_entry(directory, tag);
  const uint8_t *value = entry == NULL ? NULL : find_value(c, entry, &count);
  return value == NULL || ccodecs_decoder_keep_block(decoder, kept, value, count);
}

bool ccodecs_exif_keep_tiff(ccodecs_decoder *decoder, const uint8_t *file, size_t count, uint64_t at) {
  if (!is_block(file, count) || at > count) {
    return true;
  }
  const tiff_directory directory = directory_at(file, count, (size_t)at);
  if (!keep_texts(decoder, file, count, directory)) {
    return false;
  }
  if (!decoder->limits.keeps_metadata) {
    return true;
  }
  tiff_copy copy = {.file = file, .file_count = count, .count = TIFF_HEADER_BYTES};
  copy.block = ccodecs_allocate(decoder->budget, MAX_COPIED_BLOCK);
  if (copy.block == NULL) {
    return false;
  }
  decoder->header.has_credentials = find_entry(directory, TAG_CREDENTIALS) != NULL;
  memcpy(copy.block, file, 4);
  put32(copy.block + 4, TIFF_HEADER_BYTES, directory.is_big);
  // Each leaves room for those that follow.
  copy_directory(&copy, directory, MAX_COPIED_BLOCK / 2);
  copy_subdirectory(&copy, TAG_EXIF_DIRECTORY, MAX_COPIED_BLOCK - MAX_COPIED_BLOCK / 8);
  copy_subdirectory(&copy, TAG_GPS_DIRECTORY, MAX_COPIED_BLOCK);
  const bool has_room = ccodecs_decoder_keep_block(decoder, &decoder->exif, copy.block, copy.count) &&
                        keep_tag(decoder, &copy, directory, TAG_XMP, &decoder->xmp) &&
                        keep_tag(decoder, &copy, directory, TAG_IPTC, &decoder->iptc);
  ccodecs_free(decoder->budget, copy.block);
  return has_room;
}

// MARK: Writing copyright metadata

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

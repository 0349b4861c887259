#include "decoder.h"

#include <string.h>

enum {
  TAG_ORIENTATION = 0x0112,
  TAG_ARTIST = 0x013B,
  TAG_COPYRIGHT = 0x8298,
  TAG_MP_ENTRIES = 0xB002,
  TIFF_HEADER_BYTES = 8,
  TIFF_ENTRY_BYTES = 12,
  MP_ENTRY_BYTES = 16,
  MP_CLASS_MULTI_FRAME = 2,
  MP_CLASS_PRIMARY = 3,
};

/// Returns the first directory of an EXIF block; one that is not whole and has no entries if there is none.
static ccodecs_tiff_directory find_directory(const ccodecs_tiff *block) {
  uint64_t at = 0;
  const bool is_block = block->count >= TIFF_HEADER_BYTES &&
                        (memcmp(block->bytes, "II*\0", 4) == 0 || memcmp(block->bytes, "MM\0*", 4) == 0);
  const bool has_directory = is_block && ccodecs_tiff_first_directory(block, &at) && at >= TIFF_HEADER_BYTES;
  return has_directory ? ccodecs_tiff_directory_at(block, at) : (ccodecs_tiff_directory){0};
}

uint8_t ccodecs_exif_orientation(const uint8_t *bytes, size_t count, bool *is_broken) {
  const ccodecs_tiff block = ccodecs_tiff_of(bytes, count);
  const ccodecs_tiff_directory directory = find_directory(&block);
  ccodecs_tiff_entry entry;
  if (!ccodecs_tiff_find(&block, &directory, TAG_ORIENTATION, &entry)) {
    *is_broken = !directory.is_whole;
    return 1;
  }
  uint64_t value = 0;
  // Some cameras write 0 for "unknown".
  *is_broken = entry.type != CCODECS_TIFF_SHORT || entry.count != 1 ||
               !ccodecs_tiff_number(&block, entry.place, 2, &value) || value > 8;
  return *is_broken || value == 0 ? 1 : (uint8_t)value;
}

// MARK: Multi-picture format

bool ccodecs_mpf_has_more_images(const uint8_t *bytes, size_t count) {
  const ccodecs_tiff block = ccodecs_tiff_of(bytes, count);
  const ccodecs_tiff_directory directory = find_directory(&block);
  ccodecs_tiff_entry entry;
  if (!ccodecs_tiff_find(&block, &directory, TAG_MP_ENTRIES, &entry)) {
    return false;
  }
  // The first is the image that was decoded.
  for (uint64_t i = 1; i < entry.count / MP_ENTRY_BYTES; i++) {
    uint64_t attributes;
    if (!ccodecs_tiff_number(&block, entry.place + i * MP_ENTRY_BYTES, 4, &attributes)) {
      return false;
    }
    const uint64_t class = attributes >> 16 & 0xFF;
    if (class == MP_CLASS_MULTI_FRAME || class == MP_CLASS_PRIMARY) {
      return true;
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

bool ccodecs_exif_keep_texts(
    ccodecs_decoder *decoder, const ccodecs_tiff *tiff, const ccodecs_tiff_directory *directory) {
  bool has_room = true;
  for (uint64_t i = 0; i < directory->count && has_room; i++) {
    const ccodecs_tiff_entry entry = ccodecs_tiff_entry_at(tiff, directory, i);
    size_t count;
    const bool is_text = entry.type == CCODECS_TIFF_ASCII || entry.type == CCODECS_TIFF_UTF8;
    const uint8_t *text = is_text ? ccodecs_tiff_values(tiff, &entry, &count) : NULL;
    if (text != NULL && (entry.tag == TAG_ARTIST || entry.tag == TAG_COPYRIGHT)) {
      ccodecs_bytes *kept = entry.tag == TAG_ARTIST ? &decoder->artist : &decoder->copyright;
      has_room = ccodecs_decoder_keep_text(decoder, kept, text, count);
    }
  }
  return has_room;
}

bool ccodecs_exif_keep_copyright(ccodecs_decoder *decoder, const uint8_t *bytes, size_t count) {
  const ccodecs_tiff block = ccodecs_tiff_of(bytes, count);
  const ccodecs_tiff_directory directory = find_directory(&block);
  return ccodecs_decoder_keep_block(decoder, &decoder->exif, bytes, count) &&
         ccodecs_exif_keep_texts(decoder, &block, &directory);
}

// MARK: Writing copyright metadata

/// Writes the directory entry of a text. A text that does not fit into the entry goes to block + *end.
static void write_text(uint8_t *block, uint8_t *entry, uint32_t tag, const ccodecs_bytes *text, size_t *end) {
  const size_t length = text->count + 1;
  ccodecs_put_le16(entry, tag);
  ccodecs_put_le16(entry + 2, CCODECS_TIFF_ASCII);
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

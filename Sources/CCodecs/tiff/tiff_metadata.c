#include "tiff_decoder.h"

#ifdef CCODECS_TIFF

enum {
  TAG_CREDENTIALS = 0xCD41, // of C2PA
  TYPE_NONE = 0,            // of an entry without a value
  HEADER_BYTES = 8,
  ENTRY_BYTES = 12,
  MAX_BLOCK = 65536,
  MAX_VALUE = 4096,
  MAX_ENTRIES = 500,
};

/// A classic TIFF block with copies of a file's directories, in its byte order.
typedef struct tiff_copy {
  ccodecs_tiff file;
  uint8_t *block;
  size_t count; ///< Of the bytes in the block.
} tiff_copy;

static void put16(const tiff_copy *c, uint8_t *p, uint32_t value) {
  p[c->file.is_big_endian ? 0 : 1] = (uint8_t)(value >> 8);
  p[c->file.is_big_endian ? 1 : 0] = (uint8_t)value;
}

static void put32(const tiff_copy *c, uint8_t *p, uint32_t value) {
  put16(c, p + (c->file.is_big_endian ? 0 : 2), value >> 16);
  put16(c, p + (c->file.is_big_endian ? 2 : 0), value);
}

static void put_entry(const tiff_copy *c, uint8_t *entry, uint32_t tag, uint32_t type, uint64_t count) {
  put16(c, entry, tag);
  put16(c, entry + 2, type);
  put32(c, entry + 4, (uint32_t)count);
}

/// Appends a copy of a directory, and of its values as far as they are short and the block has at most `limit` bytes.
/// Returns its place; 0 if there is no room for it.
static size_t copy_directory(tiff_copy *c, const ccodecs_tiff_directory *directory, size_t limit) {
  const size_t start = c->count;
  const size_t entry_count = directory->count < MAX_ENTRIES ? (size_t)directory->count : MAX_ENTRIES;
  const size_t bytes = 2 + entry_count * ENTRY_BYTES + 4; // no directory follows
  if (start > limit || limit - start < bytes) {
    return 0;
  }
  uint8_t *copies = c->block + start + 2;
  uint32_t kept = 0;
  c->count += bytes;
  memset(c->block + start, 0, bytes);
  for (size_t i = 0; i < entry_count; i++) {
    const ccodecs_tiff_entry entry = ccodecs_tiff_entry_at(&c->file, directory, i);
    if (entry.tag == TIFFTAG_EXIFIFD || entry.tag == TIFFTAG_GPSIFD) {
      put_entry(c, copies + kept++ * ENTRY_BYTES, entry.tag, TYPE_NONE, 1);
      continue;
    }
    size_t count;
    const uint8_t *values = ccodecs_tiff_values(&c->file, &entry, &count);
    const bool is_classic = entry.type <= TIFF_IFD || entry.type == CCODECS_TIFF_UTF8;
    if (values == NULL || !is_classic || count > MAX_VALUE || count > limit - c->count) {
      continue;
    }
    uint8_t *copy = copies + kept++ * ENTRY_BYTES;
    put_entry(c, copy, entry.tag, entry.type, entry.count);
    if (count <= 4) {
      memcpy(copy + 8, values, count);
    } else {
      put32(c, copy + 8, (uint32_t)c->count);
      memcpy(c->block + c->count, values, count);
      c->count += count;
    }
  }
  put16(c, c->block + start, kept);
  return start;
}

/// Appends a copy of the directory to which `tag` of the file's directory refers, and refers to it in the copied one.
static void copy_subdirectory(tiff_copy *c, const ccodecs_tiff_directory *directory, uint32_t tag, size_t limit) {
  const ccodecs_tiff block = ccodecs_tiff_of(c->block, c->count);
  const ccodecs_tiff_directory copied = ccodecs_tiff_directory_at(&block, HEADER_BYTES);
  ccodecs_tiff_entry entry;
  ccodecs_tiff_entry copy;
  uint64_t at = 0;
  if (!ccodecs_tiff_find(&c->file, directory, tag, &entry) || !ccodecs_tiff_find(&block, &copied, tag, &copy)) {
    return;
  }
  const bool is_long = entry.type == TIFF_LONG || entry.type == TIFF_IFD;
  const bool is_pointer = is_long || entry.type == TIFF_LONG8 || entry.type == TIFF_IFD8;
  if (!is_pointer || entry.count != 1 || !ccodecs_tiff_number(&c->file, entry.place, is_long ? 4 : 8, &at)) {
    return;
  }
  const ccodecs_tiff_directory found = ccodecs_tiff_directory_at(&c->file, at);
  const size_t place = copy_directory(c, &found, limit);
  if (place > 0) {
    put_entry(c, c->block + copy.at, tag, TIFF_LONG, 1);
    put32(c, c->block + copy.at + 8, (uint32_t)place);
  }
}

/// Keeps XMP or IPTC, which a TIFF file stores in a tag.
static bool keep_tag(
    tiff_decoder *d, const ccodecs_tiff *file, const ccodecs_tiff_directory *directory, uint32_t tag,
    ccodecs_bytes *kept) {
  ccodecs_tiff_entry entry;
  size_t count = 0;
  const bool is_there = ccodecs_tiff_find(file, directory, tag, &entry);
  const uint8_t *values = is_there ? ccodecs_tiff_values(file, &entry, &count) : NULL;
  return values == NULL || ccodecs_decoder_keep_block(&d->base, kept, values, count);
}

bool ccodecs_tiff_keep_metadata(tiff_decoder *d) {
  ccodecs_decoder *decoder = &d->base;
  const ccodecs_tiff file = ccodecs_tiff_of(ccodecs_bytes_start(&d->file.bytes), d->file.bytes.count);
  const ccodecs_tiff_directory directory = ccodecs_tiff_directory_at(&file, TIFFCurrentDirOffset(d->tiff));
  if (!ccodecs_exif_keep_texts(decoder, &file, &directory)) {
    return false;
  }
  if (!decoder->limits.keeps_metadata) {
    return true;
  }
  tiff_copy copy = {.file = file, .count = HEADER_BYTES};
  copy.block = ccodecs_allocate(decoder->budget, MAX_BLOCK);
  if (copy.block == NULL) {
    return false;
  }
  ccodecs_tiff_entry credentials;
  decoder->header.has_credentials = ccodecs_tiff_find(&file, &directory, TAG_CREDENTIALS, &credentials);
  memcpy(copy.block, file.is_big_endian ? "MM\0*" : "II*\0", 4);
  put32(&copy, copy.block + 4, HEADER_BYTES);
  // Each leaves room for those that follow.
  copy_directory(&copy, &directory, MAX_BLOCK / 2);
  copy_subdirectory(&copy, &directory, TIFFTAG_EXIFIFD, MAX_BLOCK - MAX_BLOCK / 8);
  copy_subdirectory(&copy, &directory, TIFFTAG_GPSIFD, MAX_BLOCK);
  const bool has_room = ccodecs_decoder_keep_block(decoder, &decoder->exif, copy.block, copy.count) &&
                        keep_tag(d, &file, &directory, TIFFTAG_XMLPACKET, &decoder->xmp) &&
                        keep_tag(d, &file, &directory, TIFFTAG_RICHTIFFIPTC, &decoder->iptc);
  ccodecs_free(decoder->budget, copy.block);
  return has_room;
}

#endif

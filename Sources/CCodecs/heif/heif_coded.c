// The largest frame that the bitstreams in an HEIC or AVIF file announce.
//
// What an item's properties say of its size binds neither AV1 nor HEVC: their decoders allocate what the bitstream's
// own sequence header asks for. So those are read here, at the beginning of every item and in the configuration boxes,
// for a file that claims a small picture and holds a large one. Of the rest, only AV1 pictures are told whose data is
// not all there: libheif gives libdav1d none then, which prints and leaks. Sources: ISO/IEC 14496-12 (boxes), 14496-15
// (hvcC), 23008-12; AV1 bitstream specification 5.5; ITU-T H.265 7.3.2.2.

#include "heif_coded.h"

#include "../memory/bytes.h"

/// Of an item whose data lies in pieces, as much as this is put together.
enum { JOINED_BYTES = 1024, MOST_UNITS = 32, MOST_DEPTH = 6, MOST_EMPTY = 16 };

typedef struct bits {
  const uint8_t *bytes;
  uint64_t count; ///< In bits.
  uint64_t at;    ///< Beyond `count` once they ran out: then zeros are read.
} bits;

typedef struct finder {
  const uint8_t *file;
  size_t count;
  bool is_av1;
  const uint8_t *data; ///< The body of the box `idat`.
  size_t data_count;
  uint64_t pixels;            ///< Of the largest frame found.
  uint64_t empty[MOST_EMPTY]; ///< Items without data, or not all of it.
  uint32_t empty_count;
  bool lacks_data; ///< One of them is a picture.
} finder;

// MARK: Bits

static uint32_t read_bits(bits *b, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < count; i++, b->at++) {
    const uint32_t bit = b->at < b->count ? b->bytes[b->at / 8] >> (7 - b->at % 8) & 1 : 0;
    value = value << 1 | bit;
  }
  return value;
}

/// Exponential Golomb code of AV1 (uvlc) and HEVC (ue).
static uint32_t read_golomb(bits *b) {
  uint32_t zeros = 0;
  while (zeros < 32 && b->at < b->count && read_bits(b, 1) == 0) {
    zeros++;
  }
  return zeros >= 32 ? UINT32_MAX : (1u << zeros) - 1 + read_bits(b, zeros);
}

static void note_size(finder *f, const bits *b, uint64_t width, uint64_t height) {
  if (b->at <= b->count && width > 0 && height > 0 && width <= UINT32_MAX && height <= UINT32_MAX) {
    f->pixels = width * height > f->pixels ? width * height : f->pixels;
  }
}

// MARK: AV1

static void read_operating_points(bits *b, bool has_model, uint32_t delay_bits) {
  const bool has_delay = read_bits(b, 1) != 0;
  const uint32_t count = read_bits(b, 5) + 1;
  for (uint32_t i = 0; i < count; i++) {
    read_bits(b, 12);
    if (read_bits(b, 5) > 7) {
      read_bits(b, 1);
    }
    if (has_model && read_bits(b, 1) != 0) {
      read_bits(b, delay_bits);
      read_bits(b, delay_bits);
      read_bits(b, 1);
    }
    if (has_delay && read_bits(b, 1) != 0) {
      read_bits(b, 4);
    }
  }
}

static void read_sequence_header(finder *f, bits b) {
  read_bits(&b, 4);
  if (read_bits(&b, 1) != 0) { // reduced_still_picture_header
    read_bits(&b, 5);
  } else {
    bool has_model = false;
    uint32_t delay_bits = 0;
    if (read_bits(&b, 1) != 0) { // timing_info_present_flag
      read_bits(&b, 32);
      read_bits(&b, 32);
      if (read_bits(&b, 1) != 0) {
        read_golomb(&b);
      }
      has_model = read_bits(&b, 1) != 0;
      if (has_model) {
        delay_bits = read_bits(&b, 5) + 1;
        read_bits(&b, 32);
        read_bits(&b, 10);
      }
    }
    read_operating_points(&b, has_model, delay_bits);
  }
  const uint32_t width_bits = read_bits(&b, 4) + 1;
  const uint32_t height_bits = read_bits(&b, 4) + 1;
  const uint64_t width = (uint64_t)read_bits(&b, width_bits) + 1;
  const uint64_t height = (uint64_t)read_bits(&b, height_bits) + 1;
  note_size(f, &b, width, height);
}

/// Open bitstream units, the sequence header among them.
static void read_av1(finder *f, const uint8_t *bytes, size_t count) {
  size_t at = 0;
  for (int unit = 0; unit < MOST_UNITS && count - at >= 2; unit++) {
    const uint8_t head = bytes[at++];
    at += (head & 4) != 0 ? 1 : 0;
    uint64_t size = 0;
    uint8_t byte = 0x80;
    for (int i = 0; i < 8 && (byte & 0x80) != 0 && at < count; i++) {
      byte = bytes[at++];
      size |= (uint64_t)(byte & 0x7F) << (7 * i);
    }
    if (at > count || (head & 0x82) != 2) { // forbidden bit, or without a size
      return;
    }
    const size_t body = size < count - at ? (size_t)size : count - at;
    if ((head >> 3 & 15) == 1) {
      read_sequence_header(f, (bits){.bytes = bytes + at, .count = (uint64_t)body * 8});
    }
    at += body;
  }
}

// MARK: HEVC

static void read_parameter_set(finder *f, const uint8_t *unit, size_t count) {
  uint8_t clean[256]; // without the bytes that keep start codes from appearing
  size_t length = 0;
  int zeros = 0;
  for (size_t i = 2; i < count && length < sizeof clean; i++) {
    if (zeros >= 2 && unit[i] == 3) {
      zeros = 0;
      continue;
    }
    zeros = unit[i] == 0 ? zeros + 1 : 0;
    clean[length++] = unit[i];
  }
  bits b = {.bytes = clean, .count = (uint64_t)length * 8};
  read_bits(&b, 4);
  const uint32_t layers = read_bits(&b, 3);
  read_bits(&b, 1);
  b.at += 96;
  const uint32_t present = layers > 0 ? read_bits(&b, 16) : 0;
  for (uint32_t i = 0; i < layers; i++) {
    b.at += (present >> (15 - 2 * i) & 1) != 0 ? 88 : 0;
    b.at += (present >> (14 - 2 * i) & 1) != 0 ? 8 : 0;
  }
  read_golomb(&b);
  if (read_golomb(&b) == 3) {
    read_bits(&b, 1);
  }
  const uint64_t width = read_golomb(&b);
  const uint64_t height = read_golomb(&b);
  note_size(f, &b, width, height);
}

/// Units, each behind its length.
static void read_hevc(finder *f, const uint8_t *bytes, size_t count, size_t length_bytes) {
  size_t at = 0;
  for (int unit = 0; unit < MOST_UNITS && count - at > length_bytes; unit++) {
    const uint64_t size = length_bytes == 2 ? (uint64_t)bytes[at] << 8 | bytes[at + 1] : ccodecs_be32(bytes + at);
    at += length_bytes;
    const size_t body = size < count - at ? (size_t)size : count - at;
    if (body > 2 && (bytes[at] >> 1 & 63) == 33) {
      read_parameter_set(f, bytes + at, body);
    }
    at += body;
  }
}

static void read_bitstream(finder *f, const uint8_t *bytes, size_t count) {
  if (f->is_av1) {
    read_av1(f, bytes, count);
  } else {
    read_hevc(f, bytes, count, 4);
  }
}

/// The configuration box of HEVC: after 22 bytes, arrays of units.
static void read_hvcc(finder *f, const uint8_t *bytes, size_t count) {
  size_t at = 23;
  for (uint32_t i = 0; count >= 23 && i < bytes[22] && at + 3 <= count; i++) {
    const uint32_t units = (uint32_t)bytes[at + 1] << 8 | bytes[at + 2];
    at += 3;
    for (uint32_t unit = 0; unit < units && at + 2 <= count; unit++) {
      const size_t size = (size_t)bytes[at] << 8 | bytes[at + 1];
      const size_t body = size < count - at - 2 ? size : count - at - 2;
      read_hevc(f, bytes + at, body + 2, 2);
      at += 2 + body;
    }
  }
}

// MARK: Boxes

/// A number of 0, 2, 4 or 8 bytes; the place moves on. False beyond the end.
static bool take_number(const uint8_t *bytes, size_t count, size_t *at, uint32_t size, uint64_t *value) {
  *value = 0;
  if (size > count - *at) {
    return false;
  }
  for (uint32_t i = 0; i < size; i++) {
    *value = *value << 8 | bytes[(*at)++];
  }
  return true;
}

/// Looks at the beginning of an item, put together from its pieces.
static bool read_item(
    finder *f, const uint8_t *bytes, size_t count, size_t *at, const uint32_t sizes[4], uint32_t method, uint64_t base,
    uint32_t pieces, bool *is_there) {
  const uint8_t *source = method == 1 ? f->data : f->file;
  const size_t source_count = method == 1 ? f->data_count : f->count;
  uint8_t joined[JOINED_BYTES];
  size_t length = 0;
  bool is_whole = method <= 1;
  for (uint32_t i = 0; i < pieces; i++) {
    uint64_t index;
    uint64_t offset;
    uint64_t size;
    if (!take_number(bytes, count, at, sizes[3], &index) || !take_number(bytes, count, at, sizes[0], &offset) ||
        !take_number(bytes, count, at, sizes[1], &size)) {
      return false;
    }
    if (source == NULL || method > 1 || offset > source_count || base > source_count - offset) {
      is_whole = false;
      continue;
    }
    const size_t first = (size_t)(offset + base);
    const size_t left = source_count - first;
    const size_t whole = size > left ? left : (size_t)size; // a length of 0 is that to libheif, not the whole file
    if (i == 0 && pieces == 1) {
      read_bitstream(f, source + first, whole);
    }
    const size_t part = whole < JOINED_BYTES - length ? whole : JOINED_BYTES - length;
    memcpy(joined + length, source + first, part);
    length += part;
    is_whole = is_whole && size <= left;
  }
  if (pieces > 1) {
    read_bitstream(f, joined, length);
  }
  *is_there = is_whole && length > 0;
  return true;
}

/// Whether a field of the item location box may have this size, in bytes.
static bool is_field_size(uint32_t size) {
  return size == 0 || size == 4 || size == 8;
}

/// The item location box. False when it is not well formed.
static bool read_iloc(finder *f, const uint8_t *bytes, size_t count) {
  if (count < 8) {
    return false;
  }
  const uint32_t version = bytes[0];
  const uint32_t wide = version == 2 ? 4 : 2;
  const uint32_t sizes[4] = {
      bytes[4] >> 4, bytes[4] & 15, bytes[5] >> 4, version > 0 ? bytes[5] & 15u : 0}; // offset, length, base, index
  size_t at = 6;
  uint64_t items;
  if (version > 2 || !is_field_size(sizes[0]) || !is_field_size(sizes[1]) || !is_field_size(sizes[2]) ||
      !is_field_size(sizes[3]) || !take_number(bytes, count, &at, wide, &items)) {
    return false;
  }
  for (uint64_t i = 0; i < items; i++) {
    uint64_t identifier;
    uint64_t method = 0;
    uint64_t reference;
    uint64_t base;
    uint64_t pieces;
    bool is_there = false;
    if (!take_number(bytes, count, &at, wide, &identifier) ||
        (version > 0 && !take_number(bytes, count, &at, 2, &method)) ||
        !take_number(bytes, count, &at, 2, &reference) || !take_number(bytes, count, &at, sizes[2], &base) ||
        !take_number(bytes, count, &at, 2, &pieces) ||
        !read_item(f, bytes, count, &at, sizes, (uint32_t)method & 15, base, (uint32_t)pieces, &is_there)) {
      return false;
    }
    if (!is_there && (method & 15) <= 1) {
      f->lacks_data = f->lacks_data || f->empty_count == MOST_EMPTY;
      f->empty[f->empty_count % MOST_EMPTY] = identifier;
      f->empty_count += f->empty_count < MOST_EMPTY ? 1 : 0;
    }
  }
  return true;
}

/// An item's entry: whether it is a picture that is coded, and one of those without data.
static void read_infe(finder *f, const uint8_t *bytes, size_t count) {
  size_t at = 4;
  uint64_t identifier;
  if (count < 4 || bytes[0] < 2 || !take_number(bytes, count, &at, bytes[0] == 2 ? 2 : 4, &identifier) ||
      count - at < 6 || memcmp(bytes + at + 2, "av01", 4) != 0) {
    return;
  }
  for (uint32_t i = 0; i < f->empty_count; i++) {
    f->lacks_data = f->lacks_data || f->empty[i] == identifier;
  }
}

typedef enum pass { PASS_DATA, PASS_ITEMS, PASS_ENTRIES } pass;

static void read_boxes(finder *f, const uint8_t *bytes, size_t count, pass wanted, int depth) {
  size_t at = 0;
  while (count - at >= 8) {
    const size_t left = count - at;
    uint64_t size = ccodecs_be32(bytes + at);
    size_t head = 8;
    if (size == 1 && left >= 16) {
      size = (uint64_t)ccodecs_be32(bytes + at + 8) << 32 | ccodecs_be32(bytes + at + 12);
      head = 16;
    }
    size = size == 0 || size > left ? left : size;
    if (size < head) {
      return;
    }
    const uint8_t *type = bytes + at + 4;
    const uint8_t *body = bytes + at + head;
    const size_t body_count = (size_t)size - head;
    const bool is_meta = memcmp(type, "meta", 4) == 0 && body_count >= 4;
    const bool is_list = memcmp(type, "iinf", 4) == 0 && body_count >= 8;
    if (is_meta || is_list || memcmp(type, "iprp", 4) == 0 || memcmp(type, "ipco", 4) == 0) {
      const size_t skipped = is_meta ? 4 : is_list ? (body[0] == 0 ? 6 : 8) : 0;
      if (depth < MOST_DEPTH) {
        read_boxes(f, body + skipped, body_count - skipped, wanted, depth + 1);
      }
    } else if (wanted == PASS_DATA && memcmp(type, "idat", 4) == 0) {
      f->data = body;
      f->data_count = body_count;
    } else if (wanted == PASS_ENTRIES && memcmp(type, "infe", 4) == 0) {
      read_infe(f, body, body_count);
    } else if (wanted == PASS_ITEMS && memcmp(type, "iloc", 4) == 0) {
      f->lacks_data = !read_iloc(f, body, body_count) || f->lacks_data;
    } else if (wanted == PASS_ITEMS && memcmp(type, "hvcC", 4) == 0) {
      read_hvcc(f, body, body_count);
    } else if (wanted == PASS_ITEMS && memcmp(type, "av1C", 4) == 0 && body_count > 4) {
      read_av1(f, body + 4, body_count - 4);
    }
    at += (size_t)size;
  }
}

bool ccodecs_heif_coded_pixels(const uint8_t *bytes, size_t count, bool is_av1, uint64_t *pixels) {
  finder f = {.file = bytes, .count = count, .is_av1 = is_av1};
  read_boxes(&f, bytes, count, PASS_DATA, 0);
  read_boxes(&f, bytes, count, PASS_ITEMS, 0);
  read_boxes(&f, bytes, count, PASS_ENTRIES, 0);
  *pixels = f.pixels;
  return !f.lacks_data;
}

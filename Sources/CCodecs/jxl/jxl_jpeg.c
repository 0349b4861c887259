// Reads the fields of a JPEG bitstream reconstruction box. Sources: ISO/IEC 18181-2, annex A;
// RFC 7932, section 9.1 (the size of Brotli's window).

#include "jxl_jpeg.h"

#include "jxl_bits.h"

#include <string.h>

enum {
  MAX_MARKERS = 16384,
  HUFFMAN_TABLE_BYTES = 1280, ///< libjxl's structure, rounded up, as are the following two.
  SCAN_BYTES = 256,
  SEGMENT_BYTES = 64,
  EXIF_HEAD = 3 + 6, ///< Marker code, length and name in front of a segment's TIFF block.
  XMP_HEAD = 3 + 29,
  TIFF_OFFSET = 4, ///< Precedes the TIFF block in an Exif box.
};

typedef enum segment_type {
  SEGMENT_STORED = 0,
  SEGMENT_ICC = 1,
  SEGMENT_EXIF = 2,
  SEGMENT_XMP = 3,
} segment_type;

/// The numbers of markers, of which some have further fields.
typedef struct markers {
  uint32_t count; ///< Of all markers.
  uint32_t application;
  uint32_t comment;
  uint32_t scan;
  uint32_t other; ///< Bytes between markers.
  bool has_restarts;
} markers;

static const jxl_forms one_to_four = {{0, 0, 0, 0}, {1, 2, 3, 4}};

static bool has_ended(const jxl_bits *r) {
  return r->at > r->count;
}

static bool read_markers(jxl_bits *r, markers *m) {
  enum { DRI = 0xDD, EOI = 0xD9, SOS = 0xDA, COM = 0xFE, BETWEEN = 0xFF };
  uint32_t marker = 0;
  for (uint32_t i = 0; marker != EOI; i++) {
    if (i == MAX_MARKERS || has_ended(r)) {
      return false;
    }
    marker = 0xC0 + jxl_read_bits(r, 6);
    m->count++;
    m->application += (marker & 0xF0) == 0xE0;
    m->comment += marker == COM;
    m->scan += marker == SOS;
    m->other += marker == BETWEEN;
    m->has_restarts = m->has_restarts || marker == DRI;
  }
  return m->scan > 0;
}

/// Reads the size of a segment, with the second byte of its marker. Returns 0 for one that is too small.
static uint32_t read_segment(jxl_bits *r, jxl_jpeg *jpeg) {
  const uint32_t count = jxl_read_bits(r, 16) + 1;
  jpeg->other_bytes += count + 1;
  return count < 3 ? 0 : count;
}

static bool read_segments(jxl_bits *r, const markers *m, jxl_jpeg *jpeg) {
  static const jxl_forms types = {{0, 0, 1, 2}, {0, 1, 2, 4}};
  for (uint32_t i = 0; i < m->application; i++) {
    const uint32_t type = jxl_read_number(r, &types);
    const uint32_t count = read_segment(r, jpeg);
    if (count == 0 || type > SEGMENT_XMP || (type == SEGMENT_EXIF && (jpeg->exif_bytes > 0 || count <= EXIF_HEAD)) ||
        (type == SEGMENT_XMP && (jpeg->xmp_bytes > 0 || count <= XMP_HEAD))) {
      return false;
    }
    jpeg->exif_bytes = type == SEGMENT_EXIF ? count - EXIF_HEAD + TIFF_OFFSET : jpeg->exif_bytes;
    jpeg->xmp_bytes = type == SEGMENT_XMP ? count - XMP_HEAD : jpeg->xmp_bytes;
  }
  for (uint32_t i = 0; i < m->comment; i++) {
    if (read_segment(r, jpeg) == 0) {
      return false;
    }
  }
  return !has_ended(r);
}

/// Reads which tables the components have.
static bool read_components(jxl_bits *r, bool is_gray) {
  enum { GRAY = 0, CUSTOM = 3 };
  const uint32_t table_count = jxl_read_number(r, &one_to_four);
  jxl_read_bits(r, 4 * table_count);
  const uint32_t type = jxl_read_bits(r, 2);
  uint32_t count = type == GRAY ? 1 : 3;
  if (type == CUSTOM) {
    count = jxl_read_number(r, &one_to_four);
    jxl_read_bits(r, count <= 3 ? 8 * count : 0);
  }
  jxl_read_bits(r, count <= 3 ? 2 * count : 0);
  return table_count < 4 && count == (is_gray ? 1 : 3);
}

static bool read_codes(jxl_bits *r, jxl_jpeg *jpeg) {
  static const jxl_forms tables = {{0, 3, 4, 6}, {4, 2, 10, 26}};
  static const jxl_forms counts = {{0, 0, 3, 8}, {0, 1, 2, 0}};
  static const jxl_forms symbols = {{2, 2, 4, 8}, {0, 4, 8, 1}};
  const uint32_t table_count = jxl_read_number(r, &tables);
  jpeg->library_bytes += table_count * HUFFMAN_TABLE_BYTES;
  for (uint32_t i = 0; i < table_count; i++) {
    jxl_read_bits(r, 4); // class, slot, and whether it ends its segment
    uint32_t symbol_count = 0;
    for (uint32_t length = 0; length <= 16; length++) {
      symbol_count += jxl_read_number(r, &counts);
    }
    if (symbol_count > 257 || has_ended(r)) {
      return false;
    }
    jpeg->other_bytes += symbol_count + 21;
    for (uint32_t symbol = 0; symbol < symbol_count; symbol++) {
      jxl_read_number(r, &symbols);
    }
  }
  return true;
}

static bool read_scans(jxl_bits *r, jxl_jpeg *jpeg) {
  static const jxl_forms passes = {{0, 0, 0, 3}, {0, 1, 2, 3}};
  for (uint32_t i = 0; i < jpeg->scan_count; i++) {
    const uint32_t component_count = jxl_read_number(r, &one_to_four);
    jxl_read_bits(r, 20); // the band and the bits
    for (uint32_t c = 0; c < component_count; c++) {
      jxl_read_bits(r, 6); // its index and tables
    }
    jxl_read_number(r, &passes);
    if (component_count > 3 || has_ended(r)) {
      return false;
    }
  }
  jpeg->library_bytes += (uint64_t)jpeg->scan_count * SCAN_BYTES;
  return true;
}

/// Reads at which blocks a scan's code differs from the usual one, each of which takes `byte_count` bytes.
static bool read_exceptions(jxl_bits *r, jxl_jpeg *jpeg, bool has_runs, uint32_t byte_count) {
  static const jxl_forms counts = {{0, 2, 4, 16}, {0, 1, 4, 20}};
  static const jxl_forms runs = {{0, 2, 4, 8}, {1, 2, 5, 20}};
  static const jxl_forms blocks = {{0, 3, 5, 28}, {0, 1, 9, 41}};
  const uint32_t count = jxl_read_number(r, &counts);
  for (uint32_t i = 0; i < count && !has_ended(r); i++) {
    if (has_runs) {
      // Each of up to 275 symbols has up to 16 bits, and zeros may be inserted.
      jpeg->other_bytes += (uint64_t)jxl_read_number(r, &runs) * 4;
    }
    jxl_read_number(r, &blocks);
  }
  jpeg->library_bytes += (uint64_t)count * byte_count;
  return !has_ended(r);
}

/// Reads what follows the scans' fields.
static bool read_rest(jxl_bits *r, const markers *m, jxl_jpeg *jpeg) {
  static const jxl_forms tails = {{0, 8, 16, 22}, {0, 1, 257, 65793}};
  for (uint32_t i = 0; i < m->other; i++) {
    jpeg->other_bytes += jxl_read_bits(r, 16);
  }
  jpeg->other_bytes += jxl_read_number(r, &tails);
  const uint32_t padding_count = jxl_read_bool(r) ? jxl_read_bits(r, 24) : 0;
  r->at += padding_count;
  jpeg->library_bytes += 2 * (uint64_t)padding_count; // a byte for each bit, in a block that grows
  return !has_ended(r);
}

uint64_t ccodecs_jxl_brotli_bytes(uint8_t first) {
  static const uint64_t table_bytes = (uint64_t)2 << 20;
  const uint32_t small = first >> 4 & 7;
  const uint32_t large = first >> 1 & 7;
  const uint32_t window_bits = (first & 1) == 0 ? 16 : large > 0 ? 17 + large : small < 2 ? 17 : 8 + small;
  return table_bytes + ((uint64_t)2 << window_bits); // the window's block may grow
}

bool ccodecs_jxl_jpeg_read(const uint8_t *bytes, size_t count, jxl_jpeg *jpeg) {
  enum { RESET_POINT_BYTES = 4, ZERO_RUN_BYTES = 8 };
  jxl_bits r = {.bytes = bytes, .count = (uint64_t)count * 8};
  markers m = {0};
  memset(jpeg, 0, sizeof *jpeg);
  const bool is_gray = jxl_read_bool(&r);
  if (!read_markers(&r, &m)) {
    return false;
  }
  jpeg->scan_count = m.scan;
  bool is_valid =
      read_segments(&r, &m, jpeg) && read_components(&r, is_gray) && read_codes(&r, jpeg) && read_scans(&r, jpeg);
  jxl_read_bits(&r, m.has_restarts ? 16 : 0);
  for (uint32_t i = 0; i < m.scan && is_valid; i++) {
    is_valid = read_exceptions(&r, jpeg, false, RESET_POINT_BYTES) && read_exceptions(&r, jpeg, true, ZERO_RUN_BYTES);
  }
  is_valid = is_valid && read_rest(&r, &m, jpeg);
  const uint64_t segments = (uint64_t)m.count * SEGMENT_BYTES;
  const uint64_t end = (r.at + 7) / 8;
  const uint64_t brotli = is_valid && end < count ? ccodecs_jxl_brotli_bytes(bytes[end]) : 0;
  jpeg->library_bytes += segments + jpeg->other_bytes + brotli;
  jpeg->other_bytes += 1024 + segments; // tables, and the heads of frame and scans
  return is_valid;
}

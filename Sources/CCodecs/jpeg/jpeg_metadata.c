// Sources: CIPA DC-008 (Exif 2.32), section 4.5.4; ICC.1:2022, annex B.4 (profiles in JPEG); XMP Specification part 3,
// section 1.1.3 (XMP, and IPTC as an image resource of Photoshop).

#include "jpeg_metadata.h"

#include "jpeg_codes.h"

enum {
  MARKER_BYTES = 4, ///< The marker and the length, which counts itself.
  LENGTH_BYTES = 2,
  MAX_BODY_BYTES = 65535 - LENGTH_BYTES,
};

static const char exif_name[6] = "Exif\0";
static const char icc_name[12] = "ICC_PROFILE";
static const char xmp_name[29] = "http://ns.adobe.com/xap/1.0/";
/// Photoshop's name, and a resource of kind 0x0404 without a name. Its size in four bytes follows.
static const char iptc_name[22] = "Photoshop 3.0\0"
                                  "8BIM\x04\x04\0";
/// Behind the name of a piece of a profile: its number and the number of pieces.
static const size_t icc_prefix = sizeof icc_name + 2;

static size_t icc_piece_bytes(void) {
  return MAX_BODY_BYTES - icc_prefix;
}

static size_t icc_pieces(const ccodecs_metadata *metadata) {
  return (metadata->icc_count + icc_piece_bytes() - 1) / icc_piece_bytes();
}

size_t ccodecs_jpeg_metadata_bytes(const ccodecs_metadata *metadata) {
  const size_t exif = metadata->exif_count > 0 ? MARKER_BYTES + sizeof exif_name + metadata->exif_count : 0;
  const size_t xmp = metadata->xmp_count > 0 ? MARKER_BYTES + sizeof xmp_name + metadata->xmp_count : 0;
  const size_t iptc = metadata->iptc_count > 0 ? MARKER_BYTES + sizeof iptc_name + 4 + metadata->iptc_count + 1 : 0;
  return exif + xmp + iptc + icc_pieces(metadata) * (MARKER_BYTES + icc_prefix) + metadata->icc_count;
}

/// Appends a marker and the length of a segment whose body has `count` bytes.
static bool append_marker(uint8_t marker, size_t count, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  const size_t length = LENGTH_BYTES + count;
  const uint8_t head[MARKER_BYTES] = {0xFF, marker, (uint8_t)(length >> 8), (uint8_t)length};
  return ccodecs_bytes_append(bytes, head, sizeof head, budget);
}

static bool append_named(
    uint8_t marker, const char *name, size_t name_count, const uint8_t *body, size_t count, ccodecs_bytes *bytes,
    ccodecs_budget *budget) {
  return count == 0 || (append_marker(marker, name_count + count, bytes, budget) &&
                        ccodecs_bytes_append(bytes, (const uint8_t *)name, name_count, budget) &&
                        ccodecs_bytes_append(bytes, body, count, budget));
}

/// Appends IPTC, whose resource is padded to an even size.
static bool append_iptc(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  static const uint8_t pad = 0;
  const size_t count = metadata->iptc_count;
  uint8_t size[4];
  ccodecs_put_be32(size, (uint32_t)count);
  return count == 0 || (append_marker(APP13, sizeof iptc_name + sizeof size + count + (count & 1), bytes, budget) &&
                        ccodecs_bytes_append(bytes, (const uint8_t *)iptc_name, sizeof iptc_name, budget) &&
                        ccodecs_bytes_append(bytes, size, sizeof size, budget) &&
                        ccodecs_bytes_append(bytes, metadata->iptc, count, budget) &&
                        ccodecs_bytes_append(bytes, &pad, count & 1, budget));
}

bool ccodecs_jpeg_append_metadata(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  if (!ccodecs_bytes_reserve(bytes, ccodecs_jpeg_metadata_bytes(metadata), budget)) {
    return false;
  }
  bool has_room =
      append_named(APP1, exif_name, sizeof exif_name, metadata->exif, metadata->exif_count, bytes, budget) &&
      append_named(APP1, xmp_name, sizeof xmp_name, metadata->xmp, metadata->xmp_count, bytes, budget) &&
      append_iptc(metadata, bytes, budget);
  const size_t pieces = icc_pieces(metadata);
  for (size_t i = 0; i < pieces; i++) {
    const size_t first = i * icc_piece_bytes();
    const size_t left = metadata->icc_count - first;
    char prefix[sizeof icc_name + 2];
    memcpy(prefix, icc_name, sizeof icc_name);
    prefix[sizeof icc_name] = (char)(i + 1);
    prefix[sizeof icc_name + 1] = (char)pieces;
    const size_t count = left < icc_piece_bytes() ? left : icc_piece_bytes();
    has_room = has_room && append_named(APP2, prefix, sizeof prefix, metadata->icc + first, count, bytes, budget);
  }
  return has_room;
}

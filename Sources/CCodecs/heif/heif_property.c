// Reads properties of items. Sources: ISO/IEC 14496-12 (colr), 23008-12 (ispe), 14496-15 (hvcC); AV1 Codec ISO Media
// File Format Binding (av1C).

#include "heif_property.h"

/// Reads an `nclx` color description: primaries, transfer, matrix and the range.
static heif_color read_color(heif_span body) {
  if (body.count < 11 || memcmp(body.bytes, "nclx", 4) != 0) {
    return (heif_color){0};
  }
  return (heif_color){
      .is_known = true,
      .has_full_range = (body.bytes[10] & 0x80) != 0,
      .codes = {(uint16_t)ccodecs_be16(body.bytes + 4), (uint16_t)ccodecs_be16(body.bytes + 6)},
  };
}

bool heif_is_alpha(heif_span body) {
  static const char names[3][45] = {
      "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1", "urn:mpeg:avc:2015:auxid:1"};
  for (int n = 0; n < 3; n++) {
    const size_t length = strlen(names[n]) + 1;
    if (body.count >= 4 + length && memcmp(body.bytes + 4, names[n], length) == 0) {
      return true;
    }
  }
  return false;
}

heif_property heif_property_read(heif_box box) {
  static const heif_chroma_share hevc_chroma[4] = {
      HEIF_CHROMA_QUARTER, HEIF_CHROMA_QUARTER, HEIF_CHROMA_HALF, HEIF_CHROMA_FULL};
  // Whether the image is monochrome, and whether chroma is halved across and down.
  static const heif_chroma_share av1_chroma[8] = {HEIF_CHROMA_FULL, HEIF_CHROMA_FULL, HEIF_CHROMA_HALF};
  heif_property p = {.type = box.type, .byte_count = box.body.count};
  const uint8_t *bytes = box.body.bytes;
  switch (box.type) {
  case HEIF_TYPE('i', 's', 'p', 'e'):
    p.pixels = box.body.count >= 12 ? (uint64_t)ccodecs_be32(bytes + 4) * ccodecs_be32(bytes + 8) : 0;
    break;
  case HEIF_TYPE('h', 'v', 'c', 'C'):
    p.is_monochrome = box.body.count > 16 && (bytes[16] & 3) == 0;
    p.chroma = box.body.count > 16 ? hevc_chroma[bytes[16] & 3] : HEIF_CHROMA_QUARTER;
    ccodecs_heif_read_hevc_configuration(bytes, box.body.count, &p.frames);
    break;
  case HEIF_TYPE('a', 'v', '1', 'C'):
    p.is_monochrome = box.body.count > 2 && (bytes[2] & 0x10) != 0;
    p.chroma = box.body.count > 2 ? av1_chroma[bytes[2] >> 2 & 7] : HEIF_CHROMA_QUARTER;
    if (box.body.count > 4) {
      ccodecs_heif_read_av1(bytes + 4, box.body.count - 4, &p.frames);
    }
    break;
  case HEIF_TYPE('a', 'u', 'x', 'C'):
    p.is_alpha = heif_is_alpha(box.body);
    break;
  case HEIF_TYPE('c', 'o', 'l', 'r'):
    p.color = read_color(box.body);
    break;
  default:
    p.is_transform = heif_transform_read(box, &p.transform);
    break;
  }
  return p;
}

void heif_remove_transforms(uint8_t *body, size_t count, heif_property_list list, uint64_t identifier) {
  const heif_span span = {body, count};
  const uint32_t number_bytes = body[0] < 1 ? 2 : 4;
  const uint32_t index_bytes = (body[3] & 1) != 0 ? 2 : 1;
  size_t at = 8;
  uint64_t item;
  uint64_t entries;
  uint64_t index;
  while (heif_take_number(span, &at, number_bytes, &item) && heif_take_number(span, &at, 1, &entries)) {
    for (uint64_t k = 0; k < entries && heif_take_number(span, &at, index_bytes, &index); k++) {
      index &= index_bytes == 2 ? 0x7FFF : 0x7F;
      if (item == identifier && index > 0 && index <= list.count && list.properties[index - 1].is_transform) {
        memset(body + at - index_bytes, 0, index_bytes); // 0 refers to no property
      }
    }
  }
}

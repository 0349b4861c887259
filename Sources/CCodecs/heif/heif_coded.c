// Reads what the bitstreams inside an HEIC or AVIF file announce: the maximum size of frames, their number, and the
// meaning of their samples.
//
// The size in an item's properties binds neither AV1 nor HEVC: their decoders allocate what the bitstream's own
// sequence header requests, and decode frames that are never displayed. Sources: AV1 bitstream specification 5.5 and
// 5.9; ISO/IEC 14496-15 (hvcC); ITU-T H.265 7.3.1.2, 7.3.2.2 and 7.3.6.1.

#include "heif_coded.h"

#include "../memory/bytes.h"

typedef struct bits {
  const uint8_t *bytes;
  uint64_t count; ///< Size in bits.
  uint64_t at;    ///< Position in bits; may exceed `count`, where all bits read as zero.
} bits;

// MARK: Bits

static uint32_t read_bits(bits *b, uint32_t count) {
  uint32_t value = 0;
  if (b->at >= b->count) { // so that short units cost little
    b->at += count;
    return 0;
  }
  for (uint32_t i = 0; i < count; i++, b->at++) {
    const uint32_t bit = b->at < b->count ? b->bytes[b->at / 8] >> (7 - b->at % 8) & 1 : 0;
    value = value << 1 | bit;
  }
  return value;
}

/// Reads an exponential Golomb code of AV1 (uvlc) or HEVC (ue).
static uint32_t read_golomb(bits *b) {
  uint32_t zeros = 0;
  while (zeros < 32 && b->at < b->count && read_bits(b, 1) == 0) {
    zeros++;
  }
  return zeros >= 32 ? UINT32_MAX : (1u << zeros) - 1 + read_bits(b, zeros);
}

static void note_size(ccodecs_heif_frames *f, const bits *b, uint64_t width, uint64_t height) {
  if (b->at <= b->count && width > 0 && height > 0 && width <= UINT32_MAX && height <= UINT32_MAX) {
    f->max_pixels = width * height > f->max_pixels ? width * height : f->max_pixels;
    const uint64_t side = width > height ? width : height;
    f->max_side = side > f->max_side ? (uint32_t)side : f->max_side;
  }
}

static void note_chroma(ccodecs_heif_frames *f, heif_chroma_share chroma) {
  f->has_chroma = true;
  f->chroma = chroma > f->chroma ? chroma : f->chroma;
}

// MARK: AV1

static void read_operating_points(bits *b, bool has_model, uint32_t delay_bits) {
  const bool has_delay = read_bits(b, 1) != 0;
  const uint32_t count = read_bits(b, 5) + 1;
  for (uint32_t i = 0; i < count && b->at <= b->count; i++) {
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

/// Skips the fields of a sequence header between the frame size and the color configuration.
static void skip_tools(bits *b, bool is_reduced) {
  if (!is_reduced && read_bits(b, 1) != 0) { // frame_id_numbers_present_flag
    read_bits(b, 7);
  }
  read_bits(b, 3);
  if (!is_reduced) {
    read_bits(b, 4);
    const bool has_order = read_bits(b, 1) != 0;
    if (has_order) {
      read_bits(b, 2);
    }
    const bool chooses_screen_tools = read_bits(b, 1) != 0;
    const bool may_have_screen_tools = chooses_screen_tools || read_bits(b, 1) != 0;
    if (may_have_screen_tools && read_bits(b, 1) == 0) { // seq_choose_integer_mv
      read_bits(b, 1);
    }
    if (has_order) {
      read_bits(b, 3);
    }
  }
  read_bits(b, 3);
}

/// Reads how AV1 subsamples chroma.
static heif_chroma_share read_subsampling(bits *b, uint32_t profile, bool has_12_bits) {
  if (profile < 2) {
    return profile == 1 ? HEIF_CHROMA_FULL : HEIF_CHROMA_QUARTER;
  }
  const bool is_narrow = !has_12_bits || read_bits(b, 1) != 0;
  const bool is_low = is_narrow && has_12_bits && read_bits(b, 1) != 0;
  return !is_narrow ? HEIF_CHROMA_FULL : is_low ? HEIF_CHROMA_QUARTER : HEIF_CHROMA_HALF;
}

static void read_color_configuration(ccodecs_heif_frames *f, bits *b, uint32_t profile) {
  const bool is_high = read_bits(b, 1) != 0;
  const bool has_12_bits = profile == 2 && is_high && read_bits(b, 1) != 0;
  const bool is_monochrome = profile != 1 && read_bits(b, 1) != 0;
  ccodecs_color_codes codes = {CCODECS_CODE_UNSPECIFIED, CCODECS_CODE_UNSPECIFIED};
  uint32_t matrix = CCODECS_CODE_UNSPECIFIED;
  if (read_bits(b, 1) != 0) {
    codes.primaries = (uint16_t)read_bits(b, 8);
    codes.transfer = (uint16_t)read_bits(b, 8);
    matrix = read_bits(b, 8);
  }
  const bool is_rgb = !is_monochrome && codes.primaries == 1 && codes.transfer == 13 && matrix == 0;
  const bool has_full_range = is_rgb || read_bits(b, 1) != 0;
  f->is_deep |= is_high;
  if (!is_monochrome) {
    note_chroma(f, is_rgb ? HEIF_CHROMA_FULL : read_subsampling(b, profile, has_12_bits));
  }
  if (b->at <= b->count) {
    f->color = (heif_color){.is_known = true, .has_full_range = has_full_range, .codes = codes};
  }
}

static void read_sequence_header(ccodecs_heif_frames *f, bits b) {
  const uint32_t profile = read_bits(&b, 3);
  read_bits(&b, 1);
  const bool is_reduced = read_bits(&b, 1) != 0;
  if (is_reduced) {
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
  skip_tools(&b, is_reduced);
  read_color_configuration(f, &b, profile);
}

void ccodecs_heif_read_av1(const uint8_t *bytes, size_t count, ccodecs_heif_frames *frames) {
  enum { SEQUENCE_HEADER = 1, FRAME_HEADER = 3, FRAME = 6 };
  size_t at = 0;
  while (at < count && count - at >= 2) {
    const uint8_t head = bytes[at++];
    const uint8_t type = head >> 3 & 15;
    at += (head & 4) != 0 ? 1 : 0;
    uint64_t size = 0;
    uint8_t byte = 0x80;
    const bool has_size = (head & 2) != 0;
    for (int i = 0; has_size && i < 8 && (byte & 0x80) != 0 && at < count; i++) {
      byte = bytes[at++];
      size |= (uint64_t)(byte & 0x7F) << (7 * i);
    }
    if (at > count || (head & 0x80) != 0) {
      return;
    }
    const size_t body = has_size && size < count - at ? (size_t)size : count - at; // the last unit may have no size
    if (type == SEQUENCE_HEADER) {
      read_sequence_header(frames, (bits){.bytes = bytes + at, .count = (uint64_t)body * 8});
    }
    frames->count += type == FRAME_HEADER || type == FRAME ? 1 : 0;
    at += body;
  }
}

// MARK: HEVC

/// Copies a unit behind its header, without the bytes that prevent start codes. Returns the number of bytes.
static size_t remove_stuffing(const uint8_t *unit, size_t count, uint8_t *clean, size_t capacity) {
  size_t length = 0;
  int zeros = 0;
  for (size_t i = 2; i < count && length < capacity; i++) {
    if (zeros >= 2 && unit[i] == 3) {
      zeros = 0;
      continue;
    }
    zeros = unit[i] == 0 ? zeros + 1 : 0;
    clean[length++] = unit[i];
  }
  return length;
}

static void read_parameter_set(ccodecs_heif_frames *f, const uint8_t *unit, size_t count) {
  uint8_t clean[256];
  bits b = {.bytes = clean, .count = 8 * (uint64_t)remove_stuffing(unit, count, clean, sizeof clean)};
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
  const uint32_t chroma = read_golomb(&b);
  if (chroma == 3) {
    read_bits(&b, 1);
  }
  const uint64_t width = read_golomb(&b);
  const uint64_t height = read_golomb(&b);
  note_size(f, &b, width, height);
  for (int sides = read_bits(&b, 1) != 0 ? 4 : 0; sides > 0; sides--) { // of the conformance window
    read_golomb(&b);
  }
  const bool is_deep = read_golomb(&b) > 0; // of luma, and then of chroma
  f->is_deep |= read_golomb(&b) > 0 || is_deep;
  if (chroma > 0) {
    note_chroma(f, chroma == 1 ? HEIF_CHROMA_QUARTER : chroma == 2 ? HEIF_CHROMA_HALF : HEIF_CHROMA_FULL);
  }
}

/// Returns whether a picture parameter set allows slices whose header is that of the slice before. libde265 1.0.11
/// reads it after it has released it.
static bool allows_dependent_slices(const uint8_t *unit, size_t count) {
  uint8_t clean[16];
  bits b = {.bytes = clean, .count = 8 * (uint64_t)remove_stuffing(unit, count, clean, sizeof clean)};
  read_golomb(&b);
  read_golomb(&b);
  return read_bits(&b, 1) != 0;
}

void ccodecs_heif_read_hevc(const uint8_t *bytes, size_t count, size_t length_bytes, ccodecs_heif_frames *frames) {
  enum { PARAMETER_SET = 33, PICTURE_PARAMETER_SET = 34, FIRST_OTHER_THAN_SLICE = 32 };
  size_t at = 0;
  while (count - at > length_bytes) {
    const uint64_t size = length_bytes == 2 ? ccodecs_be16(bytes + at) : ccodecs_be32(bytes + at);
    at += length_bytes;
    const size_t body = size < count - at ? (size_t)size : count - at;
    const uint8_t type = bytes[at] >> 1 & 63;
    if (body > 2 && type == PARAMETER_SET) {
      read_parameter_set(frames, bytes + at, body);
    }
    if (body > 2 && type == PICTURE_PARAMETER_SET) {
      frames->has_dependent |= allows_dependent_slices(bytes + at, body);
    }
    frames->count += body > 2 && type < FIRST_OTHER_THAN_SLICE && (bytes[at + 2] & 0x80) != 0 ? 1 : 0;
    at += body;
  }
}

void ccodecs_heif_read_hevc_configuration(const uint8_t *bytes, size_t count, ccodecs_heif_frames *frames) {
  size_t at = 23;
  for (uint32_t i = 0; count >= 23 && i < bytes[22] && at + 3 <= count; i++) {
    const uint32_t units = ccodecs_be16(bytes + at + 1);
    at += 3;
    for (uint32_t unit = 0; unit < units && at + 2 <= count; unit++) {
      const size_t size = ccodecs_be16(bytes + at);
      const size_t body = size < count - at - 2 ? size : count - at - 2;
      ccodecs_heif_read_hevc(bytes + at, body + 2, 2, frames);
      at += 2 + body;
    }
  }
}

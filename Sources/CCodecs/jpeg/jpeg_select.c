// Selects the decoder for a JPEG: the native one (jpeg_decoder.h) or, for images that it does not support,
// libjpeg-turbo (jpeg_turbo.c).
//
// The marker segments before the first scan are read here. Segments that a decoder needs are kept and then passed to
// the selected one; others (thumbnails, comments) are skipped, whatever their length. A color profile comes in pieces,
// in any order, which are kept here and joined before the first scan.

#include "../color/profile.h"
#include "../formats.h"
#include "../memory/bytes.h"
#include "jpeg_codes.h"
#include "jpeg_decoder.h"

#include <string.h>

/// Source: ICC.1, annex B.4: a name that ends with a zero, the piece's number from 1 on, and the number of pieces.
static const char profile_name[12] = "ICC_PROFILE";

enum { PROFILE_PREFIX_BYTES = 14, MAX_PROFILE_PIECES = 255 };

typedef struct jpeg_selector {
  ccodecs_decoder base;
  ccodecs_bytes kept;    ///< Segments for the selected decoder, starting with SOI.
  ccodecs_bytes segment; ///< The segment being read, from its 0xFF on.
  size_t skip;           ///< Bytes of a segment to skip.
  ccodecs_bytes pieces;  ///< Pieces of the profile: the number, the length and the data of each.
  uint8_t piece_count;   ///< Number of pieces that the profile has.
  bool has_bad_profile;
  bool has_start;
  bool has_exif;
  bool has_index; ///< An index of several images was read.
  bool has_jfif;
  int32_t adobe_transform; ///< -1 without an Adobe segment.
  bool is_native;          ///< According to the last frame header.
  bool has_rgb_ids;        ///< The component identifiers are R, G and B.
  ccodecs_decoder *taker;
} jpeg_selector;

static ccodecs_status no_room(jpeg_selector *s) {
  return ccodecs_decoder_fail(&s->base, CCODECS_NO_MEMORY, "no room for the JPEG's header");
}

static bool is_frame(uint8_t marker) {
  return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

/// Returns the color transform by the same rules as libjpeg; -1 if nothing indicates it.
static int32_t color_transform(const jpeg_selector *s) {
  if (s->has_jfif) {
    return -1;
  }
  return s->adobe_transform < 0 && s->has_rgb_ids ? 0 : s->adobe_transform;
}

// MARK: Segments

/// Returns whether a segment is skipped without reading it.
static bool is_passed_over(const jpeg_selector *s, uint8_t marker) {
  const bool keeps_more = s->base.limits.keeps_metadata;
  const bool is_read = marker == APP0 || marker == APP14 || marker == APP2 || (marker == APP1 && !s->has_exif) ||
                       (keeps_more && marker == APP1 && s->base.xmp.count == 0) ||
                       (keeps_more && marker == APP11 && !s->base.header.has_credentials) ||
                       (keeps_more && marker == APP13 && s->base.iptc.count == 0);
  return marker == COM || (ccodecs_jpeg_is_application(marker) && !is_read);
}

/// Keeps a piece of the profile. Returns false when the budget has no room.
static bool keep_piece(jpeg_selector *s, const uint8_t *p, size_t count) {
  const size_t body = count - PROFILE_PREFIX_BYTES;
  const bool is_good = p[12] >= 1 && p[12] <= p[13] && (s->piece_count == 0 || s->piece_count == p[13]) &&
                       s->pieces.count + body <= CCODECS_MAX_PROFILE_BYTES;
  if (!is_good || s->has_bad_profile) {
    s->has_bad_profile = true;
    ccodecs_bytes_free(&s->pieces, s->base.budget);
    return true;
  }
  s->piece_count = p[13];
  const uint8_t prefix[3] = {p[12], (uint8_t)(body >> 8), (uint8_t)body};
  return ccodecs_bytes_append(&s->pieces, prefix, sizeof prefix, s->base.budget) &&
         ccodecs_bytes_append(&s->pieces, p + PROFILE_PREFIX_BYTES, body, s->base.budget);
}

/// Joins the profile. Of pieces with the same number, the first one is used. Returns false when the budget has no room.
static bool join_pieces(jpeg_selector *s) {
  struct {
    const uint8_t *bytes;
    size_t count;
  } pieces[MAX_PROFILE_PIECES + 1] = {0};
  size_t total = 0;
  if (s->pieces.count == 0) {
    return true;
  }
  const uint8_t *next = ccodecs_bytes_start(&s->pieces);
  for (size_t left = s->pieces.count; left > 0;) {
    const size_t count = (size_t)next[1] << 8 | next[2];
    if (pieces[next[0]].bytes == NULL) {
      pieces[next[0]].bytes = next + 3;
      pieces[next[0]].count = count;
      total += count;
    }
    next += 3 + count;
    left -= 3 + count;
  }
  for (uint32_t i = 1; i <= s->piece_count; i++) {
    s->has_bad_profile = s->has_bad_profile || pieces[i].bytes == NULL;
  }
  bool has_room = s->has_bad_profile || ccodecs_bytes_reserve(&s->base.profile, total, s->base.budget);
  for (uint32_t i = 1; i <= s->piece_count && has_room && !s->has_bad_profile; i++) {
    has_room = ccodecs_bytes_append(&s->base.profile, pieces[i].bytes, pieces[i].count, s->base.budget);
  }
  ccodecs_bytes_free(&s->pieces, s->base.budget);
  return has_room;
}

/// Keeps the datasets of IPTC, a resource of Photoshop: "8BIM", its number, a padded name, and its padded data. Returns
/// false when the budget has no room.
static bool keep_iptc(jpeg_selector *s, const uint8_t *p, size_t count) {
  enum { HEAD_BYTES = 6, NUMBER = 0x0404, SIZE_BYTES = 4 };
  while (count >= HEAD_BYTES + 2 + SIZE_BYTES && memcmp(p, "8BIM", 4) == 0) {
    const size_t name = ((size_t)p[HEAD_BYTES] + 2) / 2 * 2;
    const size_t head = HEAD_BYTES + name + SIZE_BYTES;
    const size_t size = head <= count ? ccodecs_be32(p + HEAD_BYTES + name) : SIZE_MAX;
    if (head > count || size > count - head) {
      return true;
    }
    if (ccodecs_be16(p + 4) == NUMBER) {
      return ccodecs_decoder_keep_block(&s->base, &s->base.iptc, p + head, size);
    }
    const size_t padded = size + (size & 1);
    if (padded > count - head) {
      return true;
    }
    p += head + padded;
    count -= head + padded;
  }
  return true;
}

/// Keeps XMP and IPTC, and looks for content credentials. Returns false when the budget has no room.
static bool keep_metadata(jpeg_selector *s, uint8_t marker, const uint8_t *p, size_t count) {
  static const char xmp[29] = "http://ns.adobe.com/xap/1.0/";
  static const char photoshop[14] = "Photoshop 3.0";
  enum { JUMBF_UUID = 24 }; // behind "JP", two numbers, and the heads of two boxes
  if (!s->base.limits.keeps_metadata) {
    return true;
  }
  if (marker == APP11 && count >= JUMBF_UUID + 4 && memcmp(p, "JP", 2) == 0) {
    s->base.header.has_credentials = s->base.header.has_credentials || memcmp(p + JUMBF_UUID, "c2pa", 4) == 0;
  }
  if (marker == APP1 && count > sizeof xmp && memcmp(p, xmp, sizeof xmp) == 0) {
    return ccodecs_decoder_keep_block(&s->base, &s->base.xmp, p + sizeof xmp, count - sizeof xmp);
  }
  return marker != APP13 || count <= sizeof photoshop || memcmp(p, photoshop, sizeof photoshop) != 0 ||
         keep_iptc(s, p + sizeof photoshop, count - sizeof photoshop);
}

/// Reads a segment. Returns whether a decoder needs it too.
static bool read_segment(jpeg_selector *s, uint8_t marker, const uint8_t *p, size_t count) {
  if (is_frame(marker)) {
    const bool is_whole = count >= 6 && count >= 6 + 3 * (size_t)p[5];
    s->is_native = is_whole && ccodecs_jpeg_native_supports(marker, p[0], p[5], -1);
    s->has_rgb_ids = is_whole && p[5] == 3 && p[6] == 'R' && p[9] == 'G' && p[12] == 'B';
    return true;
  }
  switch (marker) {
  case APP0:
    s->has_jfif = s->has_jfif || (count >= 14 && memcmp(p, "JFIF", 5) == 0);
    return count >= 14 && memcmp(p, "JFIF", 5) == 0;
  case APP14:
    if (count < 12 || memcmp(p, "Adobe", 5) != 0) {
      return false;
    }
    s->adobe_transform = p[11];
    return true;
  case APP1: // XMP uses the same marker
    if (s->has_exif) {
      return false;
    }
    s->has_exif = count >= 6 && memcmp(p, "Exif", 5) == 0;
    return s->has_exif;
  case APP11:
  case APP13:
    return false;
  case APP2: // the index of a multi-image file
    if (s->has_index || count < 4 || memcmp(p, "MPF", 4) != 0) {
      return false;
    }
    s->has_index = true; // libjpeg walks through those that it keeps for each one more
    return true;
  default:
    return true;
  }
}

/// Moves bytes from the window to the segment until it has `wanted` bytes. Returns true when it has.
static bool gather(jpeg_selector *s, ccodecs_input *input, size_t wanted, ccodecs_status *status) {
  *status = CCODECS_NEEDS_INPUT;
  if (!ccodecs_bytes_gather(&s->segment, input, wanted, s->base.budget)) {
    *status = no_room(s);
    return false;
  }
  return s->segment.count >= wanted;
}

/// Ends a segment, and keeps its first `count` bytes.
static ccodecs_status end_segment(jpeg_selector *s, size_t count) {
  const bool has_room =
      count == 0 || ccodecs_bytes_append(&s->kept, ccodecs_bytes_start(&s->segment), count, s->base.budget);
  ccodecs_bytes_take(&s->segment, s->segment.count);
  return has_room ? CCODECS_OK : no_room(s);
}

/// Reads 0xFF and the marker's code into the segment, and skips fill bytes and bytes between segments.
static bool read_marker(jpeg_selector *s, ccodecs_input *input, ccodecs_status *status) {
  while (s->segment.count < 2) {
    if (input->count == 0) {
      *status = CCODECS_NEEDS_INPUT;
      return false;
    }
    const uint8_t byte = *input->bytes;
    const bool is_marker = s->segment.count == 0 ? byte == 0xFF : byte != 0;
    if (!is_marker && !s->has_start) {
      *status = ccodecs_decoder_fail(&s->base, CCODECS_CORRUPT, "the JPEG does not start with SOI");
      return false;
    }
    if (is_marker && (s->segment.count == 0 || byte != 0xFF)) {
      if (!gather(s, input, s->segment.count + 1, status)) {
        return false;
      }
      continue;
    }
    ccodecs_input_advance(input, 1);
    if (!is_marker) {
      s->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      ccodecs_bytes_take(&s->segment, s->segment.count);
    }
  }
  return true;
}

/// Handles a marker without a segment. Returns CCODECS_OK or the failure.
static ccodecs_status read_bare_marker(jpeg_selector *s, uint8_t marker) {
  if ((marker == SOI) == s->has_start || marker == EOI) {
    return ccodecs_decoder_fail(
        &s->base, CCODECS_CORRUPT,
        marker == EOI ? "the JPEG ends before its first scan" : "a JPEG marker is misplaced");
  }
  s->has_start = true;
  return end_segment(s, marker == SOI ? 2 : 0);
}

/// Reads one marker and its segment. Returns CCODECS_OK when it is complete. Sets *is_scan when it was SOS.
static ccodecs_status read_next(jpeg_selector *s, ccodecs_input *input, bool *is_scan) {
  ccodecs_status status = CCODECS_OK;
  if (s->skip > 0) {
    const size_t count = input->count < s->skip ? input->count : s->skip;
    ccodecs_input_advance(input, count);
    s->skip -= count;
    return s->skip == 0 ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  }
  if (!read_marker(s, input, &status)) {
    return status;
  }
  const uint8_t marker = ccodecs_bytes_start(&s->segment)[1];
  if (marker == SOI || marker == EOI || marker == TEM || ccodecs_jpeg_is_restart(marker) || !s->has_start) {
    return read_bare_marker(s, marker);
  }
  if (!gather(s, input, 4, &status)) {
    return status;
  }
  const uint8_t *header = ccodecs_bytes_start(&s->segment);
  const size_t length = (size_t)header[2] << 8 | header[3];
  if (length < 2) { // some writers count incorrectly; the decoder resumes at the next marker if nothing is lost
    s->base.header.warnings |= CCODECS_WARNING_DAMAGED;
    return ccodecs_jpeg_is_application(marker) || marker == COM
               ? end_segment(s, 0)
               : ccodecs_decoder_fail(&s->base, CCODECS_CORRUPT, "a JPEG segment's length is less than 2");
  }
  if (is_passed_over(s, marker)) {
    s->skip = length - 2;
    return end_segment(s, 0);
  }
  if (!gather(s, input, length + 2, &status)) {
    return status;
  }
  *is_scan = marker == SOS;
  const uint8_t *body = ccodecs_bytes_start(&s->segment) + 4;
  if (marker == APP2 && length - 2 >= PROFILE_PREFIX_BYTES && memcmp(body, profile_name, sizeof profile_name) == 0) {
    return keep_piece(s, body, length - 2) ? end_segment(s, 0) : no_room(s);
  }
  const bool is_needed = read_segment(s, marker, body, length - 2);
  const bool is_exif = marker == APP1 && is_needed;
  if ((is_exif && !ccodecs_exif_keep_copyright(&s->base, body + 6, length - 8)) ||
      !keep_metadata(s, marker, body, length - 2)) {
    return no_room(s);
  }
  return end_segment(s, is_needed ? length + 2 : 0);
}

// MARK: Handing over

/// Copies status, warnings and message from the selected decoder.
static ccodecs_status relay(jpeg_selector *s, ccodecs_status status) {
  if (status >= CCODECS_CORRUPT) {
    s->base.excess = s->taker->excess;
    return ccodecs_decoder_fail(&s->base, status, "%s", ccodecs_decoder_message(s->taker));
  }
  s->base.header.warnings |= s->taker->header.warnings;
  s->base.header.damaged_row = s->taker->header.damaged_row;
  return status;
}

static ccodecs_status hand_over(jpeg_selector *s, const ccodecs_input *input) {
  const bool is_native = s->is_native && color_transform(s) != 0;
  const ccodecs_decoder_methods *methods = is_native ? &ccodecs_jpeg_native_decoder : &ccodecs_jpeg_turbo_decoder;
  s->taker = ccodecs_decoder_allocate(methods, CCODECS_FORMAT_JPEG, &s->base.limits, s->base.budget);
  if (s->taker == NULL) {
    return no_room(s);
  }
  ccodecs_input kept = {.bytes = ccodecs_bytes_start(&s->kept), .count = s->kept.count, .is_last = false};
  const ccodecs_status status = ccodecs_decoder_read_header(s->taker, &kept);
  if (status == CCODECS_NEEDS_INPUT) {
    return ccodecs_decoder_fail(&s->base, CCODECS_CORRUPT, "the JPEG's header is not complete");
  }
  ccodecs_bytes_free(&s->kept, s->base.budget);
  if (status == CCODECS_OK) {
    const uint32_t warnings = s->base.header.warnings;
    const bool has_credentials = s->base.header.has_credentials;
    s->base.header = *ccodecs_decoder_header(s->taker);
    s->base.header.has_credentials = has_credentials;
    s->base.header.warnings |= warnings | (s->has_bad_profile ? CCODECS_WARNING_BAD_PROFILE : 0u);
    if (is_native) {
      ccodecs_jpeg_native_foresee(s->taker, input);
    }
  }
  return relay(s, status);
}

// MARK: Methods

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  jpeg_selector *s = (jpeg_selector *)base;
  bool is_scan = false;
  while (!is_scan) {
    const ccodecs_status status = read_next(s, input, &is_scan);
    if (status == CCODECS_NEEDS_INPUT && input->is_last) {
      return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the JPEG ends before its first scan");
    }
    CCODECS_TRY(status);
  }
  ccodecs_bytes_free(&s->segment, base->budget);
  return join_pieces(s) ? hand_over(s, input) : no_room(s);
}

static uint8_t scales(const ccodecs_decoder *base) {
  const jpeg_selector *s = (const jpeg_selector *)base;
  return s->taker->methods->scales(s->taker);
}

static uint64_t min_bytes(const ccodecs_decoder *base) {
  const jpeg_selector *s = (const jpeg_selector *)base;
  return s->taker->methods->min_bytes(s->taker);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  const jpeg_selector *s = (const jpeg_selector *)base;
  return s->taker->methods->estimate(s->taker, options, byte_count);
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  jpeg_selector *s = (jpeg_selector *)base;
  return relay(s, ccodecs_decoder_start(s->taker, options, layout));
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  jpeg_selector *s = (jpeg_selector *)base;
  return relay(s, ccodecs_decoder_read_rows(s->taker, input, rows));
}

static void destroy(ccodecs_decoder *base) {
  jpeg_selector *s = (jpeg_selector *)base;
  ccodecs_decoder_destroy(s->taker);
  ccodecs_bytes_free(&s->kept, base->budget);
  ccodecs_bytes_free(&s->segment, base->budget);
  ccodecs_bytes_free(&s->pieces, base->budget);
}

static void init(ccodecs_decoder *decoder) {
  jpeg_selector *s = (jpeg_selector *)decoder;
  s->adobe_transform = -1;
}

const ccodecs_decoder_methods ccodecs_jpeg_decoder = {
    .byte_count = sizeof(jpeg_selector),
    .init = init,
    .read_header = read_header,
    .scales = scales,
    .min_bytes = min_bytes,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};

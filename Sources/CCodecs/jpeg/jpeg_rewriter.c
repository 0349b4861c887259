// JPEG rewriting: reduces marker segments and scans (ITU-T T.81 annex B) to those that a decoder needs.
//
// The result contains the tables (DQT, DHT, DRI), the frame header, scan headers and entropy-coded bytes. It starts
// with a JFIF segment without a thumbnail, because the image is YCbCr or gray. Application segments, comments and fill
// bytes are dropped. Only images that the native decoder supports are accepted.
//
// Entropy-coded bytes are searched for markers. The number and the order of restart markers must match the units, and
// each interval must have the minimum number of bits that its blocks can take: two bits for a sequential block, one for
// a block of a DC scan.

#include "../core/encoder.h"
#include "../core/rewriter.h"
#include "../formats.h"
#include "jpeg_codes.h"
#include "jpeg_decoder.h"
#include "jpeg_metadata.h"
#include "jpeg_quality.h"
#include "jpeg_rotator.h"

/// Maximum size of a marker and its segment.
enum { MAX_SEGMENT_BYTES = 2 + 65535 };

typedef enum rewrite_step {
  STEP_START, ///< SOI must come next.
  STEP_SEEK,  ///< Before a marker.
  STEP_CODE,
  STEP_LENGTH,
  STEP_BODY,
  STEP_SKIP,
  STEP_SCAN,
  STEP_DONE,
} rewrite_step;

typedef struct rewrite_part {
  uint8_t id;
  uint8_t quant_index;
  bool has_scan; ///< In a progressive image: it has a scan of its DC coefficients.
} rewrite_part;

typedef struct jpeg_rewriter {
  ccodecs_rewriter base;
  rewrite_step step;
  ccodecs_bytes segment; ///< The segment being read, from its 0xFF on.
  bool is_given;         ///< The segment was returned as a piece.
  uint8_t marker;
  uint64_t skip;

  bool has_frame;
  bool is_progressive;
  ccodecs_jpeg_frame frame;
  uint32_t max_horizontal;
  uint32_t max_vertical;
  rewrite_part parts[3];
  uint32_t quant_sums[4]; ///< 0 for an undefined table.
  uint32_t dc_tables;     ///< Bit mask of the defined tables.
  uint32_t ac_tables;
  uint32_t restart_interval;
  uint32_t scan_count;

  // State of the scan.
  uint64_t units_left; ///< Units after the current interval.
  uint64_t interval_units;
  uint64_t unit_bits; ///< Minimum number of bits of a unit.
  uint64_t interval_bytes;
  uint32_t restart_next;
  bool has_ff; ///< 0xFF was consumed; its second byte comes next.
  uint8_t pair[2];
} jpeg_rewriter;

static ccodecs_status corrupt(jpeg_rewriter *j, const char *reason) {
  return ccodecs_rewriter_fail(&j->base, CCODECS_CORRUPT, "%s", reason);
}

// MARK: Frame and tables

static ccodecs_status read_frame(jpeg_rewriter *j, const uint8_t *p, size_t count) {
  if (j->has_frame || count < 6 || count != 6 + 3 * (size_t)p[5]) {
    return corrupt(j, "there are two frame headers, or one has a wrong length");
  }
  if (p[0] != 8 || (p[5] != 1 && p[5] != 3)) {
    return ccodecs_rewriter_fail(&j->base, CCODECS_UNSUPPORTED, "the precision or component count is unsupported");
  }
  ccodecs_jpeg_frame *f = &j->frame;
  f->height = ccodecs_be16(p + 1);
  f->width = ccodecs_be16(p + 3);
  f->component_count = p[5];
  if (f->width == 0 || f->height == 0) {
    return corrupt(j, "the frame header specifies an empty image");
  }
  for (uint32_t i = 0; i < f->component_count; i++) {
    const uint8_t *c = p + 6 + 3 * i;
    j->parts[i] = (rewrite_part){.id = c[0], .quant_index = c[2]};
    f->horizontal[i] = f->component_count == 1 ? 1 : c[1] >> 4; // T.81 A.2.2
    f->vertical[i] = f->component_count == 1 ? 1 : c[1] & 15;
    if (f->horizontal[i] < 1 || f->horizontal[i] > 4 || f->vertical[i] < 1 || f->vertical[i] > 4 || c[2] > 3) {
      return corrupt(j, "a component's sampling factors or table are out of range");
    }
    j->max_horizontal = f->horizontal[i] > j->max_horizontal ? f->horizontal[i] : j->max_horizontal;
    j->max_vertical = f->vertical[i] > j->max_vertical ? f->vertical[i] : j->max_vertical;
  }
  j->is_progressive = j->marker == SOF2;
  j->has_frame = true;
  return CCODECS_OK;
}

static ccodecs_status read_quant(jpeg_rewriter *j, const uint8_t *p, size_t count) {
  while (count > 0) {
    const size_t width = p[0] >> 4 != 0 ? 2 : 1;
    if ((p[0] & 15) > 3 || p[0] >> 4 > 1 || count < 1 + 64 * width) {
      return corrupt(j, "a quantization table is out of range");
    }
    uint32_t sum = 0;
    for (size_t i = 0; i < 64; i++) {
      const uint32_t entry = width == 2 ? ccodecs_be16(p + 1 + 2 * i) : p[1 + i];
      if (entry == 0) {
        return corrupt(j, "a quantization table has a zero");
      }
      sum += entry;
    }
    j->quant_sums[p[0] & 15] = sum;
    p += 1 + 64 * width;
    count -= 1 + 64 * width;
  }
  return CCODECS_OK;
}

static ccodecs_status read_codes(jpeg_rewriter *j, const uint8_t *p, size_t count) {
  while (count > 16) {
    uint32_t symbol_count = 0;
    uint32_t space = 0; // 16-bit code space in use
    for (uint32_t i = 1; i <= 16; i++) {
      symbol_count += p[i];
      space += (uint32_t)p[i] << (16 - i);
    }
    const bool is_dc = (p[0] & 16) == 0;
    if ((p[0] & ~16) > 3 || symbol_count > 256 || symbol_count > count - 17 || space > 65536) {
      return corrupt(j, "a Huffman table is out of range");
    }
    for (uint32_t i = 0; is_dc && i < symbol_count; i++) {
      if (p[17 + i] > 15) {
        return corrupt(j, "a Huffman table of DC coefficients has a symbol above 15");
      }
    }
    *(is_dc ? &j->dc_tables : &j->ac_tables) |= 1u << (p[0] & 3);
    p += 17 + symbol_count;
    count -= 17 + symbol_count;
  }
  return count == 0 ? CCODECS_OK : corrupt(j, "a Huffman table segment has a wrong length");
}

// MARK: Scans

/// Returns the component of a scan header's entry; NULL when it does not exist, or is named twice.
static rewrite_part *find_part(jpeg_rewriter *j, uint8_t id, uint32_t *named) {
  for (uint32_t i = 0; i < j->frame.component_count; i++) {
    if (j->parts[i].id == id && (*named >> i & 1) == 0) {
      *named |= 1u << i;
      return &j->parts[i];
    }
  }
  return NULL;
}

/// Returns whether the spectral band and the bits of a progressive scan are valid (T.81 G.1.1.1).
static bool is_band(const uint8_t *p, uint32_t component_count) {
  const uint32_t high = p[2] >> 4;
  const uint32_t low = p[2] & 15;
  const bool is_range = p[0] == 0 ? p[1] == 0 : p[0] <= p[1] && p[1] < 64 && component_count == 1;
  return is_range && low <= 13 && (high == 0 || low == high - 1);
}

static uint64_t divide_up(uint64_t count, uint64_t unit) {
  return (count + unit - 1) / unit;
}

/// Starts the next interval between restart markers.
static void begin_interval(jpeg_rewriter *j) {
  const uint64_t maximum = j->restart_interval == 0 ? UINT64_MAX : j->restart_interval;
  j->interval_units = j->units_left < maximum ? j->units_left : maximum;
  j->units_left -= j->interval_units;
  j->interval_bytes = 0;
}

/// Counts the units of the scan, and the blocks of a unit.
static void measure_scan(jpeg_rewriter *j, uint32_t named, uint32_t count) {
  const ccodecs_jpeg_frame *f = &j->frame;
  uint64_t blocks = 0;
  uint64_t across = divide_up(f->width, 8 * j->max_horizontal);
  uint64_t down = divide_up(f->height, 8 * j->max_vertical);
  for (uint32_t i = 0; i < f->component_count; i++) {
    if ((named >> i & 1) != 0) {
      blocks += count == 1 ? 1u : (uint32_t)f->horizontal[i] * f->vertical[i];
      across = count == 1 ? divide_up((uint64_t)f->width * f->horizontal[i], 8 * j->max_horizontal) : across;
      down = count == 1 ? divide_up((uint64_t)f->height * f->vertical[i], 8 * j->max_vertical) : down;
    }
  }
  j->units_left = across * down;
  j->unit_bits = blocks;
}

static ccodecs_status read_scan(jpeg_rewriter *j, const uint8_t *p, size_t count) {
  const uint32_t part_count = count >= 1 ? p[0] : 0;
  if (!j->has_frame || part_count < 1 || part_count > j->frame.component_count || count != 4 + 2 * part_count) {
    return corrupt(j, "a scan header is out of place or has a wrong length");
  }
  const uint8_t *band = p + 1 + 2 * part_count;
  if (j->is_progressive && !is_band(band, part_count)) {
    return corrupt(j, "a progressive scan has parameters out of range");
  }
  const bool is_first = !j->is_progressive || band[2] >> 4 == 0;
  const bool needs_dc = j->is_progressive ? band[0] == 0 && is_first : true;
  const bool needs_ac = j->is_progressive ? band[0] > 0 : true;
  uint32_t named = 0;
  for (uint32_t i = 0; i < part_count; i++) {
    rewrite_part *part = find_part(j, p[1 + 2 * i], &named);
    const uint8_t tables = p[2 + 2 * i];
    if (part == NULL || (part->has_scan && !j->is_progressive)) {
      return corrupt(j, "a scan specifies a missing component, or one twice");
    }
    const bool has_tables = (!needs_dc || (tables >> 4 <= 3 && (j->dc_tables >> (tables >> 4) & 1) != 0)) &&
                            (!needs_ac || ((tables & 15) <= 3 && (j->ac_tables >> (tables & 15) & 1) != 0));
    if (!has_tables || j->quant_sums[part->quant_index] == 0) {
      return corrupt(j, "a scan needs a table that was not defined");
    }
    part->has_scan = part->has_scan || !j->is_progressive || band[0] == 0;
  }
  j->scan_count++;
  if (j->is_progressive && j->base.limits.max_scans > 0 && j->scan_count > j->base.limits.max_scans) {
    j->base.excess = (ccodecs_excess){"max_scans", j->base.limits.max_scans, j->scan_count};
    return ccodecs_rewriter_fail(
        &j->base, CCODECS_LIMIT, "the image has more scans than the limit max_scans of %u", j->base.limits.max_scans);
  }
  measure_scan(j, named, part_count);
  j->unit_bits *= !j->is_progressive ? 2 : band[0] == 0 ? 1 : 0;
  j->restart_next = 0;
  j->has_ff = false;
  begin_interval(j);
  return CCODECS_OK;
}

/// Checks at a restart marker or at the end of the scan that the interval has its minimum number of bytes.
static ccodecs_status end_interval(jpeg_rewriter *j) {
  return j->interval_bytes * 8 >= j->interval_units * j->unit_bits
             ? CCODECS_OK
             : corrupt(j, "a scan has too few bytes for its blocks");
}

/// Consumes the second byte of a pair that starts with 0xFF in entropy-coded data.
static ccodecs_status take_pair(jpeg_rewriter *j, ccodecs_input *input, ccodecs_piece *piece) {
  const uint8_t byte = *input->bytes;
  if (byte == 0xFF) { // a fill byte
    ccodecs_input_advance(input, 1);
    return CCODECS_OK;
  }
  j->has_ff = false;
  const bool is_restart = ccodecs_jpeg_is_restart(byte);
  if (byte != 0 && !is_restart) {
    j->step = STEP_CODE;
    const ccodecs_status status = end_interval(j);
    return status != CCODECS_OK || j->units_left == 0 ? status : corrupt(j, "a scan is truncated by a marker");
  }
  ccodecs_input_advance(input, 1);
  if (is_restart) {
    const ccodecs_status status = end_interval(j);
    if (status != CCODECS_OK || j->units_left == 0) {
      return status; // after the last unit it has no meaning, and is dropped
    }
    if (byte != RST0 + j->restart_next) {
      return corrupt(j, "a restart marker is out of order");
    }
    j->restart_next = (j->restart_next + 1) & 7;
    begin_interval(j);
  } else {
    j->interval_bytes++;
  }
  j->pair[0] = 0xFF;
  j->pair[1] = byte;
  return ccodecs_piece_give(j->pair, sizeof j->pair, piece);
}

/// Returns entropy-coded bytes up to a marker or the end of the window.
static ccodecs_status take_scan(jpeg_rewriter *j, ccodecs_input *input, ccodecs_piece *piece) {
  if (j->has_ff) {
    return take_pair(j, input, piece);
  }
  const uint8_t *start = input->bytes;
  const uint8_t *end = start + input->count;
  const uint8_t *p = start;
  size_t stuffed = 0; // zeros after 0xFF, which are not part of the code
  while (p < end) {
    const uint8_t *ff = memchr(p, 0xFF, (size_t)(end - p));
    if (ff == NULL) {
      p = end;
    } else if (end - ff > 1 && ff[1] == 0) {
      p = ff + 2;
      stuffed++;
    } else {
      p = ff;
      j->has_ff = true;
      break;
    }
  }
  const size_t count = (size_t)(p - start);
  ccodecs_input_advance(input, count + j->has_ff);
  j->interval_bytes += count - stuffed;
  *piece = (ccodecs_piece){.bytes = start, .count = count};
  return count > 0 ? CCODECS_BYTES_READY : CCODECS_OK;
}

// MARK: Segments

static ccodecs_status read_segment(jpeg_rewriter *j, const uint8_t *p, size_t count) {
  switch (j->marker) {
  case DQT:
    return read_quant(j, p, count);
  case DHT:
    return read_codes(j, p, count);
  case DRI:
    j->restart_interval = count == 2 ? ccodecs_be16(p) : 0;
    return count == 2 ? CCODECS_OK : corrupt(j, "a restart interval segment has a wrong length");
  case SOS:
    return read_scan(j, p, count);
  default:
    return read_frame(j, p, count);
  }
}

static bool is_kept(uint8_t marker) {
  return marker == DQT || marker == DHT || marker == DRI || marker == SOS || (marker >= SOF0 && marker <= SOF2);
}

static bool is_dropped(uint8_t marker) {
  return ccodecs_jpeg_is_application(marker) || marker == COM || marker == DNL || marker == DAC;
}

static bool has_all_scans(const jpeg_rewriter *j) {
  bool is_whole = j->has_frame;
  for (uint32_t i = 0; i < j->frame.component_count; i++) {
    is_whole = is_whole && j->parts[i].has_scan;
  }
  return is_whole;
}

static ccodecs_status end_image(jpeg_rewriter *j, ccodecs_piece *piece) {
  static const uint8_t end[2] = {0xFF, EOI};
  j->step = STEP_DONE;
  *piece = (ccodecs_piece){.bytes = end, .count = sizeof end};
  return has_all_scans(j) ? CCODECS_BYTES_READY : corrupt(j, "a component has no scan before EOI");
}

/// Handles the code of a marker.
static ccodecs_status take_code(jpeg_rewriter *j, ccodecs_input *input, ccodecs_piece *piece) {
  const uint8_t marker = *input->bytes;
  ccodecs_input_advance(input, 1);
  j->marker = marker;
  if (marker == 0xFF) {
    return CCODECS_OK;
  }
  if (marker == EOI) {
    return end_image(j, piece);
  }
  if (is_kept(marker) || is_dropped(marker)) {
    const uint8_t begin[2] = {0xFF, marker};
    j->step = STEP_LENGTH;
    return ccodecs_bytes_append(&j->segment, begin, sizeof begin, j->base.budget)
               ? CCODECS_OK
               : ccodecs_rewriter_fail_for_room(&j->base);
  }
  const bool is_bare = ccodecs_jpeg_is_restart(marker) || marker == TEM;
  j->base.warnings |= is_bare ? 0u : CCODECS_WARNING_DAMAGED;
  j->step = STEP_SEEK;
  return is_bare || marker == 0 ? CCODECS_OK
                                : corrupt(j, "a marker is unknown, misplaced or from another coding process");
}

/// Moves bytes from the window to the segment until it has `wanted` bytes. Returns CCODECS_OK when it has.
static ccodecs_status gather(jpeg_rewriter *j, ccodecs_input *input, size_t wanted) {
  if (!ccodecs_bytes_gather(&j->segment, input, wanted, j->base.budget)) {
    return ccodecs_rewriter_fail_for_room(&j->base);
  }
  return j->segment.count >= wanted ? CCODECS_OK : CCODECS_NEEDS_INPUT;
}

static void drop_segment(jpeg_rewriter *j) {
  ccodecs_bytes_take(&j->segment, j->segment.count);
  j->is_given = false;
}

/// Handles the bytes of SOI, of a length, or of a body.
static ccodecs_status take_segment(jpeg_rewriter *j, ccodecs_input *input, ccodecs_piece *piece) {
  const uint8_t *header = ccodecs_bytes_start(&j->segment);
  const size_t length = j->step == STEP_BODY ? ccodecs_be16(header + 2) : 0;
  CCODECS_TRY(gather(j, input, j->step == STEP_START ? 2 : j->step == STEP_LENGTH ? 4 : length + 2));
  header = ccodecs_bytes_start(&j->segment);
  if (j->step == STEP_START) {
    const bool is_start = header[0] == 0xFF && header[1] == SOI;
    drop_segment(j);
    j->step = STEP_SEEK;
    return is_start ? CCODECS_OK : corrupt(j, "the file does not start with SOI");
  }
  if (j->step == STEP_LENGTH) {
    const size_t found = ccodecs_be16(header + 2);
    if (is_kept(j->marker)) {
      j->step = STEP_BODY;
      return found >= 2 ? CCODECS_OK : corrupt(j, "a segment's length is less than 2");
    }
    drop_segment(j);
    j->base.warnings |= found < 2 ? CCODECS_WARNING_DAMAGED : 0u;
    j->skip = found < 2 ? 0 : found - 2;
    j->step = STEP_SKIP;
    return CCODECS_OK;
  }
  const ccodecs_status status = read_segment(j, header + 4, length - 2);
  j->step = j->marker == SOS ? STEP_SCAN : STEP_SEEK;
  j->is_given = true;
  *piece = (ccodecs_piece){.bytes = header, .count = j->segment.count};
  return status == CCODECS_OK ? CCODECS_BYTES_READY : status;
}

// MARK: Methods

static bool end(ccodecs_rewriter *base, ccodecs_piece *piece) {
  jpeg_rewriter *j = (jpeg_rewriter *)base;
  const bool is_scan = j->step == STEP_SCAN;
  const bool is_behind_scan = is_scan || j->step == STEP_SEEK || j->step == STEP_CODE;
  const bool is_interval_whole = j->interval_bytes * 8 >= j->interval_units * j->unit_bits;
  return is_behind_scan && has_all_scans(j) && (!is_scan || (j->units_left == 0 && is_interval_whole)) &&
         end_image(j, piece) == CCODECS_BYTES_READY;
}

static ccodecs_status step(ccodecs_rewriter *base, ccodecs_input *input, ccodecs_piece *piece) {
  jpeg_rewriter *j = (jpeg_rewriter *)base;
  if (j->is_given) {
    drop_segment(j);
  }
  if (j->step == STEP_DONE) {
    return CCODECS_DONE;
  }
  if (input->count == 0) {
    return CCODECS_NEEDS_INPUT;
  }
  switch (j->step) {
  case STEP_SEEK:
    if (*input->bytes == 0xFF) {
      j->step = STEP_CODE;
    } else {
      base->warnings |= CCODECS_WARNING_DAMAGED;
    }
    ccodecs_input_advance(input, 1);
    return CCODECS_OK;
  case STEP_CODE:
    return take_code(j, input, piece);
  case STEP_SKIP:
    if (!ccodecs_input_skip(input, &j->skip)) {
      return CCODECS_NEEDS_INPUT;
    }
    j->step = STEP_SEEK;
    return CCODECS_OK;
  case STEP_SCAN:
    return take_scan(j, input, piece);
  default:
    return take_segment(j, input, piece);
  }
}

static bool has_fine_chroma(const jpeg_rewriter *j) {
  const ccodecs_jpeg_frame *f = &j->frame;
  bool is_fine = false;
  for (uint32_t i = 1; i < f->component_count; i++) {
    is_fine = is_fine || f->horizontal[i] * 2u > f->horizontal[0] || f->vertical[i] * 2u > f->vertical[0];
  }
  return is_fine;
}

#ifdef CCODECS_JXL
/// Returns whether JPEG XL has the image's chroma subsampling: none, or halves.
static bool has_usual_chroma(const ccodecs_jpeg_frame *f) {
  bool is_usual = f->horizontal[0] <= 2 && f->vertical[0] <= 2;
  for (uint32_t i = 1; i < f->component_count; i++) {
    is_usual = is_usual && f->horizontal[i] == 1 && f->vertical[i] == 1;
  }
  return is_usual;
}
#endif

static void survey(const ccodecs_rewriter *base, const ccodecs_decoder *decoder, ccodecs_survey *survey) {
  const jpeg_rewriter *j = (const jpeg_rewriter *)base;
  const ccodecs_color_space space = decoder->header.color_space;
  uint32_t sums[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  // Three components can be RGB by indications that the result does not contain.
  survey->can_copy = j->step == STEP_SCAN && (space == CCODECS_COLOR_GRAY || space == CCODECS_COLOR_YCBCR);
  for (uint32_t i = 0; i < j->frame.component_count; i++) {
    sums[i] = j->quant_sums[j->parts[i].quant_index];
    survey->can_copy = survey->can_copy && sums[i] > 0;
  }
  if (!survey->can_copy) {
    return;
  }
  survey->has_fine_chroma = has_fine_chroma(j);
  survey->quality = ccodecs_jpeg_quality(sums[0], sums[1] < sums[2] ? sums[1] : sums[2]);
  for (uint8_t orientation = 2; orientation <= 8; orientation++) {
    survey->rotations |= (uint16_t)(ccodecs_jpeg_transform_is_perfect(&j->frame, orientation) << orientation);
  }
#ifdef CCODECS_JXL
  survey->can_recompress = has_usual_chroma(&j->frame);
#endif
}

#ifdef CCODECS_JXL
static uint64_t pixel_count(const ccodecs_jpeg_frame *f) {
  return (uint64_t)f->width * f->height;
}

static uint64_t sample_count(const ccodecs_jpeg_frame *f) {
  const uint64_t luma = (uint64_t)f->horizontal[0] * f->vertical[0];
  uint64_t count = 0;
  for (uint32_t i = 0; i < f->component_count; i++) {
    count += pixel_count(f) * f->horizontal[i] * f->vertical[i] / luma + (f->width + f->height) * (uint64_t)16;
  }
  return count;
}
#endif

static uint64_t transform_bytes(
    const ccodecs_rewriter *base, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options) {
  (void)decoder;
  const ccodecs_jpeg_frame *f = &((const jpeg_rewriter *)base)->frame;
#ifdef CCODECS_JXL
  if (options->jxl_effort > 0) {
    // The file that libjxl reads, and the result, contain the profile.
    return ccodecs_jxl_recompress_estimate(pixel_count(f), sample_count(f)) + 5 * options->metadata.icc_count;
  }
#endif
  return ccodecs_jpeg_transform_estimate(f, options);
}

static ccodecs_status create_transform(
    ccodecs_rewriter *base, const ccodecs_decoder *decoder, const ccodecs_rewrite_options *options,
    ccodecs_transform **transform) {
  (void)decoder;
#ifdef CCODECS_JXL
  if (options->jxl_effort > 0) {
    const ccodecs_jpeg_frame *f = &((const jpeg_rewriter *)base)->frame;
    return ccodecs_jxl_recompress_create(
        pixel_count(f), sample_count(f), options, &base->interrupt, base->budget, transform);
  }
#endif
  return ccodecs_jpeg_transform_create(&((const jpeg_rewriter *)base)->frame, options, base->budget, transform);
}

static ccodecs_status start(
    ccodecs_rewriter *base, ccodecs_decoder *decoder, const ccodecs_rewrite_options *options, ccodecs_bytes *opening) {
  (void)decoder;
  // JFIF 1.01, no unit, 1:1, without a thumbnail: as libjpeg writes it.
  static const uint8_t begin[20] = {
      0xFF, SOI, 0xFF, APP0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0,
  };
  bool has_room = ccodecs_bytes_reserve(&((jpeg_rewriter *)base)->segment, MAX_SEGMENT_BYTES, base->budget) &&
                  ccodecs_bytes_append(opening, begin, sizeof begin, base->budget);
  if (options->orientation == 1) { // an image to be transformed gets it when it is compressed
    has_room = has_room && options->metadata.exif_count <= CCODECS_MAX_EXIF_BYTES &&
               options->metadata.xmp_count <= CCODECS_MAX_XMP_BYTES &&
               options->metadata.iptc_count <= CCODECS_MAX_IPTC_BYTES &&
               ccodecs_jpeg_append_metadata(&options->metadata, opening, base->budget);
  }
  return has_room ? CCODECS_OK : ccodecs_rewriter_fail_for_room(base);
}

/// Any segment may have the maximum length.
static uint64_t start_bytes(const ccodecs_rewriter *base, const ccodecs_rewrite_options *options) {
  (void)options;
  return MAX_SEGMENT_BYTES + 3 * (uint64_t)((const jpeg_rewriter *)base)->segment.capacity / 2;
}

static void destroy(ccodecs_rewriter *base) {
  jpeg_rewriter *j = (jpeg_rewriter *)base;
  ccodecs_bytes_free(&j->segment, base->budget);
}

const ccodecs_rewriter_methods ccodecs_jpeg_rewriter = {
    .byte_count = sizeof(jpeg_rewriter),
    .step = step,
    .end = end,
    .survey = survey,
    .start = start,
    .start_bytes = start_bytes,
    .transform_bytes = transform_bytes,
    .create_transform = create_transform,
    .destroy = destroy,
};

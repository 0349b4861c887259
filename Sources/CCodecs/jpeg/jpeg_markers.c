// Marker segments of the native JPEG decoder: T.81 annex B, with libjpeg's tolerance.

#include "../memory/bytes.h"
#include "jpeg_codes.h"
#include "jpeg_decoder.h"

#include <string.h>

static bool fail(jpeg_decoder *d, ccodecs_status status, const char *reason) {
  ccodecs_decoder_fail(&d->base, status, "%s", reason);
  return false;
}

// MARK: Frame

static bool is_frame(uint8_t marker) {
  return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != DAC;
}

bool ccodecs_jpeg_native_supports(
    uint8_t sof_marker, uint8_t precision, uint8_t component_count, int32_t adobe_transform) {
  const bool is_huffman = sof_marker == SOF0 || sof_marker == SOF1 || sof_marker == SOF2;
  const bool is_color = component_count == 3 && adobe_transform != 0;
  return is_huffman && precision == 8 && (component_count == 1 || is_color);
}

static bool read_components(jpeg_decoder *d, const uint8_t *p) {
  d->max_horizontal = 1;
  d->max_vertical = 1;
  for (uint32_t i = 0; i < d->component_count; i++, p += 3) {
    jpeg_component *c = &d->components[i];
    c->id = p[0];
    c->horizontal = p[1] >> 4;
    c->vertical = p[1] & 15;
    c->quant_index = p[2];
    memset(c->known_bits, -1, sizeof c->known_bits);
    if (c->horizontal < 1 || c->horizontal > 4 || c->vertical < 1 || c->vertical > 4) {
      return fail(d, CCODECS_CORRUPT, "a sampling factor is not 1 to 4");
    }
    d->max_horizontal = c->horizontal > d->max_horizontal ? c->horizontal : d->max_horizontal;
    d->max_vertical = c->vertical > d->max_vertical ? c->vertical : d->max_vertical;
  }
  if (d->component_count == 1) { // its units are single blocks, whatever the factors are (T.81 A.2.2)
    d->components[0].horizontal = d->components[0].vertical = 1;
    d->max_horizontal = d->max_vertical = 1;
  }
  return true;
}

static bool read_frame(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  if (d->has_frame) {
    return fail(d, CCODECS_CORRUPT, "there are two frame headers");
  }
  if (count < 6) {
    return fail(d, CCODECS_CORRUPT, "the frame header is too short");
  }
  const uint8_t precision = p[0];
  d->base.header.height = ccodecs_be16(p + 1);
  d->base.header.width = ccodecs_be16(p + 3);
  if (d->base.header.width == 0 || d->base.header.height == 0 || p[5] == 0) {
    return fail(d, CCODECS_CORRUPT, "the frame header specifies an empty image");
  }
  if (count != 6 + 3 * (uint32_t)p[5]) {
    return fail(d, CCODECS_CORRUPT, "the frame header's length does not fit its components");
  }
  if (!ccodecs_jpeg_native_supports(d->marker, precision, p[5], -1)) {
    return fail(d, CCODECS_UNSUPPORTED, "the coding process, precision or component count is unsupported");
  }
  d->component_count = p[5];
  d->is_progressive = d->marker == SOF2;
  d->has_frame = true;
  return read_components(d, p + 6);
}

// MARK: Tables

static bool read_quant(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  while (count > 0) {
    const uint32_t index = p[0] & 15;
    const uint32_t width = p[0] >> 4 != 0 ? 2 : 1;
    if (index >= 4 || count < 1 + 64 * width) {
      return fail(d, CCODECS_CORRUPT, "a quantization table is out of range");
    }
    for (uint32_t i = 0; i < 64; i++) {
      const uint8_t *entry = p + 1 + i * width;
      d->quant[index][ccodecs_jpeg_zigzag[i]] = (uint16_t)(width == 2 ? ccodecs_be16(entry) : *entry);
    }
    d->has_quant[index] = true;
    p += 1 + 64 * width;
    count -= 1 + 64 * width;
  }
  return true;
}

static bool read_codes(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  while (count > 16) {
    uint32_t symbol_count = 0;
    for (uint32_t i = 1; i <= 16; i++) {
      symbol_count += p[i];
    }
    const uint32_t index = p[0] & ~16u;
    if (index >= 4 || symbol_count > 256 || symbol_count > count - 17) {
      return fail(d, CCODECS_CORRUPT, "a Huffman table is out of range");
    }
    jpeg_code *code = p[0] & 16 ? &d->ac_codes[index] : &d->dc_codes[index];
    memset(code, 0, sizeof *code);
    code->is_defined = true;
    memcpy(&code->counts[1], p + 1, 16);
    memcpy(code->symbols, p + 17, symbol_count);
    p += 17 + symbol_count;
    count -= 17 + symbol_count;
  }
  return count == 0 || fail(d, CCODECS_CORRUPT, "a Huffman table segment has a wrong length");
}

/// Arithmetic conditioning is unused here, but libjpeg requires it to be well-formed.
static bool check_conditioning(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  for (; count >= 2; p += 2, count -= 2) {
    if (p[0] >= 32 || (p[0] < 16 && (p[1] & 15) > p[1] >> 4)) {
      return fail(d, CCODECS_CORRUPT, "an arithmetic conditioning table is out of range");
    }
  }
  return count == 0 || fail(d, CCODECS_CORRUPT, "an arithmetic conditioning segment has a wrong length");
}

static bool read_restart_interval(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  if (count != 2) {
    return fail(d, CCODECS_CORRUPT, "a restart interval segment has a wrong length");
  }
  d->restart_interval = ccodecs_be16(p);
  return true;
}

// MARK: Applications

static void read_application(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  ccodecs_header *header = &d->base.header;
  if (d->marker == APP0 && count >= 14 && memcmp(p, "JFIF", 5) == 0) {
    d->has_jfif = true;
    header->warnings |= p[5] != 1 ? CCODECS_WARNING_DAMAGED : 0u;
  } else if (d->marker == APP14 && count >= 12 && memcmp(p, "Adobe", 5) == 0) {
    d->has_adobe = true;
    d->adobe_transform = p[11];
  } else if (d->marker == APP2 && count >= 4 && memcmp(p, "MPF", 4) == 0) {
    header->warnings |= ccodecs_mpf_has_more_images(p + 4, count - 4) ? CCODECS_WARNING_FIRST_FRAME : 0u;
  } else if (d->marker == APP1 && !d->has_exif && count >= 6 && memcmp(p, "Exif", 5) == 0) {
    bool is_broken = false;
    header->orientation = ccodecs_exif_orientation(p + 6, count - 6, &is_broken);
    header->warnings |= is_broken ? CCODECS_WARNING_BAD_EXIF : 0u;
    d->has_exif = true;
  }
}

/// Returns how many bytes of a segment must be buffered to read it.
static uint32_t wanted_bytes(const jpeg_decoder *d, uint32_t count) {
  uint32_t maximum;
  switch (d->marker) {
  case APP0:
    maximum = 14;
    break;
  case APP14:
    maximum = 12;
    break;
  case APP2:
    maximum = CCODECS_MPF_BYTES;
    break;
  case APP1:
    maximum = d->has_exif ? 0 : count;
    break;
  default:
    maximum = (d->marker > APP0 && d->marker <= APP15) || d->marker == COM || d->marker == DNL ? 0 : count;
    break;
  }
  return maximum < count ? maximum : count;
}

// MARK: Scan

/// Returns the component that libjpeg selects for an identifier, also if several components share it.
static jpeg_component *find_component(jpeg_decoder *d, uint8_t id) {
  for (uint32_t i = 0; i < d->component_count; i++) {
    if (d->components[i].id == id && d->scan.components[i] == NULL) {
      return &d->components[i];
    }
  }
  return NULL;
}

static bool read_scan(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  jpeg_scan *scan = &d->scan;
  if (!d->has_frame) {
    return fail(d, CCODECS_CORRUPT, "a scan comes before the frame header");
  }
  const uint32_t component_count = count >= 1 ? p[0] : 0;
  if (component_count < 1 || component_count > 4 || count != component_count * 2 + 4) {
    return fail(d, CCODECS_CORRUPT, "a scan header has a wrong length");
  }
  memset(scan, 0, sizeof *scan);
  p++;
  for (uint32_t i = 0; i < component_count; i++, p += 2) {
    jpeg_component *c = find_component(d, p[0]);
    bool is_twice = c == NULL || i >= 3;
    for (uint32_t j = 0; j < i && !is_twice; j++) {
      is_twice = scan->components[j] == c;
    }
    if (is_twice) {
      return fail(d, CCODECS_CORRUPT, "a scan specifies a missing component, or one twice");
    }
    scan->components[i] = c;
    c->dc_index = p[1] >> 4;
    c->ac_index = p[1] & 15;
  }
  scan->component_count = component_count;
  scan->spectral_start = p[0];
  scan->spectral_end = p[1];
  scan->high_bit = p[2] >> 4;
  scan->low_bit = p[2] & 15;
  d->scan_count++;
  return true;
}

// MARK: Segments

static bool read_segment(jpeg_decoder *d, const uint8_t *p, uint32_t count) {
  switch (d->marker) {
  case DQT:
    return read_quant(d, p, count);
  case DHT:
    return read_codes(d, p, count);
  case DAC:
    return check_conditioning(d, p, count);
  case DRI:
    return read_restart_interval(d, p, count);
  case SOS:
    return read_scan(d, p, count);
  default:
    if (is_frame(d->marker)) {
      return read_frame(d, p, count);
    }
    read_application(d, p, count);
    return true;
  }
}

/// Handles a marker whose code was read. Returns false when the marker ends the loop.
static bool begin_marker(jpeg_decoder *d, jpeg_marker_result *result) {
  const uint8_t marker = d->marker;
  if (ccodecs_jpeg_is_restart(marker) || marker == TEM) {
    d->step = JPEG_STEP_SEEK;
    return true;
  }
  if (marker == EOI) {
    *result = JPEG_MARKER_END;
    return false;
  }
  const bool is_application = ccodecs_jpeg_is_application(marker);
  if (is_frame(marker) && marker > SOF2 && marker != SOF9 && marker != SOF10) {
    *result = JPEG_MARKER_FAILED;
    return fail(d, CCODECS_UNSUPPORTED, "lossless and hierarchical JPEG are not supported");
  }
  if (!is_frame(marker) && marker != DHT && marker != DAC && marker != SOS && marker != DQT && marker != DNL &&
      marker != DRI && !is_application && marker != COM) {
    *result = JPEG_MARKER_FAILED;
    ccodecs_decoder_fail(
        &d->base, CCODECS_CORRUPT, marker == SOI ? "there are two SOI markers" : "marker 0x%02x is unknown", marker);
    return false;
  }
  d->step = JPEG_STEP_LENGTH_HIGH;
  return true;
}

static bool begin_body(jpeg_decoder *d) {
  // libjpeg treats lengths of 0 and 1 as empty in segments that it does not parse.
  const bool is_skippable = ccodecs_jpeg_is_application(d->marker) || d->marker == COM || d->marker == DNL;
  if (d->body_left < 2 && !is_skippable) {
    return fail(d, CCODECS_CORRUPT, "a segment's length is less than 2");
  }
  d->body_left = d->body_left < 2 ? 0 : d->body_left - 2;
  d->body_wanted = wanted_bytes(d, d->body_left);
  d->body_count = 0;
  d->step = JPEG_STEP_BODY;
  return true;
}

static bool reserve_body(jpeg_decoder *d) {
  if (d->body_capacity >= d->body_wanted) {
    return true;
  }
  ccodecs_free(d->base.budget, d->body);
  d->body_capacity = 0;
  d->body = ccodecs_allocate(d->base.budget, d->body_wanted);
  if (d->body == NULL) {
    return fail(d, CCODECS_NO_MEMORY, "no room for a marker segment");
  }
  d->body_capacity = d->body_wanted;
  return true;
}

/// Reads a segment's body: directly from the window if all of it is there, otherwise from a buffer. Sets *is_read when
/// the body was read.
static bool take_body(jpeg_decoder *d, ccodecs_input *window, bool *is_read) {
  *is_read = false;
  if (d->body_count == 0 && window->count >= d->body_wanted) {
    const uint8_t *p = window->bytes;
    ccodecs_input_advance(window, d->body_wanted);
    d->body_left -= d->body_wanted;
    *is_read = true;
    return read_segment(d, p, d->body_wanted);
  }
  if (!reserve_body(d)) {
    return false;
  }
  const uint32_t missing = d->body_wanted - d->body_count;
  const uint32_t count = window->count < missing ? (uint32_t)window->count : missing;
  memcpy(d->body + d->body_count, window->bytes, count);
  ccodecs_input_advance(window, count);
  d->body_count += count;
  d->body_left -= count;
  if (d->marker == APP1 && d->body_count >= 6 && memcmp(d->body, "Exif", 5) != 0) {
    *is_read = true; // XMP and other application data are not used
    return true;
  }
  *is_read = d->body_count == d->body_wanted;
  return !*is_read || read_segment(d, d->body, d->body_wanted);
}

void ccodecs_jpeg_markers_resume(jpeg_decoder *d, uint8_t marker) {
  d->marker = marker;
  d->step = JPEG_STEP_CODE;
}

/// Consumes one byte of a marker up to its length. Returns false when the loop ends.
static bool take_byte(jpeg_decoder *d, uint8_t byte, jpeg_marker_result *result) {
  switch (d->step) {
  case JPEG_STEP_START:
  case JPEG_STEP_START_CODE:
    if (byte != (d->step == JPEG_STEP_START ? 0xFF : SOI)) {
      *result = JPEG_MARKER_FAILED;
      return fail(d, CCODECS_CORRUPT, "the file does not start with SOI");
    }
    d->step = d->step == JPEG_STEP_START ? JPEG_STEP_START_CODE : JPEG_STEP_SEEK;
    return true;
  case JPEG_STEP_SEEK:
    if (byte == 0xFF) {
      d->marker = 0xFF;
      d->step = JPEG_STEP_CODE;
    } else {
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
    }
    return true;
  case JPEG_STEP_CODE:
    d->marker = byte;
    if (byte == 0) {
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      d->step = JPEG_STEP_SEEK;
    }
    return byte == 0 || byte == 0xFF || begin_marker(d, result);
  case JPEG_STEP_LENGTH_HIGH:
    d->body_left = (uint32_t)byte << 8;
    d->step = JPEG_STEP_LENGTH_LOW;
    return true;
  default: // JPEG_STEP_LENGTH_LOW
    d->body_left |= byte;
    *result = JPEG_MARKER_FAILED;
    return begin_body(d);
  }
}

jpeg_marker_result ccodecs_jpeg_markers_read(jpeg_decoder *d, ccodecs_input *window) {
  jpeg_marker_result result = JPEG_MARKER_NEEDS_INPUT;
  if (d->step == JPEG_STEP_CODE && d->marker != 0xFF && !begin_marker(d, &result)) { // resumed
    return result;
  }
  for (;;) {
    if (d->step == JPEG_STEP_SKIP) {
      const uint32_t count = window->count < d->body_left ? (uint32_t)window->count : d->body_left;
      ccodecs_input_advance(window, count);
      d->body_left -= count;
      if (d->body_left > 0) {
        return JPEG_MARKER_NEEDS_INPUT;
      }
      d->step = JPEG_STEP_SEEK;
      if (d->marker == SOS) {
        return JPEG_MARKER_SCAN;
      }
    } else if (d->step == JPEG_STEP_BODY) {
      bool is_read;
      if (!take_body(d, window, &is_read)) {
        return JPEG_MARKER_FAILED;
      }
      if (!is_read) {
        return JPEG_MARKER_NEEDS_INPUT;
      }
      d->step = JPEG_STEP_SKIP;
    } else {
      if (window->count == 0) {
        return JPEG_MARKER_NEEDS_INPUT;
      }
      const uint8_t byte = *window->bytes;
      ccodecs_input_advance(window, 1);
      if (!take_byte(d, byte, &result)) {
        return result;
      }
    }
  }
}

// The markers of a JPEG before its picture: what they say of it, and which a decoder needs.
//
// What can't be made sense of here is left to libjpeg-turbo, which gets the markers as they are and has the better
// message.

#include "jpeg.h"

#include <string.h>

ccodecs_status jpeg_no_room(jpeg_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "the budget has no room for the picture's decoder");
}

static uint32_t be16(const uint8_t *p) {
  return (uint32_t)p[0] << 8 | p[1];
}

// MARK: Segments. Each reader gets a segment's contents, without marker and length.

static void read_quantization(jpeg_decoder *d, const uint8_t *p, size_t count) {
  static const uint8_t order[64] = {
      0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
      41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
      30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
  };
  while (count >= 65 && p[0] <= 3) {
    for (int k = 0; k < 64; k++) {
      d->quantization[p[0]][order[k]] = p[1 + k];
    }
    d->has_quantization[p[0]] = true;
    p += 65;
    count -= 65;
  }
  d->is_baseline = d->is_baseline && count == 0;
}

static ccodecs_status read_huffman(jpeg_decoder *d, const uint8_t *p, size_t count) {
  if (d->tables == NULL) {
    d->tables = ccodecs_allocate(d->base.budget, 8 * sizeof *d->tables);
    if (d->tables == NULL) {
      return jpeg_no_room(d);
    }
    memset(d->tables, 0, 8 * sizeof *d->tables);
  }
  while (count >= 17) {
    size_t symbols = 0;
    for (int i = 0; i < 16; i++) {
      symbols += p[1 + i];
    }
    if ((p[0] & 0xEC) != 0 || symbols > 256 || count < 17 + symbols) {
      break;
    }
    const bool is_ac = p[0] >> 4 != 0;
    if (!jpeg_huffman_build(&d->tables[(is_ac ? 4 : 0) + (p[0] & 3)], p + 1, p + 17, is_ac)) {
      break;
    }
    p += 17 + symbols;
    count -= 17 + symbols;
  }
  d->is_baseline = d->is_baseline && count == 0;
  return CCODECS_OK;
}

static void read_frame(jpeg_decoder *d, uint8_t marker, const uint8_t *p, size_t count) {
  const bool is_known = (marker == JPEG_SOF0 || marker == JPEG_SOF1) && !d->has_frame && count >= 6 && p[0] == 8 &&
                        (p[5] == 1 || p[5] == 3) && count == 6 + 3u * p[5] && be16(p + 1) > 0 && be16(p + 3) > 0;
  d->has_frame = true;
  d->is_baseline = d->is_baseline && is_known;
  if (!is_known) {
    return;
  }
  d->base.header.height = be16(p + 1);
  d->base.header.width = be16(p + 3);
  d->component_count = p[5];
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < d->component_count; i++) {
    jpeg_component *c = &d->components[i];
    const uint8_t *q = p + 6 + 3 * i;
    c->id = q[0];
    c->across = q[1] >> 4;
    c->down = q[1] & 15;
    c->quantization_index = q[2];
    blocks += (uint32_t)c->across * c->down;
    d->is_baseline = d->is_baseline && c->across >= 1 && c->across <= 4 && c->down >= 1 && c->down <= 4 && q[2] <= 3;
  }
  // A single component is never interleaved, whatever its factors say.
  d->is_baseline = d->is_baseline && blocks <= 10 && (d->component_count == 3 || blocks == 1);
}

/// Whether three components are YCbCr, by the same signs as libjpeg-turbo goes by.
static bool is_ycbcr(const jpeg_decoder *d) {
  if (d->has_jfif) {
    return true;
  }
  if (d->adobe_transform >= 0) {
    return d->adobe_transform == 1;
  }
  const jpeg_component *c = d->components;
  return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

static void read_scan(jpeg_decoder *d, const uint8_t *p, size_t count) {
  const uint32_t n = d->component_count;
  if (!d->is_baseline || !d->has_frame || d->tables == NULL || count != 4 + 2 * n || p[0] != n ||
      (n == 3 && !is_ycbcr(d))) {
    d->is_baseline = false;
    return;
  }
  for (uint32_t i = 0; i < n && d->is_baseline; i++) {
    jpeg_component *c = &d->components[i];
    const uint8_t *q = p + 1 + 2 * i;
    if (q[0] != c->id || (q[1] & 0xCC) != 0) {
      d->is_baseline = false;
      return;
    }
    c->dc = &d->tables[q[1] >> 4];
    c->ac = &d->tables[4 + (q[1] & 3)];
    d->is_baseline = c->dc->is_set && c->ac->is_set && d->has_quantization[c->quantization_index];
  }
  const uint8_t *spectral = p + 1 + 2 * n;
  d->is_baseline = d->is_baseline && spectral[0] == 0 && spectral[1] == 63 && spectral[2] == 0;
}

static void read_application(jpeg_decoder *d, uint8_t marker, const uint8_t *p, size_t count) {
  if (marker == JPEG_APP0 && count >= 14 && memcmp(p, "JFIF\0", 5) == 0) {
    d->has_jfif = true;
  } else if (marker == JPEG_APP14 && count >= 12 && memcmp(p, "Adobe", 5) == 0) {
    d->adobe_transform = p[11];
  } else if (marker == JPEG_APP1 && !d->has_exif && count >= 6 && memcmp(p, "Exif\0", 5) == 0) {
    bool is_broken;
    d->base.header.orientation = ccodecs_exif_orientation(p + 6, count - 6, &is_broken);
    d->base.header.warnings |= is_broken ? CCODECS_WARNING_BAD_EXIF : 0;
    d->has_exif = true;
  } else if (marker == JPEG_APP2 && count >= 4 && memcmp(p, "MPF\0", 4) == 0) {
    d->base.header.warnings |= CCODECS_WARNING_FIRST_FRAME;
  }
}

static ccodecs_status read_segment(jpeg_decoder *d, uint8_t marker, const uint8_t *p, size_t count) {
  switch (marker) {
  case JPEG_DQT:
    read_quantization(d, p, count);
    return CCODECS_OK;
  case JPEG_DHT:
    return read_huffman(d, p, count);
  case JPEG_DRI:
    d->is_baseline = d->is_baseline && count == 2;
    d->restart_interval = count == 2 ? be16(p) : 0;
    return CCODECS_OK;
  case JPEG_SOS:
    read_scan(d, p, count);
    return CCODECS_OK;
  default:
    if (marker >= JPEG_APP0 && marker <= 0xEF) {
      read_application(d, marker, p, count);
    } else if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC8 && marker != 0xCC) {
      read_frame(d, marker, p, count);
    } else {
      d->is_baseline = false; // DAC, DNL, or nothing known: libjpeg-turbo's to judge
    }
    return CCODECS_OK;
  }
}

/// Whether a segment's contents are of use to a decoder, or only said something here.
static bool is_kept(const jpeg_decoder *d, uint8_t marker) {
  const uint8_t *contents = ccodecs_bytes_start(&d->marker) + 4;
  const bool is_application = marker >= JPEG_APP0 && marker <= 0xEF;
  const bool is_small = d->marker.count <= 64;
  return !is_application || (marker == JPEG_APP0 && is_small) || (marker == JPEG_APP14 && is_small) ||
         (marker == JPEG_APP1 && d->marker.count >= 9 && memcmp(contents, "Exif\0", 5) == 0 && !d->has_exif);
}

// MARK: Reading markers

/// Whether a marker's segment is passed over without a look at it.
static bool is_passed_over(const jpeg_decoder *d, uint8_t marker) {
  const bool is_application = marker >= JPEG_APP0 && marker <= 0xEF;
  const bool is_read = marker == JPEG_APP0 || marker == JPEG_APP14 || marker == JPEG_APP2 ||
                       (marker == JPEG_APP1 && !d->has_exif);
  return marker == JPEG_COM || (is_application && !is_read);
}

/// Moves up to `wanted` bytes of the marker that is being read from the window. True when they are all there.
static bool gather(jpeg_decoder *d, ccodecs_input *input, size_t wanted, ccodecs_status *status) {
  const size_t missing = wanted > d->marker.count ? wanted - d->marker.count : 0;
  const size_t count = input->count < missing ? input->count : missing;
  if (!ccodecs_bytes_append(&d->marker, input->bytes, count, d->base.budget)) {
    *status = jpeg_no_room(d);
    return false;
  }
  ccodecs_input_advance(input, count);
  return count == missing;
}

static ccodecs_status keep(jpeg_decoder *d, const uint8_t *bytes, size_t count) {
  return ccodecs_bytes_append(&d->markers, bytes, count, d->base.budget) ? CCODECS_OK : jpeg_no_room(d);
}

ccodecs_status jpeg_read_marker(jpeg_decoder *d, ccodecs_input *input, bool *is_scan) {
  ccodecs_status status = CCODECS_NEEDS_INPUT;
  if (d->skip > 0) {
    const size_t count = input->count < d->skip ? input->count : (size_t)d->skip;
    ccodecs_input_advance(input, count);
    d->skip -= count;
    return d->skip == 0 ? CCODECS_OK : CCODECS_NEEDS_INPUT;
  }
  // The second byte of a marker may be preceded by any number of fill bytes.
  while (d->marker.count < 2 && input->count > 0) {
    const uint8_t byte = *input->bytes;
    ccodecs_input_advance(input, 1);
    const bool is_marker = d->marker.count == 0 ? byte == 0xFF : byte != 0;
    if (!is_marker && !d->has_start) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the JPEG does not begin with its start marker");
    }
    if (!is_marker) { // bytes between segments
      d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
      ccodecs_bytes_take(&d->marker, d->marker.count);
    } else if (d->marker.count == 0 || byte != 0xFF) {
      if (!ccodecs_bytes_append(&d->marker, &byte, 1, d->base.budget)) {
        return jpeg_no_room(d);
      }
    }
  }
  if (d->marker.count < 2) {
    return CCODECS_NEEDS_INPUT;
  }
  const uint8_t marker = ccodecs_bytes_start(&d->marker)[1];
  if (marker == JPEG_SOI || marker == 0x01 || (marker >= JPEG_RST0 && marker <= 0xD7)) {
    if ((marker == JPEG_SOI) == d->has_start) {
      return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a JPEG marker is out of place");
    }
    d->has_start = true;
    status = keep(d, ccodecs_bytes_start(&d->marker), 2);
    ccodecs_bytes_take(&d->marker, 2);
    return status;
  }
  if (!d->has_start || marker == JPEG_EOI) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the JPEG holds no picture");
  }
  if (!gather(d, input, 4, &status)) {
    return status;
  }
  const size_t length = be16(ccodecs_bytes_start(&d->marker) + 2);
  if (length < 2 && is_passed_over(d, marker)) { // some writers count wrongly; the next marker is looked for
    d->base.header.warnings |= CCODECS_WARNING_DAMAGED;
    ccodecs_bytes_take(&d->marker, d->marker.count);
    return CCODECS_OK;
  }
  if (length < 2) {
    return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "a JPEG marker segment has no length");
  }
  if (is_passed_over(d, marker)) {
    d->skip = length - 2;
    ccodecs_bytes_take(&d->marker, d->marker.count);
    return CCODECS_OK;
  }
  if (!gather(d, input, length + 2, &status)) {
    return status;
  }
  const uint8_t *segment = ccodecs_bytes_start(&d->marker);
  const bool is_needed = is_kept(d, marker);
  status = read_segment(d, marker, segment + 4, length - 2);
  if (status == CCODECS_OK && is_needed) {
    status = keep(d, segment, length + 2);
  }
  ccodecs_bytes_take(&d->marker, d->marker.count);
  *is_scan = marker == JPEG_SOS;
  return status;
}

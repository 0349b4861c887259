// Arithmetic coding in the libjpeg-turbo based JPEG decoder. The library's arithmetic decoder cannot suspend, so all
// bytes are buffered before it runs. A truncated file ends there with an error. If truncation is tolerated and the
// image has several scans, an end marker is supplied, and the rows are produced from the scans that arrived.

#include "jpeg_turbo.h"

boolean ccodecs_jpeg_turbo_source_empty(j_decompress_ptr info) {
  static const JOCTET end[2] = {0xFF, JPEG_EOI};
  jpeg_turbo *d = (jpeg_turbo *)info->client_data;
  if (!d->has_all) {
    return FALSE;
  }
  if (!d->base.tolerates_truncation || !jpeg_has_multiple_scans(info)) {
    snprintf(d->base.message, sizeof d->base.message, "the JPEG data ends before the image");
    d->escape_status = CCODECS_TRUNCATED;
    longjmp(d->escape, 1);
  }
  d->base.header.warnings |= CCODECS_WARNING_TRUNCATED;
  d->has_ended = true;
  d->source.next_input_byte = end;
  d->source.bytes_in_buffer = sizeof end;
  return TRUE;
}

bool ccodecs_jpeg_turbo_has_too_many_scans(jpeg_turbo *d) {
  // The library can decode a scan from next to no bytes. A scan costs a sixteenth of producing the rows.
  const uint64_t pixels = (uint64_t)d->info.image_width * d->info.image_height;
  const uint64_t work = pixels + pixels / 16 * (uint64_t)d->info.input_scan_number;
  const uint64_t bytes = d->base.taken_bytes + d->source.bytes_in_buffer;
  if (!d->has_all || ccodecs_decoder_is_in_proportion(work, bytes)) {
    return false;
  }
  ccodecs_decoder_note_disproportion(&d->base, work, bytes);
  snprintf(
      d->base.message, sizeof d->base.message,
      "the image has too many scans for its size in bytes, by the limit max_pixels_per_byte of %llu",
      (unsigned long long)d->base.excess.limit);
  return true;
}

ccodecs_status ccodecs_jpeg_turbo_carry_all(jpeg_turbo *d, ccodecs_input *input) {
  if (!ccodecs_bytes_gather(&d->carry, input, SIZE_MAX, d->base.budget)) {
    return ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the file");
  }
  return CCODECS_NEEDS_INPUT;
}

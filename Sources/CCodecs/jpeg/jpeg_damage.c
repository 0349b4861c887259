// Damage inside a sequential scan of the native JPEG decoder, when it is tolerated: units stay gray up to the next
// restart marker that plausibly belongs to the scan.
//
// A marker's number indicates which of the next eight intervals it starts. The decoder trusts a marker that is up to
// two intervals ahead. One further ahead may itself be damaged or out of place, so it is trusted only when its number
// follows that of the marker before it. Markers that cannot occur inside a scan are skipped.

#include "jpeg_codes.h"
#include "jpeg_decoder.h"

#include <string.h>

enum { INTERVALS_AHEAD_MAX = 2, NUMBER_NONE = 8 };

uint32_t ccodecs_jpeg_damage_row(const jpeg_decoder *d) {
  const jpeg_scan *scan = &d->scan;
  const uint32_t unit_rows = 8 * d->max_vertical / (scan->component_count == 1 ? scan->components[0]->vertical : 1u);
  return scan->mcu_y * unit_rows;
}

ccodecs_status ccodecs_jpeg_damage_begin(jpeg_decoder *d, ccodecs_status failure) {
  if (!ccodecs_decoder_tolerate(&d->base, failure, ccodecs_jpeg_damage_row(d))) {
    return failure;
  }
  d->scan.is_lost = true;
  d->scan.likely_next = NUMBER_NONE;
  return CCODECS_OK;
}

/// Returns whether a marker (0: the end of the input) ends the scan, because damage alone does not explain it there.
/// Nothing after an only scan is needed, so everything except EOI is skipped there.
static bool is_end(const jpeg_decoder *d, uint8_t marker) {
  const bool is_segment = marker == SOS || marker == DHT || marker == DQT || marker == DRI;
  return marker == 0 || marker == EOI || (d->is_multiscan && is_segment);
}

/// Resumes at restart marker `marker`. Returns false when the scan cannot continue with it.
static bool resume(jpeg_decoder *d, uint8_t marker, uint64_t units_left) {
  jpeg_scan *scan = &d->scan;
  if (!ccodecs_jpeg_is_restart(marker) || d->restart_interval == 0) {
    return false;
  }
  const uint32_t number = marker - RST0;
  const uint32_t ahead = (number - scan->restart_next) & 7;
  const uint64_t passed = scan->restart_left + (uint64_t)ahead * d->restart_interval;
  const bool is_doubtful = ahead > INTERVALS_AHEAD_MAX && number != scan->likely_next;
  scan->likely_next = (number + 1) & 7;
  if (is_doubtful || passed >= units_left) {
    return false;
  }
  scan->gray_units = passed;
  scan->restart_left = d->restart_interval;
  scan->restart_next = (number + 1) & 7;
  memset(scan->predictions, 0, sizeof scan->predictions);
  return true;
}

ccodecs_status ccodecs_jpeg_damage_seek(jpeg_decoder *d, ccodecs_input *window) {
  jpeg_scan *scan = &d->scan;
  const uint64_t units_left = (uint64_t)scan->mcus_across * (scan->mcus_down - scan->mcu_y) - scan->mcu_x;
  while (scan->is_lost) {
    bool has_dropped = false;
    if (!ccodecs_jpeg_input_drop(&d->in, window, &has_dropped)) {
      return CCODECS_NEEDS_INPUT;
    }
    if (is_end(d, d->in.marker)) { // left for the code that follows the scan
      if (!d->has_units) {
        return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "no part of the damaged image can be decoded");
      }
      scan->gray_units = units_left;
      scan->is_lost = false;
    } else {
      scan->is_lost = !resume(d, d->in.marker, units_left);
      ccodecs_jpeg_input_reset(&d->in);
    }
  }
  return CCODECS_OK;
}

// Damage inside a sequential scan of the native JPEG decoder, where it is tolerated: units up to the next restart
// marker that can be one of the scan's stay gray.
//
// A marker's number says which of the next eight intervals it begins. Up to two ahead it is believed; further ahead it
// may be damage itself, or late, and is believed only of a marker that follows another in turn. Markers that no scan
// has inside it are passed over.

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

/// Whether a marker, or with 0 the end of the input, can't stand inside the scan by mere damage of it. Behind the only
/// scan nothing is needed, so that all else is passed over there.
static bool is_end(const jpeg_decoder *d, uint8_t marker) {
  const bool is_segment = marker == SOS || marker == DHT || marker == DQT || marker == DRI;
  return marker == 0 || marker == EOI || (d->is_multiscan && is_segment);
}

/// Goes on at restart marker `marker`. False when it is none that can come.
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
    if (is_end(d, d->in.marker)) { // which is left for what comes behind the scan
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

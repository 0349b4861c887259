// Compares overlays: every pair of alphas, and rows of any length and place.

#include "check.h"

#include <cpixels.h>
#include <string.h>

enum { PIXELS = 300, PLACES = 16 };

static uint8_t over[4 * PIXELS + PLACES], rows[3][4 * PIXELS + PLACES + GUARD];

/// Compares rows. `from` and `to` are where the pixels of the overlay and of the row begin.
static void check_row(size_t count, size_t from, size_t to) {
  const cpixels_blend blend = (cpixels_blend)(next_random() % 3);
  const uint32_t channels = 3 + next_random() % 2;
  memcpy(rows[0], rows[2], sizeof rows[0]);
  memcpy(rows[1], rows[2], sizeof rows[1]);
  cpixels_overlay(blend, over + from, rows[0] + to, channels, count, CPIXELS_ISA_SCALAR);
  cpixels_overlay(blend, over + from, rows[1] + to, channels, count, CPIXELS_ISA_BEST);
  report("overlay", memcmp(rows[0], rows[1], sizeof rows[0]) == 0);
}

/// Sets one alpha below all that an overlay can have.
static void set_alphas(uint8_t under) {
  for (size_t i = 0; i < PIXELS; i++) {
    over[4 * i + 3] = (uint8_t)i;
    rows[2][4 * i + 3] = under;
  }
}

void check_overlay(void) {
  for (uint32_t alpha = 0; alpha < 256; alpha++) {
    fill(over, sizeof over);
    fill(rows[2], sizeof rows[2]);
    check_row(alpha < 64 ? alpha : next_random() % PIXELS, next_random() % PLACES, next_random() % PLACES);
    set_alphas((uint8_t)alpha);
    check_row(PIXELS - alpha % 16, 0, 0);
  }
}

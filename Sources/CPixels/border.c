// Finding the border of an image. The loops have no branches, so that compilers vectorize them.

#include "cpixels.h"

void cpixels_border_mark(
    const uint8_t *row, const uint8_t *low, const uint8_t *high, size_t sample_count, uint8_t *marks) {
  for (size_t i = 0; i < sample_count; i++) {
    marks[i] = (uint8_t)((row[i] > high[i] ? 1 : 0) | (row[i] < low[i] ? 16 : 0));
  }
}

/// Whether a sum of nine marks has at least five of one kind: their median is then one of them.
static bool is_content(uint32_t sum) {
  return (sum & 15) >= 5 || sum >= 5 * 16;
}

bool cpixels_border_scan(
    const uint8_t *above, const uint8_t *marks, const uint8_t *below, size_t pixel_count, uint32_t channels,
    uint8_t *scratch, size_t *first, size_t *last) {
  const size_t count = pixel_count * channels;
  uint8_t *sums = scratch + channels;
  uint8_t any = 0;
  for (size_t i = 0; i < count; i++) {
    sums[i] = (uint8_t)(above[i] + marks[i] + below[i]);
    any |= sums[i];
  }
  if (any == 0) {
    return false;
  }
  for (uint32_t c = 0; c < channels; c++) {
    scratch[c] = sums[c];
    sums[count + c] = sums[count - channels + c];
  }
  size_t start = 0;
  while (start < count && !is_content((uint32_t)scratch[start] + sums[start] + sums[start + channels])) {
    start++;
  }
  if (start == count) {
    return false;
  }
  size_t end = count - 1;
  while (!is_content((uint32_t)scratch[end] + sums[end] + sums[end + channels])) {
    end--;
  }
  *first = start / channels;
  *last = end / channels;
  return true;
}

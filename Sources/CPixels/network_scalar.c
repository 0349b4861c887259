// The arithmetic of a network for any processor.

#define TARGET
#define LANES 4

#include "network_lanes.h"

INLINE pair every_other(const float *floats) {
  const lanes first = load_lanes(floats);
  const lanes second = load_lanes(floats + 4);
  return (pair){__builtin_shufflevector(first, second, 0, 2, 4, 6), __builtin_shufflevector(first, second, 1, 3, 5, 7)};
}

const cpixels_network_kernels cpixels_network_scalar = {.tap = tap, .weigh = weigh};

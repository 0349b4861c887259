#include "linear.h"

void ccodecs_linear_fill(ccodecs_linear *linear) {
  for (int i = 0; i <= CCODECS_LINEAR_STEPS; i++) {
    linear->signals[i] = (float)(65535 * ccodecs_srgb_signal(i / (double)CCODECS_LINEAR_STEPS));
  }
}

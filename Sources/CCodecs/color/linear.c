#include "linear.h"

#include <math.h>

void ccodecs_linear_fill(ccodecs_linear *linear) {
  for (int i = 0; i <= CCODECS_LINEAR_STEPS; i++) {
    const double light = i / (double)CCODECS_LINEAR_STEPS;
    const double value = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055;
    linear->signals[i] = (float)(65535 * value);
  }
}

// Linear light as eight bits. Private to CCodecs.

#ifndef CCODECS_LINEAR_H
#define CCODECS_LINEAR_H

#include <stdint.h>

enum { CCODECS_LINEAR_STEPS = 4096 };

/// Fills a table of the sRGB values of linear light, 0 to 1 in equal steps. Source: IEC 61966-2-1.
void ccodecs_linear_fill(uint8_t table[CCODECS_LINEAR_STEPS]);

/// The place of `light` in that table; what is out of its range, and what is no number, is brought into it.
static inline int ccodecs_linear_place(float light) {
  const float scaled = (CCODECS_LINEAR_STEPS - 1) * light + 0.5f;
  return !(scaled > 0) ? 0 : scaled > CCODECS_LINEAR_STEPS - 1 ? CCODECS_LINEAR_STEPS - 1 : (int)scaled;
}

#endif

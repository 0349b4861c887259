// Reading bits of a JPEG XL, the least significant first (ISO/IEC 18181-1 B.2). Private to the JPEG XL codec.

#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct jxl_bits {
  const uint8_t *bytes;
  uint64_t count; ///< Size in bits.
  uint64_t at;    ///< Position in bits; may exceed `count`, where all bits read as zero.
} jxl_bits;

static inline uint32_t jxl_read_bits(jxl_bits *r, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < count; i++, r->at++) {
    const uint32_t bit = r->at < r->count ? r->bytes[r->at / 8] >> (r->at % 8) & 1u : 0;
    value |= bit << i;
  }
  return value;
}

static inline bool jxl_read_bool(jxl_bits *r) {
  return jxl_read_bits(r, 1) != 0;
}

/// The four forms of a number: its bits, and what is added to them.
typedef struct jxl_forms {
  uint32_t bits[4];
  uint32_t added[4];
} jxl_forms;

/// Reads a number in one of four forms.
static inline uint32_t jxl_read_number(jxl_bits *r, const jxl_forms *forms) {
  const uint32_t choice = jxl_read_bits(r, 2);
  return jxl_read_bits(r, forms->bits[choice]) + forms->added[choice];
}

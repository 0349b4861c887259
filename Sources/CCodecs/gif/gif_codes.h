// Lempel-Ziv-Welch decoding for GIF frames, with codes of up to 12 bits. Private to CCodecs.
//
// Source: Welch, "A Technique for High-Performance Data Compression", 1984; GIF89a, appendix F.

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GIF_MAX_CODES = 4096, GIF_MAX_CODE_BITS = 12, GIF_NO_CODE = 0xFFFF };

/// The dictionary and the unread bits of the code stream.
typedef struct gif_codes {
  uint32_t least_bits; ///< Bits per pixel.
  uint32_t code_bits;
  uint64_t bits; ///< Unread bits, least significant first.
  uint32_t bit_count;
  uint32_t next_code;
  uint32_t previous; ///< The previous code, or GIF_NO_CODE after a clear code.
  uint16_t prefixes[GIF_MAX_CODES];
  uint16_t lengths[GIF_MAX_CODES];
  uint8_t suffixes[GIF_MAX_CODES];
  uint8_t firsts[GIF_MAX_CODES];
} gif_codes;

/// The kind of a code.
typedef enum gif_code_kind {
  GIF_CODE_STRING,
  GIF_CODE_CLEAR,
  GIF_CODE_END,
  GIF_CODE_BAD, ///< Not in the dictionary.
} gif_code_kind;

/// Clears the dictionary.
static inline void gif_codes_clear(gif_codes *c) {
  c->code_bits = c->least_bits + 1;
  c->next_code = (1u << c->least_bits) + 2;
  c->previous = GIF_NO_CODE;
}

/// Begins a frame whose pixels have `least_bits` bits, 0 to 11. Only the low 8 bits of an index are kept.
static inline void gif_codes_begin(gif_codes *c, uint32_t least_bits) {
  c->least_bits = least_bits;
  c->bits = 0;
  c->bit_count = 0;
  for (uint32_t i = 0; i < 1u << least_bits; i++) {
    c->prefixes[i] = 0;
    c->lengths[i] = 1;
    c->suffixes[i] = c->firsts[i] = (uint8_t)i;
  }
  gif_codes_clear(c);
}

/// Adds the string of `previous` with `suffix` appended.
static inline void gif_codes_add(gif_codes *c, uint8_t suffix) {
  const uint32_t code = c->next_code++;
  c->prefixes[code] = (uint16_t)c->previous;
  c->lengths[code] = (uint16_t)(c->lengths[c->previous] + 1);
  c->suffixes[code] = suffix;
  c->firsts[code] = c->firsts[c->previous];
  if (c->next_code >= 1u << c->code_bits && c->code_bits < GIF_MAX_CODE_BITS) {
    c->code_bits++;
  }
}

/// Consumes one code from `bits`, which must contain a complete code. A full dictionary does not change until it is
/// cleared.
static inline gif_code_kind gif_codes_take(gif_codes *c, uint32_t *code_found) {
  const uint32_t code = (uint32_t)c->bits & ((1u << c->code_bits) - 1);
  const uint32_t clear = 1u << c->least_bits;
  c->bits >>= c->code_bits;
  c->bit_count -= c->code_bits;
  *code_found = code;
  if (code == clear) {
    gif_codes_clear(c);
    return GIF_CODE_CLEAR;
  }
  if (code == clear + 1) {
    return GIF_CODE_END;
  }
  const bool may_add = c->previous != GIF_NO_CODE && c->next_code < GIF_MAX_CODES;
  const bool is_next = code == c->next_code && may_add;
  if (code >= c->next_code && !is_next) {
    return GIF_CODE_BAD;
  }
  if (may_add) {
    gif_codes_add(c, c->firsts[is_next ? c->previous : code]);
  }
  c->previous = code;
  return GIF_CODE_STRING;
}

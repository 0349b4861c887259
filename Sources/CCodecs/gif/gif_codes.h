// Lempel-Ziv-Welch decoding for GIF frames, with codes of up to 12 bits. Private to CCodecs.
//
// Source: Welch, "A Technique for High-Performance Data Compression", 1984; GIF89a, appendix F.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GIF_MAX_CODES = 4096, GIF_MAX_CODE_BITS = 12, GIF_NO_CODE = 0xFFFF, GIF_CHUNK_BYTES = 8 };

/// The place in the code stream. Loops keep a copy in registers.
typedef struct gif_place {
  uint64_t bits; ///< Unread bits, least significant first.
  uint32_t bit_count;
  uint32_t code_bits;
  uint32_t next_code;
  uint32_t previous; ///< The previous code, or GIF_NO_CODE after a clear code.
} gif_place;

/// The dictionary. A string is a chain of chunks, so that it is copied in words; the last one has 1 to 8 bytes.
typedef struct gif_codes {
  uint32_t least_bits; ///< Bits per pixel.
  gif_place place;
  uint16_t prefixes[GIF_MAX_CODES]; ///< The string before the last chunk.
  uint16_t lengths[GIF_MAX_CODES];
  uint8_t firsts[GIF_MAX_CODES];
  uint8_t chunks[GIF_MAX_CODES][GIF_CHUNK_BYTES];
} gif_codes;

/// The kind of a code.
typedef enum gif_code_kind {
  GIF_CODE_STRING,
  GIF_CODE_CLEAR,
  GIF_CODE_END,
  GIF_CODE_BAD, ///< Not in the dictionary.
} gif_code_kind;

/// Clears the dictionary.
static inline void gif_codes_clear(const gif_codes *c, gif_place *at) {
  at->code_bits = c->least_bits + 1;
  at->next_code = (1u << c->least_bits) + 2;
  at->previous = GIF_NO_CODE;
}

/// Begins a frame whose pixels have `least_bits` bits, 0 to 11. Only the low 8 bits of an index are kept.
static inline void gif_codes_begin(gif_codes *c, uint32_t least_bits) {
  c->least_bits = least_bits;
  c->place = (gif_place){0};
  for (uint32_t i = 0; i < 1u << least_bits; i++) {
    c->prefixes[i] = 0;
    c->lengths[i] = 1;
    c->chunks[i][0] = c->firsts[i] = (uint8_t)i;
  }
  gif_codes_clear(c, &c->place);
}

/// Adds the string of `previous` with `suffix` appended.
static inline void gif_codes_add(gif_codes *c, gif_place *at, uint8_t suffix) {
  const uint32_t code = at->next_code++, before = at->previous, length = c->lengths[before];
  c->prefixes[code] = length % GIF_CHUNK_BYTES == 0 ? (uint16_t)before : c->prefixes[before];
  c->lengths[code] = (uint16_t)(length + 1);
  c->firsts[code] = c->firsts[before];
  memcpy(c->chunks[code], c->chunks[before], GIF_CHUNK_BYTES);
  c->chunks[code][length % GIF_CHUNK_BYTES] = suffix;
  if (at->next_code >= 1u << at->code_bits && at->code_bits < GIF_MAX_CODE_BITS) {
    at->code_bits++;
  }
}

/// Consumes one code from the bits, which must contain a complete code. A full dictionary does not change until it is
/// cleared.
static inline gif_code_kind gif_codes_take(gif_codes *c, gif_place *at, uint32_t *code_found) {
  const uint32_t code = (uint32_t)at->bits & ((1u << at->code_bits) - 1);
  const uint32_t clear = 1u << c->least_bits;
  at->bits >>= at->code_bits;
  at->bit_count -= at->code_bits;
  *code_found = code;
  if (code == clear) {
    gif_codes_clear(c, at);
    return GIF_CODE_CLEAR;
  }
  if (code == clear + 1) {
    return GIF_CODE_END;
  }
  const bool may_add = at->previous != GIF_NO_CODE && at->next_code < GIF_MAX_CODES;
  const bool is_next = code == at->next_code && may_add;
  if (code >= at->next_code && !is_next) {
    return GIF_CODE_BAD;
  }
  if (may_add) {
    gif_codes_add(c, at, c->firsts[is_next ? at->previous : code]);
  }
  at->previous = code;
  return GIF_CODE_STRING;
}

/// Writes the first `count` bytes of the string of a code, and up to a chunk less one beyond them. Returns the smaller
/// of `count` and the string's length.
static inline size_t gif_codes_copy(const gif_codes *c, uint32_t code, size_t count, uint8_t *out) {
  const size_t length = c->lengths[code], copied = length < count ? length : count;
  for (size_t end = length; end > 0; code = c->prefixes[code]) {
    end = (end - 1) / GIF_CHUNK_BYTES * GIF_CHUNK_BYTES;
    if (end < copied) {
      memcpy(out + end, c->chunks[code], GIF_CHUNK_BYTES);
    }
  }
  return copied;
}

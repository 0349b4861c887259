// Lempel-Ziv-Welch decoding for GIF frames, with codes of up to 12 bits. Private to CCodecs.
//
// Source: Welch, "A Technique for High-Performance Data Compression", 1984; GIF89a, appendix F.

#pragma once

#include "../memory/bytes.h"

enum { GIF_MAX_CODES = 4096, GIF_MAX_CODE_BITS = 12, GIF_NO_CODE = 0xFFFF, GIF_CHUNK_BYTES = 8 };

/// The place in the code stream. Loops keep a copy in registers.
typedef struct gif_place {
  uint64_t bits; ///< Unread bits, least significant first.
  uint32_t bit_count;
  uint32_t code_bits;
  uint32_t next_code;
  uint32_t previous; ///< The previous code, or GIF_NO_CODE after a clear code.
} gif_place;

/// A string, as a chain of chunks, so that it is copied in words.
typedef struct gif_string {
  uint64_t chunk;  ///< The last 1 to 8 indices, the first one in the lowest byte. The others are 0.
  uint16_t prefix; ///< The string before the chunk.
  uint16_t length;
  uint8_t first;
} gif_string;

/// The dictionary.
typedef struct gif_codes {
  uint32_t min_bits; ///< Bits per pixel.
  gif_place place;
  gif_string strings[GIF_MAX_CODES];
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
  at->code_bits = c->min_bits + 1;
  at->next_code = (1u << c->min_bits) + 2;
  at->previous = GIF_NO_CODE;
}

/// Begins a frame whose pixels have `least_bits` bits, 0 to 11. Only the low 8 bits of an index are kept.
static inline void gif_codes_begin(gif_codes *c, uint32_t min_bits) {
  c->min_bits = min_bits;
  c->place = (gif_place){0};
  for (uint32_t i = 0; i < 1u << min_bits; i++) {
    c->strings[i] = (gif_string){.chunk = (uint8_t)i, .length = 1, .first = (uint8_t)i};
  }
  gif_codes_clear(c, &c->place);
}

/// Adds the string of `previous` with `suffix` appended.
static inline void gif_codes_add(gif_codes *c, gif_place *at, uint8_t suffix) {
  const gif_string *before = c->strings + at->previous;
  const uint32_t count = before->length % GIF_CHUNK_BYTES;
  c->strings[at->next_code++] = (gif_string){
      .chunk = (count == 0 ? 0 : before->chunk) | (uint64_t)suffix << 8 * count,
      .prefix = count == 0 ? (uint16_t)at->previous : before->prefix,
      .length = (uint16_t)(before->length + 1),
      .first = before->first,
  };
  if (at->next_code >= 1u << at->code_bits && at->code_bits < GIF_MAX_CODE_BITS) {
    at->code_bits++;
  }
}

/// Consumes one code from the bits, which must contain a complete code. A full dictionary does not change until it is
/// cleared.
static inline gif_code_kind gif_codes_take(gif_codes *c, gif_place *at, uint32_t *code_found) {
  const uint32_t code = (uint32_t)at->bits & ((1u << at->code_bits) - 1);
  const uint32_t clear = 1u << c->min_bits;
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
    gif_codes_add(c, at, c->strings[is_next ? at->previous : code].first);
  }
  at->previous = code;
  return GIF_CODE_STRING;
}

/// Writes the first `count` bytes of the string of a code, and up to a chunk less one beyond them. Returns the smaller
/// of `count` and the string's length.
static inline size_t gif_codes_copy(const gif_codes *c, uint32_t code, size_t count, uint8_t *out) {
  const size_t length = c->strings[code].length, copied = length < count ? length : count;
  for (size_t end = length; end > 0; code = c->strings[code].prefix) {
    end = (end - 1) / GIF_CHUNK_BYTES * GIF_CHUNK_BYTES;
    if (end < copied) {
      ccodecs_put_le64(out + end, c->strings[code].chunk);
    }
  }
  return copied;
}

// Whether an index extends the string is hard to predict in noise, so the encoder does not branch on it: it writes the
// string's slot and the code in any case, and advances only if the string is new. As each code adds a string until the
// dictionary is full, codes are buffered as the prefixes of strings, and packed into bits afterwards.

#include "gif_lzw.h"

#include <string.h>

enum { MAX_CODE_BITS = 12 };

static const uint32_t no_code = UINT32_MAX;

/// Stages a code.
static void put_code(gif_lzw *z, uint32_t code) {
  z->bits |= (uint64_t)code << z->bit_count;
  ccodecs_put_le32(z->staged + z->staged_count, (uint32_t)z->bits);
  z->bit_count += z->code_bits;
  z->staged_count += z->bit_count / 8;
  z->bits >>= z->bit_count / 8 * 8;
  z->bit_count %= 8;
}

/// Stages buffered codes. The decoder adds a string one code later than the encoder, and widens its codes then.
static void put_codes(gif_lzw *z) {
  uint8_t *staged = z->staged + z->staged_count;
  uint64_t bits = z->bits;
  uint32_t code_bits = z->code_bits, bit_count = z->bit_count;
  for (uint32_t next = z->next_packed; next < z->next_code;) {
    const uint32_t widened = 1u << code_bits, end = widened < z->next_code ? widened + 1 : z->next_code;
    for (; next < end; next++) {
      bits |= (uint64_t)z->prefixes[next] << bit_count;
      ccodecs_put_le32(staged, (uint32_t)bits);
      bit_count += code_bits;
      staged += bit_count / 8;
      bits >>= bit_count / 8 * 8;
      bit_count %= 8;
    }
    code_bits += next == widened + 1 ? 1 : 0;
  }
  z->staged_count = (uint32_t)(staged - z->staged);
  z->bits = bits;
  z->bit_count = bit_count;
  z->code_bits = code_bits;
  z->next_packed = z->next_code;
}

/// Writes the staged bytes as sub-blocks, the last one too if it is not complete and `is_end` is set.
static void flush(gif_lzw *z, bool is_end) {
  uint32_t first = 0;
  while (z->staged_count - first >= GIF_LZW_BLOCK_BYTES || (is_end && z->staged_count > first)) {
    const uint32_t left = z->staged_count - first;
    const uint8_t size = (uint8_t)(left < GIF_LZW_BLOCK_BYTES ? left : GIF_LZW_BLOCK_BYTES);
    z->has_failed |= !ccodecs_bytes_append(z->output, &size, 1, z->budget) ||
                     !ccodecs_bytes_append(z->output, z->staged + first, size, z->budget);
    first += size;
  }
  z->staged_count -= first;
  memmove(z->staged, z->staged + first, z->staged_count);
}

/// Stages a clear code, and forgets all strings.
static void clear(gif_lzw *z) {
  put_code(z, 1u << z->least_bits);
  memset(z->strings, 0, sizeof z->strings);
  z->code_bits = z->least_bits + 1;
  z->next_code = z->next_packed = (1u << z->least_bits) + 2;
}

void ccodecs_gif_lzw_begin(gif_lzw *z, uint32_t least_bits, ccodecs_bytes *output, ccodecs_budget *budget) {
  z->output = output;
  z->budget = budget;
  z->least_bits = least_bits;
  z->code_bits = least_bits + 1;
  z->prefix = no_code;
  z->bits = 0;
  z->bit_count = 0;
  z->staged_count = 0;
  const uint8_t size = (uint8_t)least_bits;
  z->has_failed = !ccodecs_bytes_append(output, &size, 1, budget);
  clear(z);
}

/// Returns the prefix and suffix of a string, where a slot has them.
static uint32_t key_of(uint32_t prefix, uint8_t index) {
  return prefix << (MAX_CODE_BITS + 8) | (uint32_t)index << MAX_CODE_BITS;
}

/// Returns the slot where a string belongs. The strings that one index extends have slots of their own.
static uint32_t slot_of(uint32_t prefix, uint8_t index) {
  return (prefix << 1 ^ index * 0x9e35u) % GIF_LZW_SLOTS;
}

/// Returns whether a slot has another string than the wanted one, whose code is 0. Does not branch, as most slots have
/// that string or are free.
static bool is_other(uint32_t string, uint32_t wanted) {
  return (uint64_t)((string ^ wanted) >> MAX_CODE_BITS) * string != 0;
}

/// Adds the strings of indices to a dictionary that is not full. Returns how many indices were consumed: all, or those
/// with which it has become full.
static size_t add_strings(gif_lzw *z, const uint8_t *indices, size_t count) {
  uint32_t prefix = z->prefix, next_code = z->next_code;
  size_t i = 0;
  for (; i < count && next_code < GIF_LZW_CODES; i++) {
    const uint32_t wanted = key_of(prefix, indices[i]);
    uint32_t slot = slot_of(prefix, indices[i]);
    uint32_t string = z->strings[slot];
    while (__builtin_expect(is_other(string, wanted), false)) {
      slot = (slot + 1) % GIF_LZW_SLOTS;
      string = z->strings[slot];
    }
    const bool is_new = string == 0;
    z->prefixes[next_code] = (uint16_t)prefix;
    string = is_new ? wanted | next_code : string;
    z->strings[slot] = string;
    prefix = is_new ? indices[i] : string % GIF_LZW_CODES;
    next_code += is_new ? 1 : 0;
  }
  z->prefix = prefix;
  z->next_code = next_code;
  return i;
}

/// Looks indices up in a full dictionary. Returns how many were consumed: all, or those with which it was cleared.
static size_t find_strings(gif_lzw *z, const uint8_t *indices, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint32_t wanted = key_of(z->prefix, indices[i]);
    uint32_t slot = slot_of(z->prefix, indices[i]);
    while (is_other(z->strings[slot], wanted)) {
      slot = (slot + 1) % GIF_LZW_SLOTS;
    }
    if (z->strings[slot] == 0) {
      put_code(z, z->prefix);
      clear(z);
      z->prefix = indices[i];
      return i + 1;
    }
    z->prefix = z->strings[slot] % GIF_LZW_CODES;
  }
  return count;
}

void ccodecs_gif_lzw_write(gif_lzw *z, const uint8_t *indices, size_t count) {
  if (z->prefix == no_code && count > 0) {
    z->prefix = *indices++;
    count--;
  }
  while (count > 0) {
    const bool is_full = z->next_code == GIF_LZW_CODES;
    const size_t taken = is_full ? find_strings(z, indices, count) : add_strings(z, indices, count);
    put_codes(z);
    flush(z, false);
    indices += taken;
    count -= taken;
  }
}

bool ccodecs_gif_lzw_end(gif_lzw *z) {
  if (z->prefix != no_code) {
    put_code(z, z->prefix);
    // The decoder adds a string for this code, after which its codes may be longer.
    if (z->next_code == 1u << z->code_bits && z->code_bits < MAX_CODE_BITS) {
      z->code_bits++;
    }
  }
  put_code(z, (1u << z->least_bits) + 1);
  z->staged_count += z->bit_count > 0 ? 1 : 0;
  flush(z, true);
  const uint8_t end = 0;
  return ccodecs_bytes_append(z->output, &end, 1, z->budget) && !z->has_failed;
}

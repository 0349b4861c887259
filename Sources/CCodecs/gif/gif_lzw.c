// Whether an index extends the string is hard to predict in noise, so the encoder does not branch on it: it writes the
// string's slot and the code in any case, and advances only if the string is new. As each code adds a string until the
// dictionary is full, codes are buffered as the prefixes of strings, and packed into bits afterwards.
//
// Most indices of drawings are equal to their neighbors. The codes of strings that repeat one index are therefore also
// kept by their length, so that a run of indices takes one step for each code instead of one for each index.

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
    while (next < end) {
      const uint32_t *keys = z->keys + next;
      const uint32_t count = end - next < 4 ? 1 : 4;
      uint64_t packed = keys[0] >> 8;
      for (uint32_t i = 1; i < 4 && count == 4; i++) {
        packed |= (uint64_t)(keys[i] >> 8) << i * code_bits;
      }
      bits |= packed << bit_count;
      ccodecs_put_le64(staged, bits);
      bit_count += count * code_bits;
      staged += bit_count / 8;
      bits >>= bit_count / 8 * 8;
      bit_count %= 8;
      next += count;
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
  put_code(z, 1u << z->min_bits);
  memset(z->slots, 0, sizeof z->slots);
  for (int i = 0; i < GIF_LZW_RUNS; i++) {
    z->runs[i].length = 0;
  }
  z->code_bits = z->min_bits + 1;
  z->next_code = z->next_packed = (1u << z->min_bits) + 2;
}

void ccodecs_gif_lzw_begin(gif_lzw *z, uint32_t min_bits, ccodecs_bytes *output, ccodecs_budget *budget) {
  z->output = output;
  z->budget = budget;
  z->min_bits = min_bits;
  z->code_bits = min_bits + 1;
  z->prefix = no_code;
  z->run_length = 0;
  z->bits = 0;
  z->bit_count = 0;
  z->staged_count = 0;
  const uint8_t size = (uint8_t)min_bits;
  z->has_failed = !ccodecs_bytes_append(output, &size, 1, budget);
  clear(z);
}

/// Returns the slot of a string, or the free one where it belongs, and the code in it, which is 0 if it is free. Does
/// not branch on that. The strings that one index extends have slots of their own.
static inline uint32_t find_slot(const gif_lzw *z, uint32_t prefix, uint8_t index, uint32_t *found) {
  const uint32_t key = prefix << 8 | index;
  uint32_t slot = (prefix << 2 ^ index * 0x9e35u) % GIF_LZW_SLOTS, code = z->slots[slot];
  while (__builtin_expect((z->keys[code] ^ key) * code != 0, false)) {
    slot = (slot + 1) % GIF_LZW_SLOTS;
    code = z->slots[slot];
  }
  *found = code;
  return slot;
}

/// Adds a string with the next code unless the dictionary has it. Returns its code if it had, or 0.
static inline uint32_t add_string(gif_lzw *z, uint32_t prefix, uint8_t index, uint32_t next_code) {
  uint32_t found;
  const uint32_t slot = find_slot(z, prefix, index, &found);
  z->keys[next_code] = prefix << 8 | index;
  z->slots[slot] = (uint16_t)(found == 0 ? next_code : found);
  return found;
}

/// Returns the strings that repeat an index.
static gif_lzw_run *run_of(gif_lzw *z, uint8_t index) {
  gif_lzw_run *run = z->runs + index % GIF_LZW_RUNS;
  if (run->length == 0 || run->codes[1] != index) {
    run->length = 1;
    run->codes[1] = index;
  }
  return run;
}

/// As add_strings, for indices that are all equal.
static size_t add_run(gif_lzw *z, uint8_t index, size_t count) {
  gif_lzw_run *run = run_of(z, index);
  uint32_t prefix = z->prefix, next_code = z->next_code;
  uint32_t length = z->run_length <= run->length && run->codes[z->run_length] == prefix ? z->run_length : 0;
  size_t left = count;
  while (left > 0 && next_code < GIF_LZW_CODES) {
    length = prefix == index ? 1 : length;
    if (length > 0 && length < run->length) {
      const uint32_t known = run->length - length, more = left < known ? (uint32_t)left : known;
      length += more;
      left -= more;
      prefix = run->codes[length];
      continue;
    }
    const uint32_t found = add_string(z, prefix, index, next_code);
    left--;
    length = length > 0 && length + 1 < GIF_LZW_RUN_CODES ? length + 1 : 0;
    if (length > 0) {
      run->codes[length] = (uint16_t)(found == 0 ? next_code : found);
      run->length = length;
    }
    prefix = found == 0 ? index : found;
    next_code += found == 0 ? 1 : 0;
  }
  z->run_length = length;
  z->prefix = prefix;
  z->next_code = next_code;
  return count - left;
}

/// Returns how many of the indices equal the first one if at least nine do, or 0.
static size_t count_run(const uint8_t *indices, size_t count) {
  size_t i = 0;
  while (i + 9 <= count && ccodecs_le64(indices + i) == ccodecs_le64(indices + i + 1)) {
    i += 8;
  }
  while (i > 0 && i < count && indices[i] == indices[0]) {
    i++;
  }
  return i;
}

/// Adds the strings of indices to a dictionary that is not full. Returns how many indices were consumed: all, or those
/// with which it has become full.
static size_t add_strings(gif_lzw *z, const uint8_t *indices, size_t count) {
  size_t i = 0;
  while (i < count && z->next_code < GIF_LZW_CODES) {
    const size_t run = count_run(indices + i, count - i), end = count - i < 8 ? count : i + 8;
    if (run > 0) {
      i += add_run(z, indices[i], run);
      continue;
    }
    uint32_t prefix = z->prefix, next_code = z->next_code;
    for (; i < end && next_code < GIF_LZW_CODES; i++) {
      const uint8_t index = indices[i];
      const uint32_t found = add_string(z, prefix, index, next_code);
      prefix = found == 0 ? index : found;
      next_code += found == 0 ? 1 : 0;
    }
    z->prefix = prefix;
    z->next_code = next_code;
  }
  return i;
}

/// Looks indices up in a full dictionary. Returns how many were consumed: all, or those with which it was cleared.
static size_t find_strings(gif_lzw *z, const uint8_t *indices, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t found;
    (void)find_slot(z, z->prefix, indices[i], &found);
    if (found == 0) {
      put_code(z, z->prefix);
      clear(z);
      z->prefix = indices[i];
      return i + 1;
    }
    z->prefix = found;
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
  put_code(z, (1u << z->min_bits) + 1);
  z->staged_count += z->bit_count > 0 ? 1 : 0;
  flush(z, true);
  const uint8_t end = 0;
  return ccodecs_bytes_append(z->output, &end, 1, z->budget) && !z->has_failed;
}

#include "jpeg_entropy.h"

#include <string.h>

/// T.81, figure A.6: row * 8 + column of each zigzag index.
static const uint8_t natural_order[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

void jpeg_zigzag_init(jpeg_zigzag *zigzag, int scale) {
  zigzag->last = 0;
  for (int k = 0; k < 64; k++) {
    const int row = natural_order[k] / 8;
    const int column = natural_order[k] % 8;
    const bool is_needed = row < scale && column < scale;
    zigzag->slot[k] = (int8_t)(is_needed ? row * scale + column : -1);
    zigzag->last = is_needed ? k : zigzag->last;
  }
}

// MARK: Tables

/// A value of `size` bits as T.81 codes it (table F.1): the upper half is positive.
static int32_t extend(int32_t bits, int size) {
  return size == 0 || bits >= 1 << (size - 1) ? bits : bits - (1 << size) + 1;
}

/// The codes of the table, left-aligned to 16 bits, in the order of their symbols. Returns their number, or -1.
static int make_codes(jpeg_huffman *table, const uint8_t counts[16], uint16_t codes[256], uint8_t lengths[256]) {
  int32_t code = 0;
  int n = 0;
  for (int length = 1; length <= 16; length++) {
    table->first_index[length] = n - code;
    for (int i = 0; i < counts[length - 1]; i++, code++, n++) {
      if (n == 256 || code >= 1 << length) {
        return -1;
      }
      codes[n] = (uint16_t)(code << (16 - length));
      lengths[n] = (uint8_t)length;
    }
    if (code > 1 << length) {
      return -1;
    }
    table->largest_code[length] = code << (16 - length);
    code <<= 1;
  }
  table->largest_code[17] = INT32_MAX;
  return n;
}

static void fill_symbols(jpeg_huffman *table, uint16_t code, int length, uint8_t symbol, bool is_ac) {
  if (length > JPEG_VALUE_BITS) {
    return;
  }
  const int first = code >> (16 - JPEG_VALUE_BITS);
  const int size = symbol & 15;
  for (int i = first; i < first + (1 << (JPEG_VALUE_BITS - length)); i++) {
    table->symbols[i] = (uint16_t)(length | symbol << 8);
    if (is_ac && size > 0 && length + size <= JPEG_VALUE_BITS) {
      const int32_t value = extend(i >> (JPEG_VALUE_BITS - length - size) & ((1 << size) - 1), size);
      table->values[i] = (int32_t)((uint32_t)value << 16 | (uint32_t)(symbol >> 4) << 8 | (uint32_t)(length + size));
    }
  }
}

/// For every pattern of bits, the symbols with their values that lie wholly within it.
static void fill_skips(jpeg_huffman *table) {
  for (int pattern = 0; pattern < 1 << JPEG_SKIP_BITS; pattern++) {
    int used = 0;
    int passed = 0;
    bool is_end = false;
    while (used < JPEG_SKIP_BITS && !is_end) {
      const int rest = pattern << used & ((1 << JPEG_SKIP_BITS) - 1);
      const uint16_t entry = table->symbols[rest >> (JPEG_SKIP_BITS - JPEG_VALUE_BITS)];
      const int length = entry & 255;
      const int symbol = entry >> 8;
      const int total = length + (symbol & 15);
      const int step = (symbol >> 4) + 1;
      if (length == 0 || used + total > JPEG_SKIP_BITS || passed + step > 63) {
        break;
      }
      is_end = (symbol & 15) == 0 && symbol != 0xF0;
      used += total;
      passed += is_end ? 0 : step;
    }
    table->skips[pattern] = (uint16_t)(used | passed << 8 | (is_end ? 1 << 15 : 0));
  }
}

bool jpeg_huffman_build(jpeg_huffman *table, const uint8_t counts[16], const uint8_t *symbols, bool is_ac) {
  uint16_t codes[256];
  uint8_t lengths[256];
  memset(table, 0, sizeof *table);
  const int count = make_codes(table, counts, codes, lengths);
  if (count <= 0) {
    return false;
  }
  for (int i = 0; i < count; i++) {
    if (!is_ac && symbols[i] > 11) {
      return false;
    }
    table->symbol[i] = symbols[i];
    fill_symbols(table, codes[i], lengths[i], symbols[i], is_ac);
  }
  if (is_ac) {
    fill_skips(table);
  }
  table->is_set = true;
  return true;
}

// MARK: Bits

static inline __attribute__((always_inline)) void refill(jpeg_bits *bits) {
  uint64_t word;
  memcpy(&word, bits->next, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  bits->buffer |= word >> bits->count;
  bits->next += (63 - bits->count) >> 3;
  bits->count |= 56;
}

static inline __attribute__((always_inline)) uint32_t peek(const jpeg_bits *bits, int count) {
  return (uint32_t)(bits->buffer >> (64 - count));
}

static inline __attribute__((always_inline)) void drop(jpeg_bits *bits, int count) {
  bits->buffer <<= count;
  bits->count -= count;
}

/// The next symbol, whatever its length; -1 when no code matches. Its code is dropped. Needs 16 bits.
static inline int next_symbol(jpeg_bits *bits, const jpeg_huffman *table) {
  const uint16_t entry = table->symbols[peek(bits, JPEG_VALUE_BITS)];
  if ((entry & 255) != 0) {
    drop(bits, entry & 255);
    return entry >> 8;
  }
  const int32_t code = (int32_t)peek(bits, 16);
  int length = JPEG_VALUE_BITS + 1;
  while (code >= table->largest_code[length]) {
    length++;
  }
  if (length > 16) {
    return -1;
  }
  drop(bits, length);
  return table->symbol[table->first_index[length] + (code >> (16 - length))];
}

// MARK: Blocks

/// Passes over what is left of a block from zigzag index `k` on.
static inline __attribute__((always_inline)) bool skip_rest(jpeg_bits *bits, const jpeg_huffman *ac, int k) {
  while (k < 64) {
    refill(bits);
    const uint16_t skip = ac->skips[peek(bits, JPEG_SKIP_BITS)];
    const int passed = skip >> 8 & 127;
    // What follows a block's last coefficient belongs to the next block.
    if ((skip & 255) != 0 && k + passed <= 63) {
      drop(bits, skip & 255);
      k += passed;
      if (skip >> 15) {
        return true;
      }
      continue;
    }
    const int symbol = next_symbol(bits, ac);
    if (symbol < 0) {
      return false;
    }
    if ((symbol & 15) == 0 && symbol != 0xF0) {
      return true;
    }
    drop(bits, symbol & 15);
    k += (symbol >> 4) + 1;
  }
  return true;
}

bool jpeg_decode_block(
    jpeg_bits *bits, const jpeg_huffman *dc, const jpeg_huffman *ac, const jpeg_zigzag *zigzag, int *prediction,
    int16_t *coefficients, size_t stride) {
  refill(bits);
  const int size = next_symbol(bits, dc);
  if (size < 0) {
    return false;
  }
  if (size > 0) {
    // Hostile differences may add up beyond an int.
    *prediction = (int)((unsigned)*prediction + (unsigned)extend((int32_t)peek(bits, size), size));
    drop(bits, size);
  }
  coefficients[0] = (int16_t)*prediction;
  int k = 1;
  while (k <= zigzag->last) {
    refill(bits);
    int run;
    int32_t value;
    const int32_t entry = ac->values[peek(bits, JPEG_VALUE_BITS)];
    if (entry != 0) {
      drop(bits, entry & 255);
      run = entry >> 8 & 255;
      value = entry >> 16;
    } else {
      const int symbol = next_symbol(bits, ac);
      const int bit_count = symbol & 15;
      if (symbol < 0) {
        return false;
      }
      if (bit_count == 0 && symbol != 0xF0) {
        return true;
      }
      run = symbol >> 4;
      value = bit_count == 0 ? 0 : extend((int32_t)peek(bits, bit_count), bit_count);
      drop(bits, bit_count);
    }
    k += run;
    if (k > 63) {
      return true;
    }
    if (zigzag->slot[k] >= 0) {
      coefficients[(size_t)zigzag->slot[k] * stride] = (int16_t)value;
    }
    k++;
  }
  return skip_rest(bits, ac, k);
}

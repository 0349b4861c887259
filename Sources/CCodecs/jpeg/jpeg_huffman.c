// Huffman tables of the native JPEG decoder: T.81 annex C and F.2.2, and the lookup tables derived from them.

#include "jpeg_decoder.h"

#include <string.h>

/// A symbol's code.
typedef struct jpeg_word {
  uint32_t code;
  uint32_t length;
} jpeg_word;

/// Derives the codes in the order of the symbols (T.81 C.2), and the limits for searches. Returns false when the counts
/// do not form a valid code.
static bool derive_words(jpeg_table *table, const jpeg_code *code, jpeg_word words[256], uint32_t *word_count) {
  uint32_t next = 0;
  uint32_t count = 0;
  for (uint32_t length = 1; length <= 16; length++) {
    if (count + code->counts[length] > 256) {
      return false;
    }
    table->last_code[length] = -1;
    table->offset[length] = (int32_t)count - (int32_t)next;
    for (uint32_t i = 0; i < code->counts[length]; i++) {
      words[count++] = (jpeg_word){.code = next++, .length = length};
    }
    if (code->counts[length] != 0) {
      table->last_code[length] = (int32_t)next - 1;
      if (next >= 1u << length) {
        return false; // no code may consist of ones only
      }
    }
    next <<= 1;
  }
  table->last_code[0] = -1;
  table->last_code[17] = INT32_MAX;
  *word_count = count;
  return true;
}

static uint32_t pack(uint32_t length, uint32_t advance, uint32_t value) {
  return length | advance << 8 | value << 16;
}

/// Packs the entry of a symbol whose value does not fit. It describes how to read the value without searching for the
/// code.
static uint32_t pack_slow(uint32_t length, uint32_t size, uint32_t run) {
  return pack(0, JPEG_ADVANCE_SLOW, length | size << 5 | run << 9);
}

/// Fills all entries that start with `word`.
static void fill_values(jpeg_table *table, jpeg_word word, uint8_t symbol, jpeg_table_kind kind) {
  const uint32_t size = kind == JPEG_TABLE_DC ? symbol : symbol & 15;
  const uint32_t run = kind == JPEG_TABLE_DC ? 0 : symbol >> 4;
  const uint32_t spare = JPEG_VALUE_BITS - word.length;
  uint32_t *entries = &table->values[word.code << spare];
  if (size == 0 && run < 15 && kind != JPEG_TABLE_DC) {
    // An end of block. In progressive scans, run > 0 ends 2^run blocks or more.
    const bool is_plain = kind != JPEG_TABLE_PROGRESSIVE_AC || run == 0;
    for (uint32_t i = 0; i < 1u << spare; i++) {
      entries[i] = is_plain ? pack(word.length, JPEG_ADVANCE_END, 0) : pack_slow(word.length, 0, run);
    }
  } else if (size > spare) {
    for (uint32_t i = 0; i < 1u << spare; i++) {
      entries[i] = pack_slow(word.length, size, run);
    }
  } else {
    const uint32_t usual = pack(word.length + size, run + 1, 0);
    for (uint32_t bits = 0; bits < 1u << size; bits++) {
      // The signed value of `size` bits (T.81 F.12). Without a branch: half of the values are negative.
      const uint32_t value = bits - (((1u << size) - 1) & ((bits << 1 >> size) - 1));
      for (uint32_t i = 0; i < 1u << (spare - size); i++) {
        *entries++ = usual | value << 16;
      }
    }
  }
}

static uint32_t advance_of(uint32_t entry) {
  return entry >> 8 & 0xFF;
}

/// Returns the entry of `pairs` for an index: its symbol joined with the next one, and with the end of block after it,
/// as far as they fit. Sets *is_single to whether there is only one symbol.
static uint64_t pair_of(const jpeg_table *table, uint32_t index, bool *is_single) {
  const uint32_t bits = index << (16 - JPEG_PAIR_BITS);
  const uint32_t first = table->values[bits >> (16 - JPEG_VALUE_BITS)];
  const uint32_t first_length = first & JPEG_LENGTH;
  uint32_t length = first_length;
  uint32_t advance = advance_of(first);
  uint32_t last = first;
  uint32_t flags = advance == JPEG_ADVANCE_END ? JPEG_PAIR_ENDS : 0;
  *is_single = true;
  if (advance <= 16) {
    const uint32_t second = table->values[(bits << length & 0xFFFF) >> (16 - JPEG_VALUE_BITS)];
    if (advance_of(second) <= 16 && length + (second & JPEG_LENGTH) <= JPEG_PAIR_BITS) {
      length += second & JPEG_LENGTH;
      advance += advance_of(second);
      last = second;
      *is_single = false;
    }
    const uint32_t room = JPEG_PAIR_BITS - length;
    if (table->end_length != 0 && table->end_length <= room &&
        (index & ((1u << room) - 1)) >> (room - table->end_length) == table->end_code >> (32 - table->end_length)) {
      length += table->end_length;
      flags = JPEG_PAIR_ENDS;
    }
  }
  return length | flags | advance_of(first) << 8 | advance << 16 | first_length << 24 | (uint64_t)(first >> 16) << 32 |
         (uint64_t)(last >> 16) << 48;
}

/// Fills the entries that start with a word of at most JPEG_PAIR_BITS bits, whose symbol has values of `size` bits.
static void join_pairs_of(jpeg_table *table, jpeg_word word, uint32_t size) {
  const uint32_t start = word.code << (JPEG_PAIR_BITS - word.length);
  const uint32_t end = start + (1u << (JPEG_PAIR_BITS - word.length));
  bool is_single;
  if (advance_of(table->values[start]) > 16) {
    const uint64_t entry = pair_of(table, start, &is_single);
    for (uint32_t i = start; i < end; i++) {
      table->pairs[i] = entry;
    }
    return;
  }
  const uint32_t count = (end - start) >> size;
  for (uint32_t i = start; i < start + count; i++) {
    const uint64_t entry = pair_of(table, i, &is_single);
    const uint64_t unit = is_single ? 1ull << 32 | 1ull << 48 : 1ull << 32;
    const uint64_t rest = entry - unit * (entry >> 32 & 0xFFFF);
    // Entries of the symbol's other values differ in nothing but the value.
    for (uint32_t j = i; j < end; j += count) {
      table->pairs[j] = rest + unit * (table->values[j] >> 16);
    }
  }
}

/// Fills `pairs`.
static void join_pairs(jpeg_table *table, const jpeg_word *words, uint32_t word_count) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < word_count && words[i].length <= JPEG_PAIR_BITS; i++) {
    join_pairs_of(table, words[i], table->symbols[i] & 15);
    end = (words[i].code + 1) << (JPEG_PAIR_BITS - words[i].length);
  }
  bool is_single;
  const uint64_t other = pair_of(table, end, &is_single); // the last index is no code
  for (; end < JPEG_STEPS; end++) {
    table->pairs[end] = other;
  }
}

/// Returns the entry of `skips` for the symbols that fit completely into an index, found one after the other.
static uint16_t skip_of(const jpeg_table *table, uint32_t index, uint32_t bits) {
  uint32_t length = 0;
  uint32_t advance = 0;
  while (advance < 128) {
    const uint32_t found = ccodecs_jpeg_table_search(table, index << length << (16 - bits) & 0xFFFF);
    const uint32_t size = found & 15, run = found >> 4 & 15;
    const uint32_t step = size == 0 && run != 15 ? 128 : run + 1;
    if (found == 0 || length + (found >> 8) + size > bits || (step < 128 && advance + step > 63)) {
      break;
    }
    length += (found >> 8) + size;
    advance += step;
  }
  return (uint16_t)(length | advance << 6);
}

/// Fills the entries of `skips` for indexes of `bits` bits; zero when not even one symbol fits. `joined` contains those
/// of fewer bits.
static void join_level(
    uint16_t *entries, uint32_t bits, const jpeg_table *table, const jpeg_word *words, uint32_t word_count,
    const uint16_t *joined) {
  memset(entries, 0, sizeof *entries << bits);
  for (uint32_t i = 0; i < word_count && words[i].length <= bits; i++) {
    const uint32_t size = table->symbols[i] & 15, run = table->symbols[i] >> 4;
    const uint32_t length = words[i].length + size;
    if (length > bits) {
      continue;
    }
    const uint32_t start = words[i].code << (bits - words[i].length);
    const bool is_end = size == 0 && run != 15;
    const uint32_t step = is_end ? 128 : run + 1;
    const uint16_t *rest = joined + (1u << (bits - length));
    uint32_t filled = 1u << (bits - length);
    for (uint32_t j = 0; j < filled; j++) {
      const uint32_t next = is_end ? 0 : rest[j];
      // More symbols may fit into the bits than into a block.
      const bool is_full = step + (next >> 6 & 127) > 63 && !is_end;
      entries[start + j] = is_full ? skip_of(table, start + j, bits) : (uint16_t)(next + (length | step << 6));
    }
    for (; filled < 1u << (bits - words[i].length); filled *= 2) {
      memcpy(entries + start + filled, entries + start, filled * sizeof *entries);
    }
  }
}

/// Fills `skips`.
static void join_skips(jpeg_table *table, uint32_t bits, const jpeg_word *words, uint32_t word_count) {
  uint16_t joined[1 << JPEG_SKIP_BITS]; // those of b bits start at index 1 << b
  joined[1] = 0;
  for (uint32_t b = 1; b < bits; b++) {
    join_level(joined + (1u << b), b, table, words, word_count, joined);
  }
  join_level(table->skips, bits, table, words, word_count, joined);
  for (uint32_t i = 0; i < 1u << bits; i++) {
    // An advance of 64 goes past the end of every block, which no other entry does; it requests a single step.
    table->skips[i] = table->skips[i] == 0 ? 64u << 6 : table->skips[i];
  }
}

size_t ccodecs_jpeg_table_bytes(jpeg_table_kind kind, uint32_t skip_bits) {
  const size_t pairs = kind == JPEG_TABLE_AC ? sizeof(uint64_t) << JPEG_PAIR_BITS : 0;
  return sizeof(jpeg_table) + pairs + (skip_bits == 0 ? 0 : sizeof(uint16_t) << skip_bits);
}

bool ccodecs_jpeg_table_build(jpeg_table *table, const jpeg_code *code, jpeg_table_kind kind, uint32_t skip_bits) {
  jpeg_word words[256];
  uint32_t word_count;
  if (!derive_words(table, code, words, &word_count)) {
    return false;
  }
  memcpy(table->symbols, code->symbols, sizeof table->symbols);
  table->end_length = 0;
  table->end_code = 0;
  for (uint32_t i = 0; i < 1u << JPEG_VALUE_BITS; i++) {
    table->values[i] = pack_slow(0, 0, 0);
  }
  for (uint32_t i = 0; i < word_count; i++) {
    const uint8_t symbol = code->symbols[i];
    if (kind == JPEG_TABLE_DC && symbol > 15) {
      return false;
    }
    if (words[i].length <= JPEG_VALUE_BITS) {
      fill_values(table, words[i], symbol, kind);
    }
    if (symbol == 0 && table->end_length == 0) {
      table->end_length = words[i].length;
      table->end_code = words[i].code << (32 - words[i].length);
    }
  }
  table->pairs = kind == JPEG_TABLE_AC ? (uint64_t *)(table + 1) : NULL;
  uint64_t *end = (uint64_t *)(table + 1) + (kind == JPEG_TABLE_AC ? 1 << JPEG_PAIR_BITS : 0);
  table->skips = skip_bits == 0 ? NULL : (uint16_t *)end;
  if (kind == JPEG_TABLE_AC) {
    join_pairs(table, words, word_count);
  }
  if (skip_bits != 0) {
    table->skip_shift = 64 - skip_bits;
    join_skips(table, skip_bits, words, word_count);
  }
  return true;
}

uint32_t ccodecs_jpeg_table_search(const jpeg_table *table, uint32_t top) {
  for (uint32_t length = 1; length <= 16; length++) {
    const int32_t code = (int32_t)(top >> (16 - length));
    if (code <= table->last_code[length]) {
      return length << 8 | table->symbols[(code + table->offset[length]) & 0xFF];
    }
  }
  return 0;
}

// MARK: Standard tables

static const uint8_t dc_counts[2][16] = {
    {0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0},
    {0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
};

static const uint8_t ac_counts[2][16] = {
    {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7D},
    {0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77},
};

static const uint8_t ac_symbols[2][162] = {
    {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
     0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72,
     0x82, 0x09, 0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37,
     0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
     0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83,
     0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3,
     0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3,
     0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1, 0xE2,
     0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA},
    {0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22,
     0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09, 0x23, 0x33, 0x52, 0xF0, 0x15, 0x62, 0x72, 0xD1,
     0x0A, 0x16, 0x24, 0x34, 0xE1, 0x25, 0xF1, 0x17, 0x18, 0x19, 0x1A, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36,
     0x37, 0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58,
     0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A,
     0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A,
     0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA,
     0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA,
     0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA},
};

void ccodecs_jpeg_code_standard(jpeg_code *code, bool is_dc, uint32_t index) {
  memset(code, 0, sizeof *code);
  code->is_defined = true;
  memcpy(&code->counts[1], is_dc ? dc_counts[index] : ac_counts[index], 16);
  if (is_dc) {
    for (uint8_t i = 0; i < 12; i++) {
      code->symbols[i] = i;
    }
  } else {
    memcpy(code->symbols, ac_symbols[index], sizeof ac_symbols[index]);
  }
}

// Computes Huffman codes from frequencies (T.81, annex K.2 and K.3).

#include "jpeg_encode.h"

enum {
  SYMBOLS = 256,
  RESERVED = SYMBOLS, ///< The symbol that keeps the code of only ones free.
  MAX_LENGTH = 16,
};

typedef struct leaves {
  uint32_t count;
  uint16_t symbols[SYMBOLS + 1]; ///< In order of frequency, the rarest first.
} leaves;

/// Sorts the symbols that occur, by frequency and then by symbol, the reserved one first.
static void sort_leaves(leaves *l, const uint32_t frequencies[SYMBOLS]) {
  uint64_t keys[SYMBOLS];
  uint32_t count = 0;
  for (uint32_t symbol = 0; symbol < SYMBOLS; symbol++) {
    if (frequencies[symbol] > 0) {
      // Inserted where it belongs: few symbols are used.
      const uint64_t key = (uint64_t)frequencies[symbol] << 16 | symbol;
      uint32_t at = count++;
      for (; at > 0 && keys[at - 1] > key; at--) {
        keys[at] = keys[at - 1];
      }
      keys[at] = key;
    }
  }
  l->symbols[0] = RESERVED;
  for (uint32_t i = 0; i < count; i++) {
    l->symbols[i + 1] = (uint16_t)(keys[i] & 0xFFFF);
  }
  l->count = count + 1;
}

/// Counts the lengths of the best code, and returns the longest, by merging the two rarest nodes again and again.
/// Merged nodes come into being in order of their weights, so they form a queue of their own.
static uint32_t count_lengths(const leaves *l, const uint32_t frequencies[SYMBOLS], uint32_t counts[2 * SYMBOLS]) {
  uint64_t weights[2 * SYMBOLS + 2];
  uint16_t parents[2 * SYMBOLS + 2];
  uint16_t depths[2 * SYMBOLS + 2];
  for (uint32_t i = 0; i < l->count; i++) {
    weights[i] = l->symbols[i] == RESERVED ? 0 : frequencies[l->symbols[i]];
  }
  uint32_t leaf = 0, merged = l->count, end = l->count;
  for (; end < 2 * l->count - 1; end++) {
    weights[end] = 0;
    for (uint32_t i = 0; i < 2; i++) {
      const bool is_leaf = leaf < l->count && (merged == end || weights[leaf] <= weights[merged]);
      const uint32_t node = is_leaf ? leaf++ : merged++;
      weights[end] += weights[node];
      parents[node] = (uint16_t)end;
    }
  }
  memset(counts, 0, 2 * SYMBOLS * sizeof *counts);
  depths[end - 1] = 0;
  uint32_t longest = 0;
  for (uint32_t node = end - 1; node-- > 0;) {
    depths[node] = depths[parents[node]] + 1;
    if (node < l->count) {
      counts[depths[node]]++;
      longest = depths[node] > longest ? depths[node] : longest;
    }
  }
  return longest;
}

/// Shortens the codes of more than 16 bits (T.81, figure K.3).
static void limit_lengths(uint32_t counts[2 * SYMBOLS], uint32_t longest) {
  for (uint32_t length = longest; length > MAX_LENGTH; length--) {
    while (counts[length] > 0) {
      uint32_t shorter = length - 2;
      while (counts[shorter] == 0) {
        shorter--;
      }
      counts[length] -= 2;
      counts[length - 1]++;
      counts[shorter + 1] += 2;
      counts[shorter]--;
    }
  }
}

/// Returns how many bits follow the code of a symbol: its low four bits, which are a size, or the high four of the end
/// of a band, which has no size.
static uint32_t extra_bits(uint32_t symbol) {
  const uint32_t size = symbol & 15, run = symbol >> 4;
  return size > 0 || run == 15 ? size : run;
}

void ccodecs_jpeg_code_build(jpeg_code *code, uint64_t entries[SYMBOLS], const uint32_t frequencies[SYMBOLS]) {
  leaves l;
  uint32_t counts[2 * SYMBOLS];
  memset(code, 0, sizeof *code);
  sort_leaves(&l, frequencies);
  if (l.count == 1) {
    return;
  }
  limit_lengths(counts, count_lengths(&l, frequencies, counts));
  uint32_t longest = MAX_LENGTH;
  while (counts[longest] == 0) {
    longest--;
  }
  counts[longest]--;
  // The most frequent symbols, which are the last ones, have the shortest codes.
  uint32_t next = l.count, value = 0;
  for (uint32_t length = 1; length <= MAX_LENGTH; length++, value <<= 1) {
    code->counts[length] = (uint8_t)counts[length];
    for (uint32_t i = 0; i < counts[length]; i++, value++) {
      const uint16_t symbol = l.symbols[--next];
      const uint32_t extra = extra_bits(symbol);
      code->symbols[code->symbol_count++] = (uint8_t)symbol;
      entries[symbol] = (uint64_t)value << extra << 32 | (length + extra);
    }
  }
}

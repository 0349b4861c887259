// The lookup tables of the readers that find blocks ahead (jpeg_ahead.c), in the native JPEG decoder: several symbols
// for each lookup, found by joining the entries of a symbol with those of the bits after it.

#include "jpeg_ahead.h"

#include <string.h>

/// A symbol and its code.
typedef struct ahead_word {
  uint32_t code;
  uint32_t length;
  uint32_t symbol;
} ahead_word;

/// Lists the codes of up to JPEG_AHEAD_BITS bits. Returns their number.
static uint32_t list_words(ahead_word words[256], const jpeg_table *table) {
  uint32_t count = 0;
  for (uint32_t length = 1; length <= JPEG_AHEAD_BITS; length++) {
    if (table->last_code[length] < 0) {
      continue;
    }
    // A code's index in `symbols` is the number of codes before it.
    const uint32_t end = (uint32_t)(table->last_code[length] + table->offset[length]) + 1;
    for (; count < end; count++) {
      const uint32_t code = (uint32_t)((int32_t)count - table->offset[length]);
      words[count] = (ahead_word){.code = code, .length = length, .symbol = table->symbols[count]};
    }
  }
  return count;
}

/// Fills the entries of a symbol of `length` bits, joined with the entries of the `left` bits after it; repeats them up
/// to `count` entries.
static void join(
    uint16_t *entries, uint32_t count, uint32_t length, uint32_t advance, const uint16_t *rest, uint32_t left) {
  const uint16_t single = (uint16_t)(length | advance << JPEG_AHEAD_ADVANCE_SHIFT);
  const uint16_t before_end = (uint16_t)(length << JPEG_AHEAD_LENGTH_SHIFT | advance << JPEG_AHEAD_ADVANCE_SHIFT);
  const uint16_t advance_max = (uint16_t)(63 - advance);
  uint32_t filled = 1u << left;
  for (uint32_t i = 0; i < filled; i++) {
    const uint16_t next = rest[i];
    const uint16_t both = (uint16_t)(next + ((next & JPEG_AHEAD_END) == JPEG_AHEAD_END ? before_end : single));
    entries[i] = next >> JPEG_AHEAD_ADVANCE_SHIFT > advance_max ? single : both;
  }
  for (; filled < count; filled *= 2) {
    memcpy(entries + filled, entries, filled * sizeof *entries);
  }
}

/// Returns the first of the entries, of `bits` bits, that start with a word. Indexes are inverted.
static uint16_t *entries_of(uint16_t *entries, uint32_t bits, ahead_word word) {
  return entries + ((size_t)(~word.code & ((1u << word.length) - 1)) << (bits - word.length));
}

/// Fills the entries of `bits` bits. `joined` contains those of fewer bits.
static void join_level(
    uint16_t *entries, uint32_t bits, const ahead_word *words, uint32_t word_count, const uint16_t *joined) {
  memset(entries, 0, sizeof *entries << bits);
  for (const ahead_word *word = words; word < words + word_count && word->length <= bits; word++) {
    const uint32_t length = word->length + (word->symbol & 15);
    const uint32_t run = word->symbol >> 4;
    const uint32_t count = 1u << (bits - word->length);
    uint16_t *first = entries_of(entries, bits, *word);
    if ((word->symbol & 15) == 0 && run < 15) {
      for (uint32_t i = 0; i < count; i++) {
        first[i] = (uint16_t)(JPEG_AHEAD_END | length << JPEG_AHEAD_LENGTH_SHIFT);
      }
    } else if (length <= bits + JPEG_AHEAD_LONGEST - JPEG_AHEAD_BITS) {
      const uint32_t left = length < bits ? bits - length : 0;
      join(first, count, length, run + 1, joined + (1u << left), left);
    }
  }
}

/// Fills the table of lookups after a block's first, and the entries for each smaller number of bits: those of b bits
/// start at index 1 << b of `joined`.
static void join_ac(uint16_t *table, uint16_t joined[1 << JPEG_AHEAD_BITS], const jpeg_table *ac) {
  ahead_word words[256];
  const uint32_t word_count = list_words(words, ac);
  joined[0] = 0;
  joined[1] = 0;
  for (uint32_t bits = 1; bits < JPEG_AHEAD_BITS; bits++) {
    join_level(joined + (1u << bits), bits, words, word_count, joined);
  }
  join_level(table, JPEG_AHEAD_BITS, words, word_count, joined);
}

/// Fills the table of a block's first lookup: the DC difference and what fits after it.
static void join_dc(uint16_t *table, const jpeg_table *dc, const uint16_t *joined) {
  ahead_word words[256];
  const uint32_t word_count = list_words(words, dc);
  for (uint32_t i = 0; i < 1u << JPEG_AHEAD_BITS; i++) {
    table[i] = JPEG_AHEAD_END;
  }
  for (const ahead_word *word = words; word < words + word_count; word++) {
    const uint32_t length = word->length + (word->symbol & 15);
    const uint32_t left = length < JPEG_AHEAD_BITS ? JPEG_AHEAD_BITS - length : 0;
    if (length <= JPEG_AHEAD_LONGEST) {
      const uint32_t count = 1u << (JPEG_AHEAD_BITS - word->length);
      join(entries_of(table, JPEG_AHEAD_BITS, *word), count, length, 1, joined + (1u << left), left);
    }
  }
}

/// Fills the tables of component `index` of the scan, unless an earlier component has the same. `has_steps`: blocks
/// have coefficients other than DC.
static void fill_component(jpeg_ahead *ahead, const jpeg_scan *scan, uint32_t index, bool has_steps) {
  uint16_t joined[1 << JPEG_AHEAD_BITS];
  const jpeg_component *c = scan->components[index];
  uint16_t *first_table = ahead->tables + ((size_t)2 * index << JPEG_AHEAD_BITS);
  uint16_t *rest_table = first_table + (1 << JPEG_AHEAD_BITS);
  ahead->first_tables[index] = first_table;
  ahead->rest_tables[index] = rest_table;
  for (uint32_t i = 0; i < index; i++) {
    const jpeg_component *other = scan->components[i];
    if (other->dc_index == c->dc_index && other->ac_index == c->ac_index) {
      ahead->first_tables[index] = ahead->first_tables[i];
      ahead->rest_tables[index] = ahead->rest_tables[i];
      ahead->steps[index] = ahead->steps[i];
      return;
    }
  }
  const jpeg_block_plan *plan = scan->blocks;
  while (plan->component != index) {
    plan++;
  }
  join_ac(rest_table, joined, plan->ac);
  join_dc(first_table, plan->dc, joined);
  ahead->steps[index] = ahead->step_tables[index];
  if (has_steps) {
    const jpeg_ahead_lockstep *lockstep = ahead->lockstep;
    (lockstep == NULL ? ccodecs_jpeg_ahead_list_steps : lockstep->list_steps)(ahead->step_tables[index], plan->ac);
  }
}

/// Lists what the sum of a round's entries means.
static void list_outcomes(uint64_t *outcomes) {
  for (uint32_t i = 0; i <= JPEG_AHEAD_SUM_LENGTHS; i++) {
    outcomes[i] = JPEG_AHEAD_OUTCOME_SLOW;
  }
  for (uint32_t i = 1; i <= JPEG_AHEAD_LOOKUPS * JPEG_AHEAD_LONGEST; i++) {
    outcomes[i] = i;
  }
  for (uint32_t before = 0; before <= (JPEG_AHEAD_LOOKUPS - 1) * JPEG_AHEAD_LONGEST; before++) {
    for (uint32_t length = 1; length <= JPEG_AHEAD_BITS; length++) {
      outcomes[before + JPEG_AHEAD_END + (length << JPEG_AHEAD_LENGTH_SHIFT)] =
          (before + length) | JPEG_AHEAD_OUTCOME_BLOCK;
    }
  }
}

void ccodecs_jpeg_ahead_fill_tables(jpeg_ahead *ahead, const jpeg_scan *scan, bool has_steps) {
  for (uint32_t i = 0; i < scan->component_count; i++) {
    fill_component(ahead, scan, i, has_steps);
  }
  list_outcomes(ahead->outcomes);
}

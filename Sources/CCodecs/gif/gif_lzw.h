// Lempel-Ziv-Welch encoding of GIF frames, in sub-blocks. Private to the GIF encoder.
//
// Source: Welch, "A Technique for High-Performance Data Compression", 1984; GIF89a, appendix F.

#pragma once

#include "../memory/bytes.h"

enum {
  GIF_LZW_SLOTS = 1 << 14,
  GIF_LZW_CODES = 1 << 12,
  GIF_LZW_RUNS = 16,
  GIF_LZW_RUN_CODES = 256,
  GIF_LZW_BLOCK_BYTES = 255,
};

/// Codes of strings that repeat one index, by length, from 1 on.
typedef struct gif_lzw_run {
  uint32_t length; ///< The longest; 0 if there is none.
  uint16_t codes[GIF_LZW_RUN_CODES];
} gif_lzw_run;

/// The dictionary and the unwritten bits.
typedef struct gif_lzw {
  ccodecs_bytes *output;
  ccodecs_budget *budget;
  uint32_t min_bits; ///< Bits per index, at least 2.
  uint32_t next_code;
  uint32_t next_packed; ///< The `next_code` before the first of the codes that are not staged.
  uint32_t prefix;      ///< The code of the string so far, or GIF_LZW_NONE.
  uint32_t run_length;  ///< Of the string so far if it is among the runs; otherwise of no meaning.
  uint32_t code_bits;   ///< Of the code that is staged next.
  uint32_t bit_count;
  uint64_t bits;                    ///< Fewer than 8.
  uint32_t staged_count;            ///< Less than a sub-block between calls.
  bool has_failed;                  ///< The budget is exhausted.
  uint32_t keys[GIF_LZW_CODES + 1]; ///< Of each string: the code written when it was added, and its last index.
  uint16_t slots[GIF_LZW_SLOTS];    ///< Codes of strings; 0 if a slot is free.
  gif_lzw_run runs[GIF_LZW_RUNS];   ///< By the low bits of the index; the last index that needed one has it.
  /// Bytes of sub-blocks: at most one that is not complete, 12 bits per code, a clear code, the end, and whole words.
  uint8_t staged[GIF_LZW_BLOCK_BYTES + GIF_LZW_CODES * 3 / 2 + 32];
} gif_lzw;

/// Begins the data of a frame whose indices have `least_bits` bits, 2 to 8, and appends it to `output`.
void ccodecs_gif_lzw_begin(gif_lzw *z, uint32_t min_bits, ccodecs_bytes *output, ccodecs_budget *budget);

/// Encodes indices.
void ccodecs_gif_lzw_write(gif_lzw *z, const uint8_t *indices, size_t count);

/// Ends the data. Returns false if the budget was exhausted.
bool ccodecs_gif_lzw_end(gif_lzw *z);

// The entropy decoder of baseline JPEG, for reduced decoding. Private to CCodecs.
//
// A picture decoded at N/8 needs N x N low-frequency coefficients of each block. The others are passed over: from the
// last needed one on, a second table skips several symbols in one look-up.
//
// Bytes are unstuffed into one buffer before they are decoded, so that the bit reader loads eight at a time without
// looking at any. The caller sees to it that enough of them are there for a whole MCU, or that the segment has ended.
//
// Source: ITU-T T.81, annexes F.2.2 (decoding), C (code tables), B.1.1.5 (byte stuffing).

#ifndef CCODECS_JPEG_ENTROPY_H
#define CCODECS_JPEG_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  JPEG_VALUE_BITS = 11, ///< A symbol and its value are found at once when both fit in these.
  JPEG_SKIP_BITS = 13,  ///< As many symbols are skipped at once as fit in these.
};

/// One Huffman table, as it is looked up.
typedef struct jpeg_huffman {
  bool is_set;
  /// Symbol and value: bits 0-7 length of both (0: not in this table), 8-15 run, 16-31 value. AC tables only.
  int32_t values[1 << JPEG_VALUE_BITS];
  /// Symbol alone: bits 0-7 code length (0: longer than this table's bits), 8-15 symbol.
  uint16_t symbols[1 << JPEG_VALUE_BITS];
  /// Bits 0-7 length of all symbols (0: not even one fits), 8-14 coefficients passed, 15 whether the last ends the block.
  uint16_t skips[1 << JPEG_SKIP_BITS];
  int32_t largest_code[18]; ///< [length] left-aligned to 16 bits, one past the largest code of that length.
  int32_t first_index[17];  ///< [length] index of the symbol of the code 0 of that length.
  uint8_t symbol[256];
} jpeg_huffman;

/// Builds the tables of a DHT segment's 16 counts and their symbols. False when the code is not a prefix code, or a DC
/// table (`is_ac` false) holds a category above 11.
bool jpeg_huffman_build(jpeg_huffman *table, const uint8_t counts[16], const uint8_t *symbols, bool is_ac);

/// Bits of unstuffed bytes, first bit first. `next` must be readable for eight bytes wherever it stands.
typedef struct jpeg_bits {
  const uint8_t *next;
  uint64_t buffer; ///< Left-aligned.
  int count;       ///< Valid bits of `buffer`.
} jpeg_bits;

/// Where the coefficients of a block go, for one scale.
typedef struct jpeg_zigzag {
  int last;        ///< Zigzag index of the last coefficient that is needed.
  int8_t slot[64]; ///< [zigzag index] row * N + column, or -1 for one that is not needed.
} jpeg_zigzag;

/// Fills `zigzag` for N = `scale`, 1 to 8.
void jpeg_zigzag_init(jpeg_zigzag *zigzag, int scale);

/// The most bytes that an MCU of ten blocks can take: 64 symbols of 16 bits with 15 bits of value each.
enum { JPEG_LARGEST_MCU = 10 * 64 * 31 / 8 };

/// Decodes one block. Its coefficients go to `coefficients[slot * stride]`, which were zero; the DC coefficient is added
/// to `*prediction` first. False on a code that no table has. What leads beyond a block's last coefficient ends the
/// block, and so does a run without a value that is not 16 long: as libjpeg has it.
bool jpeg_decode_block(
    jpeg_bits *bits, const jpeg_huffman *dc, const jpeg_huffman *ac, const jpeg_zigzag *zigzag, int *prediction,
    int16_t *coefficients, size_t stride);

#endif

// The native JPEG encoder. This header is its manual; all of it except its methods, which are in formats.h, is
// private to the encoder.
//
// Use. Create an encoder with `ccodecs_encoder_create`, pass rows to `ccodecs_encoder_write` as they arrive, in
// any portion, call `ccodecs_encoder_read` after each, and `ccodecs_encoder_finish` at the end. Rows are RGB, gray, or
// the planes of YCbCr with chroma of the size that `subsampling` says: 4:4:4, 4:2:2 or 4:2:0. Files are baseline or
// progressive, with Huffman tables of their own, and with restart markers if the options ask for them. They depend on
// options and samples alone, not on portions, budget or machine.
//
// Blocks. The forward transform returns coefficients in units of the quantization steps. A coefficient becomes zero if
// its error then costs less than two bits do; the price of a bit is higher where the texture of the block hides errors.
// The last levels of a block are dropped as long as they cost more bits than they are worth. Tokens are what the
// Huffman coder will write, kept until its tables can be computed.
//
// Quality. Steps and prices were fitted to photographs at some qualities (jpeg_encode_anchors.h) and are interpolated
// between them. A quality of 1 to 100 is a position among these, chosen so that a file scores in SSIMULACRA2 what
// libjpeg-turbo's file of the same quality scores (jpeg_encode_tables.c). 64ths of a quality step are possible too.
// Benchmarks/results/jpeg-encoder.md has the figures.
//
// Sizes. The size of a file at any quality is estimated from a part of the blocks (jpeg_encode_sample.c).
//
// Memory. Every buffer is charged to the budget, in total at most `ccodecs_jpeg_encoder_estimate`. Options and size
// alone decide which mode applies:
//
// - baseline: Three rows of MCUs are buffered. Tokens are kept until there are a quarter of a million of them, in 64
//   chunks of 16 KB, or until the image ends; most photographs of a megapixel have fewer. Then the tables follow
//   from these, and the tokens are written, 0.4 MB at most. Later tokens use the same tables and are sent with each
//   row of MCUs. The 1.4 MB are charged when the encoder is created: it does not run out of memory later.
// - progressive, or with optimal tables: Each scan needs the coefficients of the whole image. A block takes 10
//   bytes, and 2 for each coefficient other than zero: 0.5 bytes per pixel at quality 80, at most 3.2 in 4:2:0 and
//   6.4 in 4:4:4. The file is pending until the end. The estimate decides before decoding whether the memory of an
//   image suffices.
//
// An exhausted budget fails the encoder with CCODECS_NO_MEMORY; it never changes the file.

#pragma once

#include "../core/encoder.h"
#include "jpeg_codes.h"

enum { JPEG_BLOCK = 64, JPEG_LEVELS = 63 };

// MARK: Quality

/// Everything about an encoding that follows from its quality.
typedef struct jpeg_encode_tables {
  uint8_t quant[3][JPEG_BLOCK]; ///< Steps of Y, Cb and Cr, in natural order.
  float weight[2][JPEG_BLOCK];  ///< Weight of squared errors, in zigzag order, for luma and chroma.
  float lambda[2];              ///< Squared error that is worth one bit, for luma and chroma, at neutral masking.
  float mask_slope[2];          ///< The power of the activity that lambda is proportional to.
  float rate[2][256];           ///< Estimated bits of a run and size, with the bits that follow, by symbol.
} jpeg_encode_tables;

/// Fills in the tables for a quality of 1 to 100.
void ccodecs_jpeg_encode_tables_init(jpeg_encode_tables *tables, float quality, bool has_full_chroma);

/// The share of lambda for each component.
extern const float ccodecs_jpeg_lambda_shares[3];

/// Returns the quality at which the steps of luma and of the finer chroma have these sums, or 0 for none.
/// Without chroma, whose sum is UINT32_MAX, one sum is not enough to recognize the steps.
uint8_t ccodecs_jpeg_encode_quality(uint32_t luma_sum, uint32_t chroma_sum);

/// Returns how much more an error is worth in a block of the given activity.
float ccodecs_jpeg_masking(float slope, uint32_t activity);

// MARK: Levels

enum {
  JPEG_MAX_LEVEL = 1023, ///< Of a file with 8 bits per sample.
  JPEG_MAX_TRIMMED = 4,  ///< Levels at the end of a block that may be dropped.
};

/// Bits that no coefficient costs less than: those that are worth less become zero.
#define JPEG_MIN_BITS 2.0F

/// Bits that the last levels may be worth more than they cost before others are no longer tried.
#define JPEG_MAX_LOSS 2.0F

/// The scale of the transform's output for each index of a row or column.
extern const float ccodecs_jpeg_forward_scale[8];

/// The quantized coefficients of a block. They are transposed: index 8 * u + v, for v cycles down and u across.
typedef struct jpeg_block {
  uint64_t mask; ///< Bit k is set if the coefficient at zigzag index k is not zero; bit 0 is never set.
  int16_t dc;
  int16_t levels[JPEG_BLOCK]; ///< Those that are not in the mask have no meaning.
} jpeg_block;

/// The parameters for choosing the levels of a component's blocks.
typedef struct jpeg_chooser {
  float inverse[JPEG_BLOCK];   ///< Transposed reciprocals of the steps, scaled for the transform.
  float dead_zone[JPEG_BLOCK]; ///< Transposed: what lambda adds to the smallest magnitude that is not zero.
  const float *weight;         ///< Of squared errors, in zigzag order.
  const float *rate;           ///< Estimated bits by symbol.
} jpeg_chooser;

/// The transposed index of each zigzag index.
extern const uint8_t ccodecs_jpeg_transposed_zigzag[JPEG_BLOCK];

/// The tables that the chooser borrows must outlive it.
void ccodecs_jpeg_chooser_init(jpeg_chooser *chooser, const jpeg_encode_tables *tables, uint32_t component);

/// Converts a mask of transposed indexes to one of zigzag indexes.
uint64_t ccodecs_jpeg_zigzag_mask(uint64_t mask);

// MARK: Kernels

/// Transforms and quantizes a block of 8x8 samples. A coefficient is zero if its magnitude in steps is below half of
/// one plus `lambda` times its dead zone; `lambda` is the squared error that is worth one bit. `values` receives the
/// coefficients in steps, transposed as the levels.
typedef void (*jpeg_quantize)(
    const jpeg_chooser *chooser, const uint8_t *samples, size_t stride, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block);

/// Quantizes the stored coefficients of a block. They are transposed, in units of the chooser's choice, and none of
/// them exceeds JPEG_MAX_LEVEL steps; the rest is as in jpeg_quantize.
typedef void (*jpeg_requantize)(
    const jpeg_chooser *chooser, const int16_t *coefficients, float lambda, float values[JPEG_BLOCK],
    jpeg_block *block);

/// Sums the absolute differences of each sample to the next one in its row and to the one below in the block, for
/// `count` blocks in a row. Reads one column to the right of them.
typedef void (*jpeg_activity)(const uint8_t *samples, size_t stride, uint32_t count, uint32_t *sums);

typedef struct jpeg_encode_kernels {
  jpeg_quantize quantize;
  jpeg_requantize requantize;
  jpeg_activity activity;
  /// Converts RGB pixels to the three components.
  void (*convert)(const uint8_t *rgb, uint8_t *luma, uint8_t *blue, uint8_t *red, size_t count);
  /// Averages pairs of samples of one row, or of two rows if `lower` is not NULL, into `count` samples.
  void (*halve)(const uint8_t *upper, const uint8_t *lower, uint8_t *output, size_t count);
} jpeg_encode_kernels;

/// Transforms and quantizes a block, and drops the last levels that are not worth their bits.
void ccodecs_jpeg_choose(
    const jpeg_chooser *chooser, const jpeg_encode_kernels *kernels, const uint8_t *samples, size_t stride,
    float lambda, jpeg_block *block);

/// The same for stored coefficients.
void ccodecs_jpeg_choose_again(
    const jpeg_chooser *chooser, const jpeg_encode_kernels *kernels, const int16_t *coefficients, float lambda,
    jpeg_block *block);

const jpeg_encode_kernels *ccodecs_jpeg_encode_kernels(void);
extern const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_scalar;
extern const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_avx2;
extern const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_avx512;
extern const jpeg_encode_kernels ccodecs_jpeg_encode_kernels_neon;

// MARK: Tokens and output

/// A Huffman table that is being built or used.
typedef struct jpeg_code {
  uint8_t counts[17];   ///< Number of codes of each length.
  uint8_t symbols[256]; ///< In order of their codes.
  uint32_t symbol_count;
} jpeg_code;

/// Computes the code with at most 16 bits that is best for the frequencies. Symbols without a frequency have no code.
/// `entries` receives by symbol: the code, shifted by the number of bits that follow it, << 32 | the number of both.
void ccodecs_jpeg_code_build(jpeg_code *code, uint64_t entries[256], const uint32_t frequencies[256]);

enum {
  JPEG_CODE_DC = 0, ///< First of the tables of DC differences: luma, chroma.
  JPEG_CODE_AC = 2, ///< First of the tables of AC coefficients: luma, chroma.
  JPEG_CODES = 4,
  JPEG_TOKEN_RAW = 4,     ///< Bits without a symbol, as many as the symbol says: 16 at most.
  JPEG_TOKEN_RESTART = 5, ///< A restart marker; the symbol is its number.
  JPEG_TOKEN_KINDS = 6,
  JPEG_TOKENS_PER_CHUNK = 4 * 1024 - 5,
};

/// A token: kind << 24 | symbol << 16 | bits that follow.
typedef struct jpeg_token_chunk {
  struct jpeg_token_chunk *next;
  uint32_t count;
  bool has_restarts; ///< Whether any token is a restart marker.
  uint32_t tokens[JPEG_TOKENS_PER_CHUNK];
} jpeg_token_chunk;

/// Bits that are not yet in the output.
typedef struct jpeg_bit_writer {
  uint64_t bits; ///< The newest bits are the lowest.
  int32_t room;  ///< Bits that are missing from 64: at least 1.
} jpeg_bit_writer;

/// Tokens of a scan. They are kept until their number reaches a limit or the scan ends; then the tables of the scan
/// follow from those seen so far, and the tokens are written.
typedef struct jpeg_scan_writer {
  ccodecs_encoder *encoder;
  jpeg_token_chunk *first;
  jpeg_token_chunk *last;
  jpeg_token_chunk *spare;
  uint32_t chunk_count;
  uint32_t max_chunks;
  size_t reserved;  ///< Bytes that are charged in advance for chunks and output, of those that are not yet allocated.
  bool has_tables;  ///< Whether the tables and the header of the scan are written.
  bool is_counting; ///< Whether tokens are only counted, and then discarded.
  bool has_failed;  ///< Whether memory is exhausted.
  jpeg_bit_writer bits;
  uint8_t header[24]; ///< The restart interval and the scan's header, written after the tables.
  uint32_t header_count;
  uint32_t frequencies[JPEG_TOKEN_KINDS * 256]; ///< By kind and symbol.
  uint64_t entries[JPEG_TOKEN_KINDS * 256];     ///< See ccodecs_jpeg_code_build; only of symbols with a frequency.
  jpeg_code codes[JPEG_CODES];
} jpeg_scan_writer;

/// The components, blocks and MCUs of an image.
typedef struct jpeg_geometry {
  uint32_t component_count; ///< 1 or 3.
  uint32_t mcu_columns;
  uint32_t mcu_rows;
  uint32_t across[3]; ///< Blocks of each component in an MCU.
  uint32_t down[3];
  uint32_t columns[3]; ///< Blocks of each component, without those that only complete an MCU.
  uint32_t rows[3];
} jpeg_geometry;

/// Returns the geometry of an image.
jpeg_geometry ccodecs_jpeg_geometry(const ccodecs_encode_options *options);

/// A scan of the AC coefficients of one component.
typedef struct jpeg_scan {
  uint8_t component;
  uint8_t first; ///< First and last zigzag index of its band.
  uint8_t last;
  uint8_t high; ///< Successive approximation: the lowest bit written before, or 0 for none.
  uint8_t low;  ///< The lowest bit that it writes.
} jpeg_scan;

/// Starts a scan of one component or of all of them, with the restart interval of so many rows of its MCUs. Returns
/// the interval in MCUs, or 0 for none.
uint32_t ccodecs_jpeg_begin_scan(
    jpeg_scan_writer *writer, const jpeg_geometry *geometry, const jpeg_scan *scan, uint32_t component_count,
    uint32_t restart_rows);

/// Computes the tables from the tokens that were counted, and stops counting: the same tokens must follow once more.
/// Returns false if memory is exhausted.
bool ccodecs_jpeg_scan_count_end(jpeg_scan_writer *writer);

/// Writes all tokens and ends the scan. Returns false if memory is exhausted.
bool ccodecs_jpeg_scan_end(jpeg_scan_writer *writer);

void ccodecs_jpeg_scan_free(jpeg_scan_writer *writer);

// MARK: Progressive files

enum { JPEG_LEVELS_PER_CHUNK = 8 * 1024 - 8 };

typedef struct jpeg_level_chunk {
  struct jpeg_level_chunk *next;
  uint32_t count;
  int16_t levels[JPEG_LEVELS_PER_CHUNK];
} jpeg_level_chunk;

/// The quantized coefficients of a component, in rows of blocks.
typedef struct jpeg_store {
  uint32_t columns;
  uint32_t rows;
  uint32_t count; ///< Blocks so far.
  uint64_t *masks;
  int16_t *dc;
  jpeg_level_chunk *first; ///< The levels of all blocks; those of a block are in one chunk.
  jpeg_level_chunk *last;
} jpeg_store;

bool ccodecs_jpeg_store_init(jpeg_store *store, uint32_t columns, uint32_t rows, ccodecs_budget *budget);

/// Where the next block of a store is read.
typedef struct jpeg_store_cursor {
  const jpeg_level_chunk *chunk;
  uint32_t block;
  uint32_t level;
} jpeg_store_cursor;

bool ccodecs_jpeg_store_append(jpeg_store *store, const jpeg_block *block, ccodecs_budget *budget);
void ccodecs_jpeg_store_read(const jpeg_store *store, jpeg_store_cursor *cursor, jpeg_block *block);
void ccodecs_jpeg_store_free(jpeg_store *store, ccodecs_budget *budget);

/// Writes all scans. Returns false if memory is exhausted.
bool ccodecs_jpeg_put_progressive(jpeg_scan_writer *writer, const jpeg_store *stores, const jpeg_geometry *geometry);

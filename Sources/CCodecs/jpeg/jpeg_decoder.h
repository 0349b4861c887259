// The native JPEG decoder: a push decoder for the JPEGs that photographs are, without a dependency. Private to CCodecs.
//
// # What it decodes
//
// ITU-T T.81 with 8-bit samples, Huffman coded: baseline (SOF0), extended sequential (SOF1) and progressive (SOF2);
// one component, or three coded as YCbCr; sampling factors 1 to 4 in every combination that T.81 allows; restart
// markers; interleaved and separate scans; abbreviated streams that rely on the tables of T.81 annex K (motion JPEG).
//
// Everything else gives CCODECS_UNSUPPORTED from read_header: arithmetic coding, 12 and 16 bits, lossless and
// hierarchical processes, two or four components (CMYK, YCCK), three components that are RGB. A height that comes with
// a DNL segment is CCODECS_CORRUPT, as libjpeg has it. A caller that wants to hand such images to another decoder
// must ask before it feeds this one, which consumes what it reads: keep the bytes up to the first SOS, then ask
// ccodecs_jpeg_native_supports with what the SOFn, JFIF and Adobe segments before it say.
//
// # How it decodes
//
//   window -> jpeg_input.c: unstuffed bytes up to the next marker
//          -> jpeg_scan.c or jpeg_progressive.c: coefficients
//          -> jpeg_idct*.c: samples -> rows of the decoder's own strip
//
// Progressive, but for 1/8, the first arrow is a detour (jpeg_rows.c): scans are held as they come, compressed. When
// the last has come, each row of units is read from all of them in turn, so that a row's coefficients are all there
// are.
//
// Entropy-coded bytes are unstuffed in bulk into a buffer of 16 KiB; the bit reader loads 64 bits from it without
// looking for markers. A unit (MCU) is decoded only when its longest possible code is there, or when the marker behind
// it was seen, so that nothing is ever undone: what is left over waits in that buffer, which is all that is carried
// from call to call. After the last byte before a marker the buffer is padded with zeros: a unit that ran into the
// padding used more bits than there were, which is noticed after the unit, not at each bit.
//
// Coefficients of 16 units at a time lie as structure of arrays, a tile of 16 blocks by coefficient, and are
// transformed 16 blocks at once. At N/8 only the N x N lowest frequencies exist in a tile; up to the last of them a
// look-up of 11 bits gives run, size and value of one or two symbols and the end of block behind them, and symbols
// further on are passed over several at a time by a look-up of up to 13 bits.
//
// # Scales
//
// All of 1/8 to 8/8. Every component is decoded at N/8 of its own size; chroma is never scaled up. 8/8 gives sample
// for sample what libjpeg-turbo's accurate integer transform (JDCT_ISLOW) gives in raw planes, overflows of hostile
// coefficients included (those as its SIMD code has them). N/8 is the N x N inverse transform of the N x N lowest
// frequencies, as in IJG libjpeg 7 and later and in libjpeg-turbo for 3, 5, 6 and 7; its results differ from theirs by
// at most 1 (rounding). libjpeg-turbo's 4/8 and 2/8 are another reduction, an average of full-size samples, which needs
// nearly every coefficient; samples differ from those by 2 to 3 levels rms. 1/8 is the same in both.
//
// # Memory
//
// Sequential, one scan: tables (9 KiB for DC, 27 to 41 KiB for AC; as many as the scan names), a tile group (6 to 21
// KiB), the input buffer (19 KiB) and one strip of units at N/8. Sequential, several scans: the planes at N/8.
// Progressive at 1/8: a coefficient of 2 bytes for each block. Progressive at other scales: the entropy-coded bytes of
// the scans; for each scan 5 KiB, and its tables (9 KiB; two for the first); a row of units, N * N coefficients of 2
// bytes for each of its blocks, and 8 bytes that say which of its coefficients are not zero, without which refinement
// scans can't be read. An EXIF segment is held while it is read (at most 64 KiB). All of it is charged to the budget.
// Planes, coefficients and the scans' bytes go to a file from CCODECS_SPILL_BYTES on, where the limits name a directory
// for it (spill.h, held.h), the bytes also from what all coefficients would take on. Of a scan no more is held than its
// units can take; scans that together have twice what the coefficients would take, and a MiB, give CCODECS_LIMIT. What
// there is no room for gives CCODECS_NO_MEMORY: planes and coefficients from start, scans from read_rows.
//
// What estimate says is exact but for alignment where the end of the file was in the window that completed the header.
// Else up to 100 scans are foreseen (or max_scans), and as many bytes as the coefficients would take; without a
// directory for a file an image whose scans are longer charges more.
//
// The budget's peak for 12 megapixels 4:2:0: baseline (4032x3024) 0.2 MB at any scale; progressive (3024x4032, 1.6 MB)
// 2.0, 1.8, 1.8, 1.8 and 0.6 MB at 8/8, 4/8, 3/8, 2/8 and 1/8.
//
// # Errors, and where libjpeg-turbo is more or less lenient
//
// CCODECS_TRUNCATED: the input ended before the last unit (with several scans, before EOI, unless nothing is missing).
// CCODECS_CORRUPT: wherever libjpeg-turbo stops with an error, and where it goes on with made-up pixels: a code that
// is not in its table, a marker inside entropy-coded data, a restart marker out of turn. Bytes between segments are
// passed over as libjpeg-turbo does, with CCODECS_WARNING_DAMAGED, as are progressive scans that contradict earlier
// ones, what a progressive scan lacks that a marker cuts short, and baseline scans with odd spectral parameters.
//
// In one scan, and in a progressive image but for 1/8, an error in entropy-coded data comes after the rows before it.
//
// Stricter than libjpeg-turbo:
// - A bad code is always an error. libjpeg-turbo's fast path takes it for a zero without a warning.
// - A component without any scan is an error; libjpeg-turbo makes its plane gray. (One that lacks only its DC scan is
//   none.)
// - A component with two scans in a sequential image is an error; libjpeg-turbo mixes them.
//
// More lenient:
// - Width and height go to 65535; libjpeg-turbo stops at 65500.
// - A missing EOI is not missed once every row is there, or with several scans every bit of every coefficient; nothing
//   behind the last unit of a single scan is read.
// - Scans (or parts of them) that a reduced size does not need are passed over by their markers; damage inside is not
//   seen, and bits that contradict an earlier scan give another image than at full size.
//
// Different: blocks of an unfinished progressive image (its last scans are missing, but EOI is there) are not
// smoothed; libjpeg-turbo smooths them unless do_block_smoothing is off.

#ifndef CCODECS_JPEG_H
#define CCODECS_JPEG_H

#include "../core/decoder.h"
#include "../memory/held.h"
#include "../memory/spill.h"

/// Whether the native decoder takes an image with this frame header. `sof_marker` is the second byte of its marker
/// (0xC0 to 0xCF). `adobe_transform` is byte 11 of an Adobe APP14 segment before it; -1 without one or when there is a
/// JFIF APP0 segment, and 0 when there is neither and the component identifiers are the letters R, G, B.
bool ccodecs_jpeg_native_supports(
    uint8_t sof_marker, uint8_t precision, uint8_t component_count, int32_t adobe_transform);

/// A native decoder for one image, to be driven through decoder.c; NULL when the budget has no room.
ccodecs_decoder *ccodecs_jpeg_native_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

/// A decoder by libjpeg-turbo; NULL when the budget has no room.
ccodecs_decoder *ccodecs_jpeg_turbo_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

/// For a caller that gave the header's bytes apart: tells the decoder, after its header is read, which window is next,
/// so that estimate can count what the file holds if that is all of it.
void ccodecs_jpeg_native_foresee(ccodecs_decoder *decoder, const ccodecs_input *window);

// MARK: Sizes

enum {
  JPEG_LANES = 16,          ///< Blocks in a tile, units in a group.
  JPEG_MAX_MCU_BLOCKS = 10, ///< T.81 B.2.3.
  JPEG_VALUE_BITS = 11,     ///< Index of the tables of run, size and value.
  JPEG_PAIR_BITS = 11,      ///< Of those of two symbols.
  JPEG_SKIP_BITS = 13,      ///< Largest index of the skip tables.
  JPEG_BLOCK_BYTES = 256,   ///< More than the longest code of a block: 64 symbols of 31 bits.
  JPEG_INPUT_BYTES = 16384, ///< Unstuffed bytes held at a time.
  JPEG_INPUT_SLACK = JPEG_MAX_MCU_BLOCKS * JPEG_BLOCK_BYTES + 64, ///< Zeros behind the last byte before a marker.
  JPEG_DC_BYTES = 4,            ///< Of a block in a progressive scan of DC coefficients: a symbol of 31 bits.
  JPEG_HELD_INPUT_BYTES = 4096, ///< The same for a scan whose bytes are held,
  JPEG_HELD_INPUT_SLACK = JPEG_BLOCK_BYTES + 64, ///< whose units are single blocks, or of DC coefficients alone.
};

// MARK: Huffman tables (jpeg_huffman.c)

/// A table as a DHT segment has it.
typedef struct jpeg_code {
  bool is_defined;
  uint8_t counts[17]; ///< Codes of each length; [0] unused.
  uint8_t symbols[256];
} jpeg_code;

// An entry of jpeg_table.values: bits to consume (0 to 5), how far to advance in zigzag order (8 to 15), and the
// coefficient before the new position (16 to 31, signed).
//
// An entry of jpeg_table.pairs holds up to two such symbols: bits to consume (0 to 5), whether the last is an end of
// block or one follows it and is consumed with it (7), how far the first advances (8 to 15) and both (16 to 23), bits
// of the first alone (24 to 29), and both coefficients (32 to 47, 48 to 63). Where there is one, the second repeats it.
enum {
  JPEG_LENGTH = 0x3F,
  JPEG_PAIR_ENDS = 0x80,
  JPEG_ADVANCE_END = 100, ///< End of block.
  /// Not in one look-up: for the coefficient there is code length, size << 5, run << 9; or 0 when even the code is too
  /// long.
  JPEG_ADVANCE_SLOW = 180,
};

/// The look-up tables derived from a jpeg_code.
typedef struct jpeg_table {
  uint32_t values[1 << JPEG_VALUE_BITS];
  uint64_t *pairs; ///< Sequential AC: of JPEG_PAIR_BITS; behind the table.
  /// Sequential AC at a reduced size: bits to consume (0 to 5), and how far to advance (6 to 13), 128 more at an end of
  /// block, 64 when even one symbol is too long; behind the table.
  uint16_t *skips;
  uint32_t skip_shift; ///< 64 less the bits of the index of `skips`.
  uint32_t end_code;   ///< The end of block's code, left-aligned in 32 bits.
  uint32_t end_length;
  int32_t last_code[18]; ///< The largest code of a length, -1 without one; [17] ends every search.
  int32_t offset[18];    ///< What to add to a code for its index in `symbols`.
  uint8_t symbols[256];
} jpeg_table;

typedef enum jpeg_table_kind { JPEG_TABLE_DC, JPEG_TABLE_AC, JPEG_TABLE_PROGRESSIVE_AC } jpeg_table_kind;

/// The size of a table with what lies behind it.
size_t ccodecs_jpeg_table_bytes(jpeg_table_kind kind, uint32_t skip_bits);

/// Fills `table`; with `skips` unless `skip_bits` is 0. False when `code` is not a Huffman code.
bool ccodecs_jpeg_table_build(jpeg_table *table, const jpeg_code *code, jpeg_table_kind kind, uint32_t skip_bits);

/// The symbol that `top` (the next 16 bits) starts with: length << 8 | symbol, 0 when there is none.
uint32_t ccodecs_jpeg_table_search(const jpeg_table *table, uint32_t top);

/// The tables of T.81 annex K.3: index 0 luminance, 1 chrominance.
void ccodecs_jpeg_code_standard(jpeg_code *code, bool is_dc, uint32_t index);

// MARK: Input (jpeg_input.c)

/// Unstuffed entropy-coded bytes up to a marker, and the bit reader's place in them.
typedef struct jpeg_input {
  uint8_t *bytes;  ///< `capacity` and `slack`.
  size_t capacity; ///< Unstuffed bytes held at a time.
  size_t slack;    ///< Zeros behind the last byte before a marker.
  size_t count;    ///< Unstuffed bytes.
  size_t next;     ///< The first that is not in `bits`.
  uint64_t bits;   ///< Left-aligned.
  uint32_t bit_count;
  bool has_ff;    ///< The last byte of the last window was 0xFF.
  bool is_ended;  ///< A marker, or the end of the input, follows `count`.
  uint8_t marker; ///< That marker; 0 at the end of the input.
} jpeg_input;

/// Moves the window into the buffer until it is full, a marker is there, or the window is consumed.
void ccodecs_jpeg_input_fill(jpeg_input *in, ccodecs_input *window);

/// Drops everything up to the next marker. True when it is there. *has_dropped is set when whole bytes were dropped.
bool ccodecs_jpeg_input_drop(jpeg_input *in, ccodecs_input *window, bool *has_dropped);

/// Begins a new stretch of entropy-coded bytes.
void ccodecs_jpeg_input_reset(jpeg_input *in);

/// Whether more bits were used than there are. Meaningful once `is_ended`.
static inline bool ccodecs_jpeg_input_is_overrun(const jpeg_input *in) {
  return in->next * 8 > in->count * 8 + in->bit_count;
}

// MARK: Transforms (jpeg_idct*.c)

/// Transforms the 16 blocks of a tile: row r of the tile holds coefficient r (N * vertical + horizontal frequency) of
/// each block. `extent` is the highest zigzag index in it that may not be zero. Writes N rows of 16 * N samples, and
/// may write 8 bytes more.
typedef void (*jpeg_transform)(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent);

/// The fastest transform of this machine for N, 1 to 8.
jpeg_transform ccodecs_jpeg_transform(uint32_t n);

/// The scalar ones, the oracle of the others.
jpeg_transform ccodecs_jpeg_transform_scalar(uint32_t n);
#if defined(__x86_64__)
jpeg_transform ccodecs_jpeg_transform_avx2(uint32_t n);
#elif defined(__aarch64__)
jpeg_transform ccodecs_jpeg_transform_neon(uint32_t n);
#endif

// MARK: Decoder

typedef struct jpeg_component {
  uint8_t id;
  uint8_t horizontal; ///< Sampling factors; 1 when the image has one component.
  uint8_t vertical;
  uint8_t quant_index;
  uint8_t dc_index; ///< Tables of the current scan.
  uint8_t ac_index;
  bool has_quant;         ///< `quant` was taken from the tables, at the component's first scan.
  bool has_scan;          ///< Sequential: its scan was seen.
  uint16_t quant[64];     ///< In the order of a tile's rows.
  uint32_t blocks_across; ///< Without padding.
  uint32_t blocks_down;
  uint32_t padded_across; ///< With the blocks that fill up units and tiles.
  uint32_t padded_down;   ///< With the blocks that fill up units.
  uint32_t plane_width;
  uint32_t plane_height;
  ccodecs_spill samples; ///< The strip, or with several sequential scans the plane.
  size_t stride;
  /// Progressive: the int16_t coefficients, tiles of 16 blocks, row by row of blocks: at 1/8 of the image, otherwise
  /// of a row of units.
  ccodecs_spill tiles;
  uint64_t *marks;       ///< Progressive, but for 1/8: of each of those blocks which are not zero, by zigzag index.
  int8_t known_bits[64]; ///< Progressive: the lowest bit known of each coefficient, -1 when nothing is.
} jpeg_component;

/// One block of a unit.
typedef struct jpeg_block_plan {
  const jpeg_table *dc;
  const jpeg_table *ac;
  int16_t *tiles;    ///< The first of its component's row of tiles in the group.
  uint16_t *extents; ///< One for each of those tiles.
  uint8_t component; ///< Index in the scan.
  uint8_t across;    ///< Blocks of its component across a unit.
  uint8_t column;    ///< Which of them it is.
} jpeg_block_plan;

typedef struct jpeg_scan {
  uint32_t component_count;
  jpeg_component *components[3];
  uint8_t spectral_start;
  uint8_t spectral_end;
  uint8_t high_bit;
  uint8_t low_bit;
  uint32_t mcus_across;
  uint32_t mcus_down;
  uint32_t block_count;
  uint32_t unit_bytes; ///< More than a unit takes.
  jpeg_block_plan blocks[JPEG_MAX_MCU_BLOCKS];
  uint32_t mcu_x;
  uint32_t mcu_y;
  uint32_t restart_left; ///< Units until the next restart marker.
  uint32_t restart_next; ///< Its number.
  int32_t predictions[3];
  uint32_t end_run; ///< Progressive: blocks that are at their end already.
  bool is_skipped;  ///< Nothing in it is needed.
  // Sequential, where damage is tolerated.
  bool is_lost;        ///< A restart marker is looked for.
  uint8_t likely_next; ///< Its number, where a doubtful one was met; else 8.
  uint64_t gray_units; ///< Units before the one at which decoding goes on.
} jpeg_scan;

/// A progressive scan whose bytes are held, to be read row by row together with the others: what of jpeg_decoder
/// belongs to it while it is not read.
typedef struct jpeg_buffered_scan {
  struct jpeg_buffered_scan *next; ///< In the order of the file.
  jpeg_scan scan;
  jpeg_input in;
  jpeg_table *tables[3]; ///< Those that it uses.
  uint32_t restart_interval;
  uint64_t place; ///< Its first byte that is not in `in`,
  uint64_t end;   ///< and the end of the marker behind it.
  bool is_done;
} jpeg_buffered_scan;

/// What follows the header, where all of it was known then.
typedef struct jpeg_rest {
  bool is_known;
  uint64_t byte_count; ///< Of entropy-coded data.
  uint64_t scan_count;
  uint64_t table_count; ///< Huffman tables that these scans name.
} jpeg_rest;

typedef enum jpeg_marker_step {
  JPEG_STEP_START, ///< SOI must be next.
  JPEG_STEP_START_CODE,
  JPEG_STEP_SEEK, ///< Before a marker.
  JPEG_STEP_CODE,
  JPEG_STEP_LENGTH_HIGH,
  JPEG_STEP_LENGTH_LOW,
  JPEG_STEP_BODY,
  JPEG_STEP_SKIP,
} jpeg_marker_step;

typedef enum jpeg_stage {
  JPEG_STAGE_SCAN,
  JPEG_STAGE_SCAN_END, ///< Up to the marker behind a scan.
  JPEG_STAGE_MARKERS,
  JPEG_STAGE_OUTPUT,
} jpeg_stage;

typedef struct jpeg_decoder {
  ccodecs_decoder base;

  // Markers.
  jpeg_marker_step step;
  uint8_t marker;
  uint32_t body_left;   ///< Bytes of the segment that have not come.
  uint32_t body_wanted; ///< Bytes of it to be held.
  uint32_t body_count;
  uint8_t *body;
  uint32_t body_capacity;
  bool has_frame;
  bool has_jfif;
  bool has_adobe;
  bool has_exif;
  uint8_t adobe_transform;
  bool is_progressive;
  bool is_multiscan;
  bool has_units; ///< Some unit of a sequential image was decoded.
  uint32_t scan_count;
  uint32_t restart_interval;
  uint16_t quant[4][64]; ///< Natural order.
  bool has_quant[4];
  jpeg_code dc_codes[4];
  jpeg_code ac_codes[4];
  jpeg_table *dc_tables[4];
  jpeg_table *ac_tables[4];

  // Frame.
  uint32_t component_count;
  uint32_t max_horizontal;
  uint32_t max_vertical;
  uint32_t mcu_rows; ///< Of the frame.
  jpeg_component components[3];

  // Decoding.
  jpeg_stage stage;
  uint32_t n;           ///< Of N/8.
  uint32_t limit;       ///< 1 more than the last zigzag index that is needed.
  uint32_t tile_size;   ///< Samples of a tile in a group, its row for what is not needed included.
  uint16_t places[256]; ///< By zigzag index + 1: where in a tile.
  uint64_t needed;      ///< By zigzag index: which coefficients have a place of their own.
  jpeg_transform transform;
  jpeg_input in;
  jpeg_scan scan;
  int16_t *group; ///< Tiles of 16 units.
  uint16_t extents[4 * JPEG_MAX_MCU_BLOCKS];
  uint32_t output_row; ///< In rows of units.

  // Progressive.
  jpeg_rest rest;
  uint32_t band_row;      ///< The row of units that the components' tiles begin with.
  ccodecs_spool buffered; ///< Entropy-coded bytes.
  jpeg_buffered_scan *buffered_scans;
  jpeg_buffered_scan *last_buffered_scan;
} jpeg_decoder;

/// Natural (row by row) index of a zigzag index; 64 to 79 repeat 63, where a run over the end leads.
extern const uint8_t ccodecs_jpeg_natural_order[80];

// jpeg_markers.c

typedef enum jpeg_marker_result {
  JPEG_MARKER_NEEDS_INPUT,
  JPEG_MARKER_SCAN, ///< A scan begins: d->scan has its parameters.
  JPEG_MARKER_END,  ///< EOI.
  JPEG_MARKER_FAILED,
} jpeg_marker_result;

/// Reads segments up to the end of the next SOS, or EOI.
jpeg_marker_result ccodecs_jpeg_markers_read(jpeg_decoder *d, ccodecs_input *window);

/// Goes on with a marker that was found at the end of entropy-coded bytes.
void ccodecs_jpeg_markers_resume(jpeg_decoder *d, uint8_t marker);

// jpeg_scan.c

/// Prepares what every scan needs: geometry, quantisation and Huffman tables. CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_scan_start(jpeg_decoder *d);

/// Before units: takes a restart marker that is due, and brings bytes until a whole unit is there. Units may be decoded
/// while the reader is not behind *stop. CCODECS_OK, CCODECS_NEEDS_INPUT or the failure.
ccodecs_status ccodecs_jpeg_scan_prepare(jpeg_decoder *d, ccodecs_input *window, const uint8_t **stop);

/// After units, `is_good` unless with a bad code: whether the scan's bytes ended before they did.
bool ccodecs_jpeg_scan_is_cut(const jpeg_decoder *d, bool is_good);

/// After units, unless `is_good`, with a bad code: CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_scan_check(jpeg_decoder *d, bool is_good);

/// Decodes one row of units of a sequential scan. CCODECS_ROWS_READY when it is transformed into the planes,
/// CCODECS_NEEDS_INPUT, or the failure.
ccodecs_status ccodecs_jpeg_scan_read_row(jpeg_decoder *d, ccodecs_input *window);

// jpeg_damage.c

/// After a failure inside a sequential scan: CCODECS_OK where it is damage that is tolerated, else the failure.
ccodecs_status ccodecs_jpeg_damage_begin(jpeg_decoder *d, ccodecs_status failure);

/// While scan.is_lost: looks for the restart marker at which decoding goes on. CCODECS_OK when it is there, or all
/// units that are left stay gray; CCODECS_NEEDS_INPUT, or the failure where nothing was decoded.
ccodecs_status ccodecs_jpeg_damage_seek(jpeg_decoder *d, ccodecs_input *window);

/// The row of the image that the scan's row of units begins with.
uint32_t ccodecs_jpeg_damage_row(const jpeg_decoder *d);

// jpeg_progressive.c

/// What coefficients and marks will charge, as an upper bound, while the image holds no less than `held`.
uint64_t ccodecs_jpeg_progressive_charge(const jpeg_decoder *d, uint32_t n, uint64_t buffered);

/// Allocates the coefficients. CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_progressive_create(jpeg_decoder *d);

/// Checks a scan's parameters against the earlier ones, and sets scan.is_skipped. CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_progressive_start(jpeg_decoder *d);

/// Decodes a scan up to its row of units `end`: CCODECS_OK. CCODECS_NEEDS_INPUT, or the failure.
ccodecs_status ccodecs_jpeg_progressive_read(jpeg_decoder *d, ccodecs_input *window, uint32_t end);

/// Whether every bit of every coefficient has come.
bool ccodecs_jpeg_progressive_is_complete(const jpeg_decoder *d);

/// Transforms one row of units into the strip. Where no more than that is held, clears its coefficients.
void ccodecs_jpeg_progressive_output(jpeg_decoder *d, uint32_t mcu_row);

void ccodecs_jpeg_progressive_destroy(jpeg_decoder *d);

// jpeg_rows.c

/// Whether an image's scans are held, and read row by row.
static inline bool ccodecs_jpeg_buffers_scans(const jpeg_decoder *d, uint32_t n) {
  return d->is_progressive && n > 1;
}

/// Looks through a window that ends the file for what d->rest tells.
void ccodecs_jpeg_rows_foresee(jpeg_decoder *d, const ccodecs_input *window);

/// What the scans will charge, as an upper bound, while the image holds no less than `held`.
uint64_t ccodecs_jpeg_rows_charge(const jpeg_decoder *d, uint64_t buffered);

/// After ccodecs_jpeg_scan_start: keeps what the scan needs to be read later. CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_rows_begin_scan(jpeg_decoder *d);

/// Holds the scan's bytes, up to the marker behind them, which is then in d->in: CCODECS_OK, also at the end of the
/// input, where there is none. CCODECS_NEEDS_INPUT, or the failure.
ccodecs_status ccodecs_jpeg_rows_buffer(jpeg_decoder *d, ccodecs_input *window);

/// When all scans are held: reads a row of units of each. CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_rows_read(jpeg_decoder *d, uint32_t mcu_row);

void ccodecs_jpeg_rows_destroy(jpeg_decoder *d);

#endif

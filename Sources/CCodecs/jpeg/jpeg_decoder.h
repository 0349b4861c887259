// The native JPEG decoder: a push decoder for common photographic JPEGs, without third-party code. Private to CCodecs.
//
// # Supported images
//
// ITU-T T.81 with 8-bit samples and Huffman coding:
//
// - Processes: baseline (SOF0), extended sequential (SOF1) and progressive (SOF2).
// - Components: one, or three coded as YCbCr; sampling factors 1 to 4 in every combination that T.81 allows.
// - Restart markers; interleaved and separate scans.
// - Abbreviated streams that rely on the tables of T.81 annex K (motion JPEG).
//
// read_header returns CCODECS_UNSUPPORTED for everything else: arithmetic coding, 12-bit and 16-bit samples, lossless
// and hierarchical processes, two or four components (CMYK, YCCK), and three components that are RGB. A height defined
// by a DNL segment is CCODECS_CORRUPT, as in libjpeg. The decoder consumes what it reads, so a caller that wants to
// pass unsupported images to another decoder must check before it pushes the first byte: buffer the bytes up to the
// first SOS, then call ccodecs_jpeg_native_supports with the contents of the SOFn, JFIF and Adobe segments before it.
//
// # Data flow
//
//   window -> jpeg_input.c: unstuffed bytes up to the next marker
//          -> jpeg_scan.c or jpeg_progressive.c: coefficients
//          -> jpeg_idct*.c: samples -> rows of the decoder's own strip
//
// At reduced scales most bytes are only skipped, and a reader mostly waits for its own lookups. So in baseline images
// without restart markers, six readers in lockstep find where the blocks begin (jpeg_ahead.c), and each block is then
// decoded from there: one by one at 1/8, and without vectors at 2/8 and 3/8 (jpeg_ahead_blocks.c); otherwise 32 of them
// in lockstep at 2/8, 3/8 and 4/8 (jpeg_ahead_blocks_avx2.c). This does not change results. It begins when 48 KiB have
// arrived, so rows come that much later.
//
// Progressive images take a detour at the first arrow (jpeg_rows.c), except at 1/8: the scans are buffered in
// compressed form. After the last scan, each row of units is decoded from all scans, so only one row of coefficients
// exists at a time.
//
// Entropy-coded bytes are unstuffed in bulk into a buffer of 16 KiB. The bit reader loads 64 bits at a time from it
// without looking for markers. A unit (MCU) is decoded only when its longest possible code is buffered, or when the
// marker after it was found, so nothing is ever rolled back. The bytes left in that buffer are the only state carried
// from call to call. After the last byte before a marker the buffer is padded with zeros. A unit that ran into the
// padding used more bits than there were; this is checked once per unit, not once per bit.
//
// Coefficients are stored for 16 units at a time as a structure of arrays: a tile holds 16 blocks, ordered by
// coefficient, and is transformed as a whole. At N/8 a tile contains only the N x N lowest frequencies. Up to the last
// of them, an 11-bit lookup returns run, size and value of one or two symbols, and an end of block that follows them.
// Symbols after that are skipped several at a time by a lookup of up to 13 bits.
//
// # Scales
//
// All scales from 1/8 to 8/8 are supported. Every component is decoded at N/8 of its own size; chroma is never
// upsampled.
//
// - 8/8 equals the raw planes of libjpeg-turbo's accurate integer transform (JDCT_ISLOW) sample for sample. This
//   includes overflows caused by hostile coefficients, which behave as in its SIMD code.
// - N/8 is the N x N inverse transform of the N x N lowest frequencies, as in IJG libjpeg 7 and later, and as in
//   libjpeg-turbo for 3, 5, 6 and 7. The results differ from theirs by at most 1 (rounding).
// - libjpeg-turbo's 4/8 and 2/8 use another reduction, an average of full-size samples, which needs nearly every
//   coefficient. Samples differ from those by 2 to 3 levels rms.
// - 1/8 is the same in both.
//
// # Memory
//
// - Sequential, one scan without restart markers, at 1/8 and 2/8 from 0.25 megapixels on and at 3/8 from 1 megapixel
//   on, or where blocks are decoded in lockstep at 3/8 and 4/8 from 0.25 megapixels on with AVX-512 and from 0.5 on
//   with AVX2: 210 KiB more, to find blocks ahead.
// - Sequential, one scan: tables (9 KiB for DC, 27 to 41 KiB for AC; as many as the scan names), a tile group (6 to 21
//   KiB), the input buffer (19 KiB) and one strip at N/8: a row of units, or several with at most 32 rows in 64 KiB.
// - Sequential, several scans: the planes at N/8.
// - Progressive at 1/8: one coefficient of 2 bytes for each block.
// - Progressive at other scales: the entropy-coded bytes of the scans; for each scan 5 KiB and its tables (9 KiB; two
//   for the first scan); one row of units, with N * N coefficients of 2 bytes for each block, and 8 bytes for each
//   block that mark its nonzero coefficients, which refinement scans require.
// - An EXIF segment is buffered while it is read (at most 64 KiB).
//
// All of it is charged to the budget. Planes, coefficients and scan bytes of at least CCODECS_SPILL_BYTES move to a
// file if the limits name a directory for it (spill.h, held.h). Scan bytes also move to a file once they exceed the
// size of all coefficients. A scan is buffered only up to the maximum size of its units. Scans that together exceed
// twice the size of the coefficients plus 1 MiB fail with CCODECS_LIMIT. When the budget has no room, the decoder fails
// with CCODECS_NO_MEMORY: in start for planes and coefficients, in read_rows for scans.
//
// The estimate is exact, except for alignment, if the window that completed the header contained the end of the file.
// Otherwise it assumes up to 100 scans (or max_scans) and as many bytes as the coefficients would take. Without a
// directory for a file, an image with longer scans charges more.
//
// The peak of the budget for 12 megapixels 4:2:0: baseline (4032x3024) 0.2 MB, and 0.4 MB where blocks are found ahead;
// progressive (3024x4032, 1.6 MB) 2.0, 1.8, 1.8, 1.8 and 0.6 MB at 8/8, 4/8, 3/8, 2/8 and 1/8.
//
// # Errors, and differences from libjpeg-turbo
//
// CCODECS_TRUNCATED: the input ended before the last unit. With several scans: before EOI, unless nothing is missing.
//
// CCODECS_CORRUPT: libjpeg-turbo stops with an error, or continues with invented pixels: a code that is not in its
// table, a marker inside entropy-coded data, a restart marker out of sequence.
//
// CCODECS_WARNING_DAMAGED is set in these cases, in which decoding continues as in libjpeg-turbo:
//
// - Bytes between segments; they are skipped.
// - Progressive scans that contradict earlier ones.
// - A progressive scan that a marker cuts short.
// - Baseline scans with invalid spectral parameters.
//
// In an image with one scan, and in a progressive image except at 1/8, the rows before an error in entropy-coded data
// are returned first.
//
// Stricter than libjpeg-turbo:
// - An invalid code is always an error. libjpeg-turbo's fast path reads it as a zero without a warning.
// - A component without any scan is an error; libjpeg-turbo makes its plane gray. (A component that lacks only its DC
//   scan is accepted.)
// - A component with two scans in a sequential image is an error; libjpeg-turbo mixes them.
//
// More lenient:
// - Width and height may be up to 65535; libjpeg-turbo stops at 65500.
// - A missing EOI is ignored once every row is decoded, or, with several scans, every bit of every coefficient. Nothing
//   after the last unit of a single scan is read.
// - Scans (or parts of them) that a reduced size does not need are skipped by their markers. Damage inside them is not
//   detected, and bits that contradict an earlier scan result in another image than at full size.
//
// Different: the blocks of an unfinished progressive image (EOI is present, but the last scans are missing) are not
// smoothed; libjpeg-turbo smooths them unless do_block_smoothing is off.

#pragma once

#include "../core/decoder.h"
#include "../memory/held.h"
#include "../memory/spill.h"

/// Returns whether the native decoder supports an image with this frame header.
///
/// `sof_marker` is the second byte of its marker (0xC0 to 0xCF). `adobe_transform` is byte 11 of an Adobe APP14 segment
/// before it. It is -1 without such a segment or if there is a JFIF APP0 segment, and 0 if there is neither and the
/// component identifiers are the letters R, G, B.
bool ccodecs_jpeg_native_supports(
    uint8_t sof_marker, uint8_t precision, uint8_t component_count, int32_t adobe_transform);

/// The native decoder, to be used through decoder.c.
extern const ccodecs_decoder_methods ccodecs_jpeg_native_decoder;

/// The decoder based on libjpeg-turbo.
extern const ccodecs_decoder_methods ccodecs_jpeg_turbo_decoder;

/// Shows the decoder the window that follows the header, for a caller that pushed the header's bytes separately.
///
/// Call it after the header is read. If the window contains the rest of the file, estimate counts what the file
/// contains.
void ccodecs_jpeg_native_foresee(ccodecs_decoder *decoder, const ccodecs_input *window);

// MARK: Sizes

enum {
  JPEG_LANES = 16,          ///< Blocks in a tile, units in a group.
  JPEG_MAX_MCU_BLOCKS = 10, ///< Maximum blocks in a unit (T.81 B.2.3).
  JPEG_VALUE_BITS = 11,     ///< Index bits of the tables of run, size and value.
  JPEG_PAIR_BITS = 11,      ///< Index bits of the tables of two symbols.
  JPEG_STEPS = 1 << JPEG_PAIR_BITS,
  JPEG_SKIP_BITS = 13,      ///< Maximum index bits of the skip tables.
  JPEG_BLOCK_BYTES = 256,   ///< Upper bound for the code of a block: 64 symbols of 31 bits.
  JPEG_INPUT_BYTES = 16384, ///< Capacity of the input buffer, in unstuffed bytes.
  JPEG_INPUT_SLACK = JPEG_MAX_MCU_BLOCKS * JPEG_BLOCK_BYTES + 64, ///< Zeros after the last byte before a marker.
  JPEG_DC_BYTES = 4,            ///< Upper bound for a block in a progressive DC scan: a symbol of 31 bits.
  JPEG_HELD_INPUT_BYTES = 4096, ///< Capacity and slack of the input buffer of a buffered scan,
  JPEG_HELD_INPUT_SLACK = JPEG_BLOCK_BYTES + 64, ///< whose units are single blocks or contain DC coefficients only.
};

// MARK: Huffman tables (jpeg_huffman.c)

/// A Huffman table as defined by a DHT segment.
typedef struct jpeg_code {
  bool is_defined;
  bool has_table;     ///< Lookup tables were derived since it was defined; a scan may have taken them.
  uint8_t counts[17]; ///< Number of codes of each length; [0] is unused.
  uint8_t symbols[256];
} jpeg_code;

// Bit layout of an entry of jpeg_table.values:
//
//   0 to 5    bits to consume
//   8 to 15   how far to advance in zigzag order
//   16 to 31  the coefficient before the new position, signed
//
// Bit layout of an entry of jpeg_table.pairs, which contains one or two such symbols. With one symbol, the second
// repeats the first.
//
//   0 to 5    bits to consume
//   7         the last symbol is an end of block, or an end of block follows it and is consumed with it
//   8 to 15   how far the first symbol advances
//   16 to 23  how far both symbols advance
//   24 to 29  bits of the first symbol alone
//   32 to 63  the two coefficients, 16 bits each
enum {
  JPEG_LENGTH = 0x3F,
  JPEG_PAIR_ENDS = 0x80,
  JPEG_ADVANCE_END = 100, ///< End of block.
  /// The symbol does not fit into one lookup. The coefficient field contains the code length, size << 5 and run << 9;
  /// or 0 when even the code is too long.
  JPEG_ADVANCE_SLOW = 180,
};

/// The lookup tables derived from a jpeg_code.
typedef struct jpeg_table {
  uint32_t values[1 << JPEG_VALUE_BITS];
  uint64_t *pairs; ///< Sequential AC, except at 1/8: indexed by JPEG_PAIR_BITS bits; stored after the table.
  /// Sequential AC at a reduced size; stored after the table. Bits 0 to 5 are the bits to consume, bits 6 to 13 how far
  /// to advance: plus 128 at an end of block, and 64 when even one symbol is too long.
  uint16_t *skips;
  uint32_t skip_shift; ///< 64 minus the index bits of `skips`.
  uint32_t end_code;   ///< The code of the end of block, left-aligned in 32 bits.
  uint32_t end_length;
  int32_t last_code[18]; ///< The largest code of each length, -1 if there is none; [17] ends every search.
  int32_t offset[18];    ///< What to add to a code to get its index in `symbols`.
  uint8_t symbols[256];
} jpeg_table;

typedef enum jpeg_table_kind {
  JPEG_TABLE_DC,
  JPEG_TABLE_AC,
  JPEG_TABLE_SKIPPED_AC, ///< Of a sequential image at 1/8, which needs no AC coefficients: without `pairs`.
  JPEG_TABLE_PROGRESSIVE_AC,
} jpeg_table_kind;

/// Returns the size in bytes of a table, including the lookups stored after it.
size_t ccodecs_jpeg_table_bytes(jpeg_table_kind kind, uint32_t skip_bits);

/// Fills `table`, including `skips` unless `skip_bits` is 0. Returns false when `code` is not a valid Huffman code.
bool ccodecs_jpeg_table_build(jpeg_table *table, const jpeg_code *code, jpeg_table_kind kind, uint32_t skip_bits);

/// Returns the symbol at the start of `top` (the next 16 bits) as length << 8 | symbol; 0 when there is none.
uint32_t ccodecs_jpeg_table_search(const jpeg_table *table, uint32_t top);

/// Sets `code` to a table of T.81 annex K.3: index 0 is luminance, 1 is chrominance.
void ccodecs_jpeg_code_standard(jpeg_code *code, bool is_dc, uint32_t index);

// MARK: Input (jpeg_input.c)

/// Unstuffed entropy-coded bytes up to a marker, and the bit reader's position in them.
typedef struct jpeg_input {
  uint8_t *bytes;  ///< `capacity` + `slack` bytes.
  size_t capacity; ///< Maximum number of unstuffed bytes.
  size_t slack;    ///< Zeros after the last byte before a marker.
  size_t count;    ///< Unstuffed bytes.
  size_t next;     ///< The first byte that is not in `bits`.
  uint64_t bits;   ///< Left-aligned.
  uint32_t bit_count;
  bool has_ff;    ///< The last byte of the last window was 0xFF.
  bool is_ended;  ///< A marker or the end of the input follows the last byte.
  uint8_t marker; ///< That marker; 0 at the end of the input.
} jpeg_input;

/// Moves bytes from the window into the buffer until the buffer is full, a marker is found, or the window is consumed.
void ccodecs_jpeg_input_fill(jpeg_input *in, ccodecs_input *window);

/// Drops everything up to the next marker. Returns true when the marker is found.
///
/// Sets *has_dropped when whole bytes were dropped.
bool ccodecs_jpeg_input_drop(jpeg_input *in, ccodecs_input *window, bool *has_dropped);

/// Starts a new segment of entropy-coded bytes.
void ccodecs_jpeg_input_reset(jpeg_input *in);

/// Returns whether more bits were used than there are. Meaningful once `is_ended` is set.
static inline bool ccodecs_jpeg_input_is_overrun(const jpeg_input *in) {
  return in->next * 8 > in->count * 8 + in->bit_count;
}

// MARK: Transforms (jpeg_idct*.c)

/// Transforms the 16 blocks of a tile into N rows of 16 * N samples.
///
/// Row r of the tile holds coefficient r (N * vertical + horizontal frequency) of each block. `extent` is the maximum
/// zigzag index in it that may be nonzero. The transform may write 8 bytes more than the rows.
typedef void (*jpeg_transform)(
    const int16_t *tile, const uint16_t *quant, uint8_t *rows, size_t row_stride, uint32_t extent);

/// Returns the fastest transform that this machine supports, for N from 1 to 8.
jpeg_transform ccodecs_jpeg_transform(uint32_t n);

/// Returns the scalar transform, the oracle for the others.
jpeg_transform ccodecs_jpeg_transform_scalar(uint32_t n);
jpeg_transform ccodecs_jpeg_transform_avx2(uint32_t n);
jpeg_transform ccodecs_jpeg_transform_neon(uint32_t n);

// MARK: Decoder

typedef struct jpeg_component {
  uint8_t id;
  uint8_t horizontal; ///< Sampling factors; 1 when the image has one component.
  uint8_t vertical;
  uint8_t quant_index;
  uint8_t dc_index; ///< Tables of the current scan.
  uint8_t ac_index;
  bool has_quant;         ///< `quant` was copied from the tables, at the component's first scan.
  bool has_scan;          ///< Sequential: its scan was found.
  uint16_t quant[64];     ///< In the order of a tile's rows.
  uint32_t blocks_across; ///< Without padding.
  uint32_t blocks_down;
  uint32_t padded_across; ///< Including the blocks that complete units and tiles.
  uint32_t padded_down;   ///< Including the blocks that complete units.
  uint32_t plane_width;
  uint32_t plane_height;
  ccodecs_spill samples; ///< The strip; with several sequential scans, the plane.
  size_t stride;
  /// Progressive: the int16_t coefficients in tiles of 16 blocks, by rows of blocks. They cover the image at 1/8, and a
  /// row of units at other scales.
  ccodecs_spill tiles;
  uint64_t *marks;       ///< Progressive, except at 1/8: nonzero coefficients of each of those blocks, by zigzag index.
  int8_t known_bits[64]; ///< Progressive: the lowest known bit of each coefficient, -1 when no bit is known.
} jpeg_component;

/// One block of a unit.
typedef struct jpeg_block_plan {
  const jpeg_table *dc;
  const jpeg_table *ac;
  int16_t *tiles;    ///< The first tile in its component's row of tiles in the group.
  uint16_t *extents; ///< One per tile.
  uint8_t component; ///< Index in the scan.
  uint8_t across;    ///< Number of blocks of its component across a unit.
  uint8_t column;    ///< Index of the block among them.
} jpeg_block_plan;

typedef struct jpeg_ahead jpeg_ahead;

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
  uint32_t unit_bytes; ///< Upper bound for a unit.
  jpeg_block_plan blocks[JPEG_MAX_MCU_BLOCKS];
  uint32_t mcu_x;
  uint32_t mcu_y;
  uint32_t restart_left; ///< Units until the next restart marker.
  uint32_t restart_next; ///< Number of the next restart marker.
  int32_t predictions[3];
  uint32_t end_run; ///< Progressive: number of blocks that are already complete.
  bool is_skipped;  ///< Nothing in the scan is needed.
  // Sequential, when damage is tolerated.
  bool is_lost;        ///< The decoder is looking for a restart marker.
  uint8_t likely_next; ///< Expected number after a doubtful marker; 8 without one.
  uint64_t gray_units; ///< Units before the one at which decoding resumes.
} jpeg_scan;

/// A progressive scan whose bytes are buffered so that it can be decoded row by row together with the others. It stores
/// the scan's part of jpeg_decoder while another scan is decoded.
typedef struct jpeg_buffered_scan {
  struct jpeg_buffered_scan *next; ///< In file order.
  jpeg_scan scan;
  jpeg_input in;
  jpeg_table *tables[3]; ///< Tables that the scan uses.
  uint32_t restart_interval;
  uint64_t place; ///< Offset of its first byte that is not in `in`.
  uint64_t end;   ///< Offset after the marker that ends the scan.
  bool is_done;
} jpeg_buffered_scan;

/// The bytes after the header, if all of them were available when the header was read.
typedef struct jpeg_rest {
  bool is_known;
  uint64_t byte_count; ///< Entropy-coded bytes.
  uint64_t scan_count;
  uint64_t table_count; ///< Huffman tables used by these scans.
} jpeg_rest;

typedef enum jpeg_marker_step {
  JPEG_STEP_START, ///< SOI must come next.
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
  JPEG_STAGE_SCAN_END, ///< Skipping to the marker after a scan.
  JPEG_STAGE_MARKERS,
  JPEG_STAGE_OUTPUT,
} jpeg_stage;

typedef struct jpeg_decoder {
  ccodecs_decoder base;

  // Markers.
  jpeg_marker_step step;
  uint8_t marker;
  uint32_t body_left;   ///< Bytes of the segment that have not arrived.
  uint32_t body_wanted; ///< Bytes of the segment to buffer.
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
  bool has_units; ///< At least one unit of a sequential image was decoded.
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
  uint32_t mcu_rows; ///< Rows of units in the frame.
  jpeg_component components[3];

  // Decoding.
  jpeg_stage stage;
  uint32_t n;         ///< The N of N/8.
  uint32_t limit;     ///< The last zigzag index that is needed, plus 1.
  uint32_t tile_size; ///< Coefficients of a tile in a group, including its row for those that are not needed.
  /// Position in a tile, by zigzag index + 1. The steps of jpeg_ahead_blocks.c reach index 377.
  uint16_t places[384];
  uint64_t needed; ///< Coefficients that have a position of their own, by zigzag index.
  jpeg_transform transform;
  jpeg_input in;
  jpeg_scan scan;
  int16_t *group;    ///< Tiles of 16 units.
  jpeg_ahead *ahead; ///< NULL when blocks are not found ahead.
  bool is_short;     ///< What follows the header is too short for that.
  bool may_go_ahead; ///< The scan may be prepared for finding blocks ahead.
  uint16_t extents[JPEG_MAX_MCU_BLOCKS];
  uint32_t output_row;         ///< The next row of units to return.
  uint32_t strip_rows;         ///< The maximum number of rows of units in a strip of a sequential image with one scan.
  uint32_t decoded_row;        ///< The next row of units to decode of such an image.
  ccodecs_status late_failure; ///< The failure behind the last strip, or CCODECS_OK.

  // Progressive.
  jpeg_rest rest;
  uint32_t band_row;      ///< The first row of units in the components' tiles.
  ccodecs_spool buffered; ///< Entropy-coded bytes.
  jpeg_buffered_scan *buffered_scans;
  jpeg_buffered_scan *last_buffered_scan;
} jpeg_decoder;

// jpeg_markers.c

typedef enum jpeg_marker_result {
  JPEG_MARKER_NEEDS_INPUT,
  JPEG_MARKER_SCAN, ///< A scan starts: d->scan contains its parameters.
  JPEG_MARKER_END,  ///< EOI.
  JPEG_MARKER_FAILED,
} jpeg_marker_result;

/// Reads segments up to the end of the next SOS, or up to EOI.
jpeg_marker_result ccodecs_jpeg_markers_read(jpeg_decoder *d, ccodecs_input *window);

/// Continues with a marker that was found after entropy-coded bytes.
void ccodecs_jpeg_markers_resume(jpeg_decoder *d, uint8_t marker);

// jpeg_scan.c

/// Prepares what every scan needs: geometry, quantization and Huffman tables. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_scan_start(jpeg_decoder *d);

/// Consumes a restart marker that is due, and fills the buffer until a whole unit is available.
///
/// Call it before decoding units. Units may be decoded until the reader passes *stop. Returns CCODECS_OK,
/// CCODECS_NEEDS_INPUT or the failure.
ccodecs_status ccodecs_jpeg_scan_prepare(jpeg_decoder *d, ccodecs_input *window, const uint8_t **stop);

/// Returns whether the scan's bytes ended before the decoded units did. `is_good` is false after an invalid code.
bool ccodecs_jpeg_scan_is_cut(const jpeg_decoder *d, bool is_good);

/// Checks the decoded units. `is_good` is false after an invalid code. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_scan_check(jpeg_decoder *d, bool is_good);

/// Decodes one row of units of a sequential scan. Returns CCODECS_ROWS_READY when it is transformed into the planes,
/// CCODECS_NEEDS_INPUT, or the failure.
ccodecs_status ccodecs_jpeg_scan_read_row(jpeg_decoder *d, ccodecs_input *window);

// jpeg_damage.c

/// Handles a failure inside a sequential scan. Returns CCODECS_OK when it is damage that is tolerated, otherwise the
/// failure.
ccodecs_status ccodecs_jpeg_damage_begin(jpeg_decoder *d, ccodecs_status failure);

/// Looks for the restart marker at which decoding resumes, while scan.is_lost is set.
///
/// Returns CCODECS_OK when it is found or all remaining units stay gray, CCODECS_NEEDS_INPUT, or the failure when
/// nothing was decoded.
ccodecs_status ccodecs_jpeg_damage_seek(jpeg_decoder *d, ccodecs_input *window);

/// Returns the image row at which the scan's current row of units starts.
uint32_t ccodecs_jpeg_damage_row(const jpeg_decoder *d);

// jpeg_progressive.c

/// Returns an upper bound of what coefficients and marks will charge while the image has at least `buffered` bytes
/// charged.
uint64_t ccodecs_jpeg_progressive_charge(const jpeg_decoder *d, uint32_t n, uint64_t buffered);

/// Allocates the coefficients. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_progressive_create(jpeg_decoder *d);

/// Checks a scan's parameters against the earlier scans, and sets scan.is_skipped. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_progressive_start(jpeg_decoder *d);

/// Decodes a scan up to its row of units `end`. Returns CCODECS_OK, CCODECS_NEEDS_INPUT, or the failure.
ccodecs_status ccodecs_jpeg_progressive_read(jpeg_decoder *d, ccodecs_input *window, uint32_t end);

/// Returns whether every bit of every coefficient was decoded.
bool ccodecs_jpeg_progressive_is_complete(const jpeg_decoder *d);

/// Transforms one row of units into the strip. Clears its coefficients if the decoder stores only one row of units.
void ccodecs_jpeg_progressive_output(jpeg_decoder *d, uint32_t mcu_row);

void ccodecs_jpeg_progressive_destroy(jpeg_decoder *d);

// jpeg_rows.c

/// Returns whether an image's scans are buffered and decoded row by row.
static inline bool ccodecs_jpeg_buffers_scans(const jpeg_decoder *d, uint32_t n) {
  return d->is_progressive && n > 1;
}

/// Fills d->rest from a window that contains the end of the file.
void ccodecs_jpeg_rows_foresee(jpeg_decoder *d, const ccodecs_input *window);

/// Returns an upper bound of what the scans will charge while the image has at least `buffered` bytes charged.
uint64_t ccodecs_jpeg_rows_charge(const jpeg_decoder *d, uint64_t buffered);

/// Keeps what is needed to decode the scan later. Call it after ccodecs_jpeg_scan_start. Returns CCODECS_OK or the
/// failure.
ccodecs_status ccodecs_jpeg_rows_begin_scan(jpeg_decoder *d);

/// Buffers the scan's bytes up to and including the marker that ends it, which is then in d->in.
///
/// Returns CCODECS_OK, also at the end of the input, where there is no marker; CCODECS_NEEDS_INPUT; or the failure.
ccodecs_status ccodecs_jpeg_rows_buffer(jpeg_decoder *d, ccodecs_input *window);

/// Decodes a row of units from every scan. Call it when all scans are buffered. Returns CCODECS_OK or the failure.
ccodecs_status ccodecs_jpeg_rows_read(jpeg_decoder *d, uint32_t mcu_row);

void ccodecs_jpeg_rows_destroy(jpeg_decoder *d);

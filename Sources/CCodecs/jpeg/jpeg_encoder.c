// JPEG encoding, from component planes without conversion or from RGB rows.
//
// The rows of different planes arrive at different times, and not in whole MCUs. So each plane has a queue of padded
// rows, and a row of MCUs is encoded when all planes have their rows.
//
// A baseline file is written from tokens. Up to `max_token_chunks` of them are kept, so that the Huffman tables can be
// those of the image; if there are more, the tables follow from the first of them, and memory stays bounded. A
// progressive file is written from the coefficients of the whole image, of which only those other than zero are kept.

#include "../formats.h"
#include "jpeg_encode.h"
#include "jpeg_encode_tokens.h"
#include "jpeg_metadata.h"

/// Initial capacity of a queue, in rows of MCUs.
static const uint32_t queued_mcu_rows = 3;
/// Chunks of tokens that are kept before the tables are computed: a quarter of a million tokens in 1 MB, which is all
/// of most images of a megapixel, and enough for good tables of any.
static const uint32_t max_token_chunks = 64;
/// Bytes that the output may exceed its computed size by while tokens are written.
enum { TOKENS_SLACK = 16 * 1024 };
/// Bytes of all headers except EXIF.
static const size_t header_bytes = 1024;
/// Samples after the last block of a row, which repeat the last one.
static const size_t row_margin = 8;

typedef struct plane_queue {
  ccodecs_bytes rows;
  size_t width;      ///< Bytes of an input row.
  size_t stride;     ///< Bytes of a row padded to whole MCUs, and the margin.
  uint32_t mcu_rows; ///< Rows in a row of MCUs.
} plane_queue;

typedef struct jpeg_encoder {
  ccodecs_encoder base;
  const jpeg_encode_kernels *kernels;
  jpeg_geometry geometry;
  jpeg_store stores[3]; ///< Progressive files only.
  plane_queue planes[3];
  jpeg_block *blocks[3];    ///< The blocks of a row of MCUs, in rows.
  float *lambdas[2];        ///< For the luma and the chroma in the place of each luma block in a row of MCUs.
  uint32_t *sums;           ///< Activities of the luma blocks in a row.
  uint8_t *converted;       ///< RGB input: two rows of each component in full size.
  uint32_t converted_count; ///< Rows in `converted`.
  uint32_t rows_left;       ///< Rows of MCUs that are not yet encoded.
  uint32_t interval;        ///< MCUs between restart markers; 0 for none.
  uint32_t interval_left;
  uint32_t restart_count;
  int32_t previous_dc[3];
  jpeg_encode_tables tables;
  jpeg_chooser choosers[3];
  jpeg_scan_writer scan;
} jpeg_encoder;

/// Whether the coefficients of the whole image are kept: for a progressive file, and for one whose tables must be those
/// of the whole image, however large.
static bool buffers_coefficients(const ccodecs_encode_options *options) {
  return options->jpeg.is_progressive || options->jpeg.has_optimal_tables;
}

// MARK: Headers

static uint8_t *put_frame(const jpeg_encoder *e, uint8_t *end) {
  const ccodecs_encode_options *options = &e->base.options;
  const uint32_t count = e->geometry.component_count;
  const uint8_t frame[] = {
      0xFF,
      options->jpeg.is_progressive ? SOF2 : SOF0,
      0,
      (uint8_t)(8 + 3 * count),
      8,
      (uint8_t)(options->height >> 8),
      (uint8_t)options->height,
      (uint8_t)(options->width >> 8),
      (uint8_t)options->width,
      (uint8_t)count};
  memcpy(end, frame, sizeof frame);
  end += sizeof frame;
  for (uint32_t c = 0; c < count; c++) {
    *end++ = (uint8_t)(c + 1);
    *end++ = (uint8_t)(e->geometry.across[c] << 4 | e->geometry.down[c]);
    *end++ = (uint8_t)c;
  }
  return end;
}

static bool put_headers(jpeg_encoder *e) {
  static const uint8_t jfif[] = {0xFF, SOI, 0xFF, APP0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};
  const ccodecs_encode_options *options = &e->base.options;
  ccodecs_bytes *output = &e->base.output;
  if (!ccodecs_bytes_reserve(output, header_bytes + ccodecs_jpeg_metadata_bytes(&options->metadata), e->base.budget) ||
      !ccodecs_bytes_append(output, jfif, sizeof jfif, e->base.budget) ||
      !ccodecs_jpeg_append_metadata(&options->metadata, output, e->base.budget)) {
    return false;
  }
  uint8_t *start = ccodecs_bytes_start(output), *end = start + output->count;
  const uint32_t count = e->geometry.component_count;
  const uint8_t segment[] = {0xFF, DQT, 0, (uint8_t)(2 + 65 * count)};
  memcpy(end, segment, sizeof segment);
  end += sizeof segment;
  for (uint32_t c = 0; c < count; c++) {
    *end++ = (uint8_t)c;
    for (uint32_t k = 0; k < JPEG_BLOCK; k++) {
      *end++ = e->tables.quant[c][ccodecs_jpeg_zigzag[k]];
    }
  }
  end = put_frame(e, end);
  output->count = (size_t)(end - start);
  return true;
}

// MARK: Rows of MCUs

static const uint8_t *queue_start(const plane_queue *queue) {
  return ccodecs_bytes_start(&queue->rows);
}

/// Fills in the lambdas of the luma blocks of the next row of MCUs.
static void measure(jpeg_encoder *e, uint32_t row_count) {
  const plane_queue *luma = &e->planes[0];
  const uint32_t columns = e->geometry.columns[0];
  for (uint32_t row = 0; row < row_count; row++) {
    e->kernels->activity(queue_start(luma) + (size_t)row * 8 * luma->stride, luma->stride, columns, e->sums);
    for (uint32_t kind = 0; kind < 2; kind++) {
      float *lambdas = e->lambdas[kind] + (size_t)row * columns;
      for (uint32_t x = 0; x < columns; x++) {
        lambdas[x] = e->tables.lambda[kind] * ccodecs_jpeg_masking(e->tables.mask_slope[kind], e->sums[x]);
      }
    }
  }
}

/// Returns the lambda of a block from those of the luma blocks in its place.
static float lambda_at(const jpeg_encoder *e, uint32_t component, uint32_t x, uint32_t y, uint32_t luma_rows) {
  const jpeg_geometry *g = &e->geometry;
  const uint32_t across = g->across[0] / g->across[component], down = g->down[0] / g->down[component];
  float sum = 0;
  for (uint32_t i = 0; i < across * down; i++) {
    const uint32_t column = x * across + i % across, row = y * down + i / across;
    sum += e->lambdas[component > 0]
                     [(row < luma_rows ? row : luma_rows - 1) * g->columns[0] +
                      (column < g->columns[0] ? column : g->columns[0] - 1)];
  }
  return sum / (float)(across * down) * ccodecs_jpeg_lambda_shares[component];
}

static uint32_t minimum(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

/// Returns the rows of blocks that a row of MCUs has of a component, without those that only complete it.
static uint32_t block_rows(const jpeg_encoder *e, uint32_t component) {
  const jpeg_geometry *g = &e->geometry;
  return minimum(g->down[component], g->rows[component] - (g->mcu_rows - e->rows_left) * g->down[component]);
}

static bool choose_blocks(jpeg_encoder *e) {
  const uint32_t luma_rows = block_rows(e, 0);
  measure(e, luma_rows);
  for (uint32_t c = 0; c < e->geometry.component_count; c++) {
    const plane_queue *queue = &e->planes[c];
    jpeg_block *block = e->blocks[c];
    const uint32_t rows = block_rows(e, c);
    for (uint32_t y = 0; y < rows; y++) {
      const uint8_t *samples = queue_start(queue) + (size_t)y * 8 * queue->stride;
      for (uint32_t x = 0; x < e->geometry.columns[c]; x++, block++) {
        const float lambda = lambda_at(e, c, x, y, luma_rows);
        ccodecs_jpeg_choose(&e->choosers[c], e->kernels, samples + (size_t)x * 8, queue->stride, lambda, block);
        if (buffers_coefficients(&e->base.options) &&
            !ccodecs_jpeg_store_append(&e->stores[c], block, e->base.budget)) {
          return false;
        }
      }
    }
  }
  return true;
}

/// Appends the tokens of an MCU. Blocks that only complete it repeat the DC coefficient before them.
static void put_mcu(jpeg_encoder *e, uint32_t mcu) {
  const jpeg_geometry *g = &e->geometry;
  for (uint32_t c = 0; c < g->component_count; c++) {
    const uint32_t kind = c > 0;
    for (uint32_t i = 0; i < g->across[c] * g->down[c]; i++) {
      const uint32_t x = mcu * g->across[c] + i % g->across[c], y = i / g->across[c];
      if (x < g->columns[c] && y < block_rows(e, c)) {
        const jpeg_block *block = &e->blocks[c][y * g->columns[c] + x];
        ccodecs_jpeg_put_dc(&e->scan, JPEG_CODE_DC + kind, block->dc - e->previous_dc[c]);
        e->previous_dc[c] = block->dc;
        ccodecs_jpeg_put_ac(&e->scan, JPEG_CODE_AC + kind, block);
      } else {
        ccodecs_jpeg_put_dc(&e->scan, JPEG_CODE_DC + kind, 0);
        ccodecs_jpeg_put_token(&e->scan, JPEG_CODE_AC + kind, 0, 0);
      }
    }
  }
}

static bool put_mcu_row(jpeg_encoder *e) {
  for (uint32_t mcu = 0; mcu < e->geometry.mcu_columns; mcu++) {
    // The blocks of an MCU are at most six.
    if (!ccodecs_jpeg_scan_reserve(&e->scan)) {
      return false;
    }
    if (e->interval > 0 && e->interval_left-- == 0) {
      ccodecs_jpeg_put_restart(&e->scan, e->restart_count++ % 8);
      e->interval_left = e->interval - 1;
      memset(e->previous_dc, 0, sizeof e->previous_dc);
    }
    put_mcu(e, mcu);
  }
  return true;
}

static bool has_mcu_row(const jpeg_encoder *e) {
  for (uint32_t c = 0; c < e->geometry.component_count; c++) {
    if (e->planes[c].rows.count < e->planes[c].mcu_rows * e->planes[c].stride) {
      return false;
    }
  }
  return e->rows_left > 0;
}

static ccodecs_status encode_queued(jpeg_encoder *e) {
  while (has_mcu_row(e)) {
    if (!choose_blocks(e) || (!buffers_coefficients(&e->base.options) && !put_mcu_row(e))) {
      return CCODECS_NO_MEMORY;
    }
    e->rows_left--;
    for (uint32_t c = 0; c < e->geometry.component_count; c++) {
      ccodecs_bytes_take(&e->planes[c].rows, e->planes[c].mcu_rows * e->planes[c].stride);
    }
  }
  return CCODECS_OK;
}

// MARK: Rows

/// Returns where the next row of a plane belongs, or NULL if memory is exhausted.
static uint8_t *new_row(jpeg_encoder *e, plane_queue *queue) {
  if (!ccodecs_bytes_reserve(&queue->rows, queue->stride, e->base.budget)) {
    return NULL;
  }
  uint8_t *row = ccodecs_bytes_start(&queue->rows) + queue->rows.count;
  queue->rows.count += queue->stride;
  return row;
}

static void pad_row(const plane_queue *queue, uint8_t *row) {
  memset(row + queue->width, row[queue->width - 1], queue->stride - queue->width);
}

static ccodecs_status write_planes(jpeg_encoder *e, const ccodecs_rows *rows) {
  for (uint32_t c = 0; c < e->geometry.component_count; c++) {
    for (uint32_t y = 0; y < rows->row_counts[c]; y++) {
      uint8_t *row = new_row(e, &e->planes[c]);
      if (row == NULL) {
        return CCODECS_NO_MEMORY;
      }
      memcpy(row, rows->planes[c] + y * rows->row_strides[c], e->planes[c].width);
      pad_row(&e->planes[c], row);
    }
  }
  return encode_queued(e);
}

/// Appends the chroma of the converted rows, of which the last one is repeated if there is one too few.
static bool append_chroma(jpeg_encoder *e) {
  const size_t width = e->base.options.width;
  const size_t padded = width + (width & 1);
  for (uint32_t c = 1; c < 3; c++) {
    uint8_t *upper = e->converted + (2 * c - 2) * padded;
    uint8_t *lower = e->converted_count > 1 ? upper + padded : upper;
    uint8_t *row = new_row(e, &e->planes[c]);
    if (row == NULL) {
      return false;
    }
    if (e->base.options.subsampling == CCODECS_SUBSAMPLING_444) {
      memcpy(row, upper, width);
    } else {
      upper[padded - 1] = upper[width - 1];
      lower[padded - 1] = lower[width - 1];
      e->kernels->halve(upper, e->base.options.subsampling == CCODECS_SUBSAMPLING_420 ? lower : NULL, row, padded / 2);
    }
    pad_row(&e->planes[c], row);
  }
  e->converted_count = 0;
  return true;
}

static ccodecs_status write_rgb(jpeg_encoder *e, const ccodecs_rows *rows) {
  const size_t width = e->base.options.width;
  const size_t padded = width + (width & 1);
  for (uint32_t y = 0; y < rows->row_counts[0]; y++) {
    uint8_t *luma = new_row(e, &e->planes[0]);
    if (luma == NULL) {
      return CCODECS_NO_MEMORY;
    }
    uint8_t *blue = e->converted + e->converted_count * padded;
    e->kernels->convert(rows->planes[0] + y * rows->row_strides[0], luma, blue, blue + 2 * padded, width);
    pad_row(&e->planes[0], luma);
    e->converted_count++;
    const bool is_last = e->base.rows_left[0] == 0 && y + 1 == rows->row_counts[0];
    if ((e->converted_count == 2 || is_last || e->geometry.down[0] == 1) && !append_chroma(e)) {
      return CCODECS_NO_MEMORY;
    }
  }
  return encode_queued(e);
}

/// Repeats the last row of each plane until the last row of MCUs is complete.
static ccodecs_status pad_planes(jpeg_encoder *e) {
  for (uint32_t c = 0; e->rows_left > 0 && c < e->geometry.component_count; c++) {
    plane_queue *queue = &e->planes[c];
    while (queue->rows.count < queue->mcu_rows * queue->stride) {
      uint8_t *row = new_row(e, queue);
      if (row == NULL) {
        return CCODECS_NO_MEMORY;
      }
      // Halves are rounded up, so no plane ends a row of MCUs before another: there is always a row to repeat.
      memcpy(row, row - queue->stride, queue->stride);
    }
  }
  return encode_queued(e);
}

/// Writes the stored coefficients as a baseline scan: once to count the symbols and once for good.
static bool put_stored(jpeg_encoder *e) {
  for (uint32_t pass = 0; pass < 2; pass++) {
    jpeg_store_cursor cursors[3] = {{0}};
    e->scan.is_counting = pass == 0;
    e->interval_left = e->interval;
    e->restart_count = 0;
    memset(e->previous_dc, 0, sizeof e->previous_dc);
    for (e->rows_left = e->geometry.mcu_rows; e->rows_left > 0; e->rows_left--) {
      for (uint32_t c = 0; c < e->geometry.component_count; c++) {
        for (uint32_t i = 0; i < block_rows(e, c) * e->geometry.columns[c]; i++) {
          ccodecs_jpeg_store_read(&e->stores[c], &cursors[c], &e->blocks[c][i]);
        }
      }
      if (!put_mcu_row(e)) {
        return false;
      }
    }
    if (pass == 0 && !ccodecs_jpeg_scan_count_end(&e->scan)) {
      return false;
    }
  }
  return ccodecs_jpeg_scan_end(&e->scan);
}

// MARK: Methods

static ccodecs_status write(ccodecs_encoder *base, const ccodecs_rows *rows) {
  jpeg_encoder *e = (jpeg_encoder *)base;
  return base->options.pixels == CCODECS_PIXELS_RGB8 ? write_rgb(e, rows) : write_planes(e, rows);
}

static ccodecs_status finish(ccodecs_encoder *base) {
  jpeg_encoder *e = (jpeg_encoder *)base;
  CCODECS_TRY(pad_planes(e));
  const bool is_written = base->options.jpeg.is_progressive
                              ? ccodecs_jpeg_put_progressive(&e->scan, e->stores, &e->geometry)
                          : buffers_coefficients(&base->options) ? put_stored(e)
                                                                 : ccodecs_jpeg_scan_end(&e->scan);
  static const uint8_t end[] = {0xFF, EOI};
  return is_written && ccodecs_bytes_append(&base->output, end, sizeof end, base->budget) ? CCODECS_OK
                                                                                          : CCODECS_NO_MEMORY;
}

static void destroy(ccodecs_encoder *base) {
  jpeg_encoder *e = (jpeg_encoder *)base;
  ccodecs_budget *budget = base->budget;
  for (uint32_t c = 0; c < 3; c++) {
    ccodecs_bytes_free(&e->planes[c].rows, budget);
    ccodecs_free(budget, e->blocks[c]);
    ccodecs_jpeg_store_free(&e->stores[c], budget);
  }
  ccodecs_jpeg_scan_free(&e->scan);
  ccodecs_free(budget, e->lambdas[0]);
  ccodecs_free(budget, e->lambdas[1]);
  ccodecs_free(budget, e->sums);
  ccodecs_free(budget, e->converted);
}

// MARK: Creation

jpeg_geometry ccodecs_jpeg_geometry(const ccodecs_encode_options *options) {
  jpeg_geometry g = {.component_count = options->pixels == CCODECS_PIXELS_GRAY8 ? 1 : 3};
  const bool is_gray = g.component_count == 1;
  const uint32_t across = !is_gray && options->subsampling != CCODECS_SUBSAMPLING_444 ? 2 : 1;
  const uint32_t down = !is_gray && options->subsampling == CCODECS_SUBSAMPLING_420 ? 2 : 1;
  g.mcu_columns = (options->width + 8 * across - 1) / (8 * across);
  g.mcu_rows = (options->height + 8 * down - 1) / (8 * down);
  for (uint32_t c = 0; c < g.component_count; c++) {
    g.across[c] = c == 0 ? across : 1;
    g.down[c] = c == 0 ? down : 1;
    const uint32_t width = c == 0 ? options->width : (options->width + across - 1) / across;
    const uint32_t height = c == 0 ? options->height : (options->height + down - 1) / down;
    g.columns[c] = (width + 7) / 8;
    g.rows[c] = (height + 7) / 8;
  }
  return g;
}

static bool prepare_planes(jpeg_encoder *e) {
  const jpeg_geometry *g = &e->geometry;
  const uint32_t across = g->across[0];
  for (uint32_t c = 0; c < g->component_count; c++) {
    plane_queue *queue = &e->planes[c];
    const uint32_t width = e->base.options.width;
    queue->width = c == 0 ? width : (width + across - 1) / across;
    queue->stride = (size_t)g->columns[c] * 8 + row_margin;
    queue->mcu_rows = g->down[c] * 8;
    const size_t block_count = (size_t)g->columns[c] * g->down[c];
    e->blocks[c] = ccodecs_allocate(e->base.budget, block_count * sizeof(jpeg_block));
    if (e->blocks[c] == NULL ||
        !ccodecs_bytes_reserve(&queue->rows, queue->stride * queue->mcu_rows * queued_mcu_rows, e->base.budget) ||
        (buffers_coefficients(&e->base.options) &&
         !ccodecs_jpeg_store_init(&e->stores[c], g->columns[c], g->rows[c], e->base.budget))) {
      return false;
    }
  }
  for (uint32_t kind = 0; kind < 2; kind++) {
    e->lambdas[kind] = ccodecs_allocate(e->base.budget, (size_t)g->columns[0] * g->down[0] * sizeof(float));
  }
  e->sums = ccodecs_allocate(e->base.budget, (size_t)g->columns[0] * sizeof *e->sums);
  if (e->base.options.pixels == CCODECS_PIXELS_RGB8) {
    e->converted = ccodecs_allocate(e->base.budget, ((size_t)e->base.options.width + 1) * 4);
  }
  return e->lambdas[0] != NULL && e->lambdas[1] != NULL && e->sums != NULL &&
         (e->base.options.pixels != CCODECS_PIXELS_RGB8 || e->converted != NULL);
}

/// Returns the maximum size of the output of 16 rows of noise. Measured: 9 bits per sample at the highest quality.
static uint64_t strip_bytes(const ccodecs_encode_options *options) {
  const uint64_t bits = options->pixels == CCODECS_PIXELS_GRAY8           ? 9
                        : options->subsampling == CCODECS_SUBSAMPLING_420 ? 14
                                                                          : 27;
  return (uint64_t)options->width * 16 * bits / 8;
}

/// The tokens of an image that are kept, and what they become.
typedef struct token_memory {
  bool is_whole;   ///< Whether all tokens of any image of this size are kept.
  uint64_t chunks; ///< Bytes of the chunks.
  uint64_t output; ///< Maximum bytes of the output when they are written.
} token_memory;

static token_memory token_memory_of(const ccodecs_encode_options *options, const jpeg_geometry *g) {
  // The blocks that only complete MCUs have tokens too: two each.
  const uint64_t blocks_per_mcu = g->component_count > 1 ? g->across[0] * g->down[0] + 2 : 1;
  const uint64_t maximum = (uint64_t)g->mcu_columns * g->mcu_rows * blocks_per_mcu * JPEG_BLOCK;
  const uint64_t all_chunks = maximum / (JPEG_TOKENS_PER_CHUNK - JPEG_MAX_MCU_TOKENS) + 1;
  const bool is_whole = all_chunks <= max_token_chunks;
  const uint64_t chunks = is_whole ? all_chunks : max_token_chunks;
  // A token takes 10 to 12 bits in noise at the highest quality.
  const uint64_t output = chunks * JPEG_TOKENS_PER_CHUNK * 3 / 2;
  const uint64_t largest = ccodecs_encoder_max_lossy_bytes(options);
  return (token_memory){
      .is_whole = is_whole,
      .chunks = chunks * (sizeof(jpeg_token_chunk) + JPEG_BLOCK_HEADER),
      .output = output < largest ? output : largest};
}

/// Returns the bytes that are charged before the first row, for the tokens that are kept and for the output when they
/// are written.
static uint64_t token_charge(const ccodecs_encode_options *options, const jpeg_geometry *g) {
  const token_memory memory = token_memory_of(options, g);
  return memory.chunks + memory.output;
}

/// Returns the maximum size of tokens and output at the same time.
static uint64_t output_charge(const ccodecs_encode_options *options, const jpeg_geometry *g) {
  const token_memory memory = token_memory_of(options, g);
  const uint64_t whole = memory.chunks + memory.output + TOKENS_SLACK;
  if (memory.is_whole) {
    return whole;
  }
  // The rest of a strip follows the tokens that were kept, whose chunks are free by then. The output grows by half, and
  // the old block is still allocated while it is copied.
  const uint64_t grown = (memory.output + strip_bytes(options)) * 5 / 2 + 3 * sizeof(jpeg_token_chunk);
  return whole > grown ? whole : grown;
}

static uint64_t estimate(const ccodecs_encode_options *options) {
  const jpeg_geometry g = ccodecs_jpeg_geometry(options);
  uint64_t charge =
      sizeof(jpeg_encoder) + ccodecs_jpeg_metadata_bytes(&options->metadata) + header_bytes + 8 * JPEG_BLOCK_HEADER;
  charge += (uint64_t)g.columns[0] * (2 * g.down[0] + 1) * sizeof(float);
  charge += options->pixels == CCODECS_PIXELS_RGB8 ? ((uint64_t)options->width + 1) * 4 : 0;
  uint64_t block_count = 0;
  for (uint32_t c = 0; c < g.component_count; c++) {
    const uint64_t stride = (uint64_t)g.columns[c] * 8 + row_margin;
    charge += stride * g.down[c] * 8 * queued_mcu_rows + (uint64_t)g.columns[c] * g.down[c] * sizeof(jpeg_block);
    charge += 4 * JPEG_BLOCK_HEADER;
    block_count += (uint64_t)g.columns[c] * g.rows[c];
  }
  charge += output_charge(options, &g);
  if (buffers_coefficients(options)) {
    const uint64_t levels = block_count * JPEG_LEVELS;
    const uint64_t chunks = levels / (JPEG_LEVELS_PER_CHUNK - JPEG_LEVELS) + 3;
    charge += block_count * (sizeof(uint64_t) + sizeof(int16_t));
    charge += chunks * (sizeof(jpeg_level_chunk) + JPEG_BLOCK_HEADER);
    // All output is pending in the end, in a block that has grown.
    charge += ccodecs_encoder_max_lossy_bytes(options) * 3 / 2;
  }
  return charge;
}

static bool create(ccodecs_encoder *encoder, const ccodecs_encode_options *options, ccodecs_budget *budget) {
  jpeg_encoder *e = (jpeg_encoder *)encoder;
  e->geometry = ccodecs_jpeg_geometry(options);
  e->rows_left = e->geometry.mcu_rows;
  e->kernels = ccodecs_jpeg_encode_kernels();
  const float quality = options->quality + (float)options->jpeg.quality_64ths / 64;
  ccodecs_jpeg_encode_tables_init(&e->tables, quality, options->subsampling == CCODECS_SUBSAMPLING_444);
  for (uint32_t c = 0; c < e->geometry.component_count; c++) {
    ccodecs_jpeg_chooser_init(&e->choosers[c], &e->tables, c);
  }
  e->scan.encoder = &e->base;
  e->scan.max_chunks = max_token_chunks;
  const uint64_t charge = token_charge(options, &e->geometry);
  if (!ccodecs_budget_charge(budget, (size_t)charge)) {
    return false;
  }
  e->scan.reserved = (size_t)charge;
  if (!options->jpeg.is_progressive) {
    const jpeg_scan all = {.last = JPEG_BLOCK - 1};
    e->interval = ccodecs_jpeg_begin_scan(
        &e->scan, &e->geometry, &all, e->geometry.component_count, options->jpeg.restart_row_count);
    e->interval_left = e->interval;
  }
  return prepare_planes(e) && put_headers(e);
}

const ccodecs_encoder_methods ccodecs_jpeg_encoder = {
    .byte_count = sizeof(jpeg_encoder),
    .create = create,
    .estimate = estimate,
    .max_bytes = ccodecs_encoder_max_lossy_bytes,
    .write = write,
    .finish = finish,
    .destroy = destroy};

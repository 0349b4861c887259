// Estimates the size of JPEG files of an image at any quality, from the coefficients of a part of its blocks.
//
// Finding the quality for a file size needs several trials. The transform is a tenth of the time of one, so encoding
// again from coefficients of the whole image would spare little. Tokens, bits and output are spared here, and most
// blocks: a few thousand that are spread over the image predict the ratio of two sizes to within one percent.

#include "jpeg_encode.h"
#include "jpeg_encode_tokens.h"
#include "jpeg_metadata.h"

enum {
  MAX_BLOCKS = 2048,           ///< Blocks of a sample, to within a tenth.
  RUN = 8,                     ///< Adjacent MCUs of a row that are sampled together.
  COEFFICIENT_UNIT = 8,        ///< Stored coefficients are in eighths.
  BUFFER_WIDTH = RUN * 16 + 8, ///< The samples of a run, and one column to the right.
};

/// The samples of a run of MCUs.
typedef struct sample_buffer {
  uint8_t planes[3][16 * BUFFER_WIDTH];
  uint8_t chroma[2][2 * BUFFER_WIDTH]; ///< RGB input: two rows of full size.
} sample_buffer;

struct ccodecs_jpeg_sample {
  ccodecs_budget *budget;
  const jpeg_encode_kernels *kernels;
  ccodecs_encode_options options;
  jpeg_geometry geometry;
  uint32_t stride; ///< One of so many runs is sampled.
  uint32_t mcu_count;
  uint32_t *activities;                ///< Of the luma blocks of each MCU.
  bool *is_first;                      ///< Whether an MCU is the first of its run.
  int16_t (*coefficients)[JPEG_BLOCK]; ///< The blocks of each MCU, in the order of its scan; transposed.
};

static uint32_t minimum(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static uint32_t luma_blocks(const jpeg_geometry *g) {
  return g->across[0] * g->down[0];
}

static uint32_t mcu_blocks(const jpeg_geometry *g) {
  return luma_blocks(g) + (g->component_count > 1 ? 2 : 0);
}

static uint32_t runs_per_row(const jpeg_geometry *g) {
  return (g->mcu_columns + RUN - 1) / RUN;
}

static uint32_t count_runs(const jpeg_geometry *g) {
  return g->mcu_rows * runs_per_row(g);
}

/// Returns of how many runs one is sampled.
static uint32_t stride_of(const jpeg_geometry *g) {
  const uint64_t blocks = (uint64_t)g->mcu_columns * g->mcu_rows * mcu_blocks(g);
  return (uint32_t)((blocks + MAX_BLOCKS - 1) / MAX_BLOCKS);
}

/// Returns the first sampled run from `run` on, which is a multiple of the stride. Multiples of the golden ratio choose
/// it among `stride` runs, so that the sample follows neither columns nor diagonals.
static uint32_t sampled_run(uint32_t stride, uint32_t run) {
  return run + (uint32_t)((uint64_t)(run / stride * 0x9E3779B9U) * stride >> 32);
}

/// Returns the number of MCUs of a run.
static uint32_t run_length(const jpeg_geometry *g, uint32_t run) {
  return minimum(RUN, g->mcu_columns - run % runs_per_row(g) * RUN);
}

static uint32_t count_mcus(const jpeg_geometry *g) {
  const uint32_t stride = stride_of(g), run_count = count_runs(g);
  uint32_t count = 0;
  for (uint32_t first = 0; first < run_count; first += stride) {
    const uint32_t run = sampled_run(stride, first);
    count += run < run_count ? run_length(g, run) : 0;
  }
  return count;
}

uint64_t ccodecs_jpeg_sample_byte_count(const ccodecs_encode_options *options) {
  const jpeg_geometry g = ccodecs_jpeg_geometry(options);
  const uint64_t mcus = count_mcus(&g);
  const uint64_t mcu = luma_blocks(&g) * sizeof(uint32_t) + mcu_blocks(&g) * sizeof(int16_t[JPEG_BLOCK]) + sizeof(bool);
  return sizeof(ccodecs_jpeg_sample) + sizeof(sample_buffer) + mcus * mcu + 5 * JPEG_BLOCK_HEADER;
}

// MARK: Samples

/// Returns the row of an input plane, of which the last one is repeated.
static const uint8_t *input_row(const ccodecs_rows *rows, uint32_t plane, uint32_t y) {
  return rows->planes[plane] + (size_t)minimum(y, rows->row_counts[plane] - 1) * rows->row_strides[plane];
}

/// Repeats the last of `count` samples up to the end of a row of the buffer.
static void pad(uint8_t *row, uint32_t count) {
  memset(row + count, row[count - 1], BUFFER_WIDTH - count);
}

/// Copies the samples of a run from planes.
static void read_planes(
    const ccodecs_jpeg_sample *s, const ccodecs_rows *rows, uint32_t mcu_x, uint32_t mcu_y, sample_buffer *buffer) {
  for (uint32_t c = 0; c < s->geometry.component_count; c++) {
    const uint32_t x = mcu_x * s->geometry.across[c] * 8, height = s->geometry.down[c] * 8;
    const uint32_t count =
        minimum(RUN * s->geometry.across[c] * 8 + 1, ccodecs_encoder_plane_width(&s->options, c) - x);
    for (uint32_t y = 0; y < height; y++) {
      uint8_t *row = buffer->planes[c] + (size_t)y * BUFFER_WIDTH;
      memcpy(row, input_row(rows, c, mcu_y * height + y) + x, count);
      pad(row, count);
    }
  }
}

/// Converts the samples of a run from RGB.
static void read_rgb(
    const ccodecs_jpeg_sample *s, const ccodecs_rows *rows, uint32_t mcu_x, uint32_t mcu_y, sample_buffer *buffer) {
  const uint32_t across = s->geometry.across[0], down = s->geometry.down[0], height = down * 8;
  const uint32_t count = minimum(RUN * across * 8 + 1, s->options.width - mcu_x * across * 8);
  for (uint32_t y = 0; y < height; y++) {
    uint8_t *luma = buffer->planes[0] + (size_t)y * BUFFER_WIDTH;
    uint8_t *chroma[2] = {
        buffer->chroma[0] + (size_t)(y % down) * BUFFER_WIDTH, buffer->chroma[1] + (size_t)(y % down) * BUFFER_WIDTH};
    const uint8_t *rgb = input_row(rows, 0, mcu_y * height + y) + (size_t)mcu_x * across * 8 * 3;
    s->kernels->convert(rgb, luma, chroma[0], chroma[1], count);
    pad(luma, count);
    for (uint32_t c = 0; c < 2; c++) {
      uint8_t *row = buffer->planes[c + 1] + (size_t)(y / down) * BUFFER_WIDTH;
      pad(chroma[c], count);
      if (across == 1) {
        memcpy(row, chroma[c], BUFFER_WIDTH);
      } else if (mcu_y * height + y / down * down >= s->options.height) {
        memcpy(row, row - BUFFER_WIDTH, BUFFER_WIDTH);
      } else if (y % down == down - 1) {
        s->kernels->halve(buffer->chroma[c], down == 2 ? chroma[c] : NULL, row, (count + 1) / 2);
        pad(row, (count + 1) / 2);
      }
    }
  }
}

/// Stores the coefficients of a block, which the chooser's steps are the unit of.
static void transform(
    const jpeg_encode_kernels *kernels, const jpeg_chooser *unit, const uint8_t *samples,
    int16_t coefficients[JPEG_BLOCK]) {
  float values[JPEG_BLOCK];
  jpeg_block block;
  kernels->quantize(unit, samples, BUFFER_WIDTH, 0, values, &block);
  const float limit = JPEG_MAX_LEVEL * COEFFICIENT_UNIT;
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    const float value = values[i] < -limit ? -limit : values[i] > limit ? limit : values[i];
    coefficients[i] = (int16_t)(value + (value < 0 ? -0.5F : 0.5F));
  }
}

/// Adds the MCUs of a run. Blocks that only complete an MCU repeat the DC coefficient before them, as in a file.
static void add_run(ccodecs_jpeg_sample *s, const jpeg_chooser *unit, const sample_buffer *buffer, uint32_t run) {
  const jpeg_geometry *g = &s->geometry;
  const uint32_t count = run_length(g, run), across = g->across[0];
  const uint32_t columns = g->columns[0] - run % runs_per_row(g) * RUN * across;
  const uint32_t rows = minimum(g->down[0], g->rows[0] - run / runs_per_row(g) * g->down[0]);
  uint32_t sums[2][RUN * 2];
  for (uint32_t y = 0; y < rows; y++) {
    s->kernels->activity(buffer->planes[0] + (size_t)y * 8 * BUFFER_WIDTH, BUFFER_WIDTH, count * across, sums[y]);
  }
  for (uint32_t mcu = 0; mcu < count; mcu++) {
    s->is_first[s->mcu_count] = mcu == 0;
    int16_t(*coefficients)[JPEG_BLOCK] = s->coefficients + (size_t)s->mcu_count * mcu_blocks(g);
    for (uint32_t c = 0; c < g->component_count; c++) {
      for (uint32_t i = 0; i < g->across[c] * g->down[c]; i++, coefficients++) {
        const uint32_t x = mcu * g->across[c] + i % g->across[c], y = i / g->across[c];
        if (c == 0) {
          s->activities[s->mcu_count * luma_blocks(g) + i] = sums[minimum(y, rows - 1)][minimum(x, columns - 1)];
        }
        if (c == 0 && (x >= columns || y >= rows)) {
          memset(*coefficients, 0, sizeof *coefficients);
          (*coefficients)[0] = coefficients[-1][0];
        } else {
          transform(s->kernels, unit, buffer->planes[c] + (size_t)y * 8 * BUFFER_WIDTH + (size_t)x * 8, *coefficients);
        }
      }
    }
    s->mcu_count++;
  }
}

static bool fill(ccodecs_jpeg_sample *s, const ccodecs_rows *rows) {
  sample_buffer *buffer = ccodecs_allocate(s->budget, sizeof *buffer);
  if (buffer == NULL) {
    return false;
  }
  jpeg_chooser unit = {0};
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    const float scale = ccodecs_jpeg_forward_scale[i / 8] * ccodecs_jpeg_forward_scale[i % 8] * 8;
    unit.inverse[i] = COEFFICIENT_UNIT / scale;
  }
  const jpeg_geometry *g = &s->geometry;
  const uint32_t run_count = count_runs(g);
  for (uint32_t first = 0; first < run_count; first += s->stride) {
    const uint32_t run = sampled_run(s->stride, first);
    if (run < run_count) {
      const uint32_t x = run % runs_per_row(g) * RUN, y = run / runs_per_row(g);
      if (s->options.pixels == CCODECS_PIXELS_RGB8) {
        read_rgb(s, rows, x, y, buffer);
      } else {
        read_planes(s, rows, x, y, buffer);
      }
      add_run(s, &unit, buffer, run);
    }
  }
  ccodecs_free(s->budget, buffer);
  return true;
}

ccodecs_status ccodecs_jpeg_sample_create(
    const ccodecs_encode_options *options, const ccodecs_rows *rows, ccodecs_budget *budget,
    ccodecs_jpeg_sample **sample) {
  *sample = NULL;
  ccodecs_jpeg_sample *s = ccodecs_allocate(budget, sizeof *s);
  if (s == NULL) {
    return CCODECS_NO_MEMORY;
  }
  *s = (ccodecs_jpeg_sample){
      .budget = budget,
      .kernels = ccodecs_jpeg_encode_kernels(),
      .options = *options,
      .geometry = ccodecs_jpeg_geometry(options)};
  ccodecs_metadata *metadata = &s->options.metadata; // whose size alone matters
  metadata->exif = metadata->icc = metadata->xmp = metadata->iptc = NULL;
  const jpeg_geometry *g = &s->geometry;
  s->stride = stride_of(g);
  const size_t count = count_mcus(g);
  s->activities = ccodecs_allocate(budget, count * luma_blocks(g) * sizeof *s->activities);
  s->is_first = ccodecs_allocate(budget, count * sizeof *s->is_first);
  s->coefficients = ccodecs_allocate(budget, count * mcu_blocks(g) * sizeof *s->coefficients);
  if (s->activities == NULL || s->is_first == NULL || s->coefficients == NULL || !fill(s, rows)) {
    ccodecs_jpeg_sample_destroy(s);
    return CCODECS_NO_MEMORY;
  }
  *sample = s;
  return CCODECS_OK;
}

void ccodecs_jpeg_sample_destroy(ccodecs_jpeg_sample *sample) {
  if (sample != NULL) {
    ccodecs_free(sample->budget, sample->activities);
    ccodecs_free(sample->budget, sample->is_first);
    ccodecs_free(sample->budget, sample->coefficients);
    ccodecs_free(sample->budget, sample);
  }
}

// MARK: Size

/// The symbols of a sample at one quality.
typedef struct symbol_counts {
  uint32_t counts[JPEG_CODES][256];
  int32_t previous_dc[3];
} symbol_counts;

static void count_block(symbol_counts *symbols, uint32_t component, const jpeg_block *block, bool is_first) {
  const uint32_t kind = component > 0;
  const int32_t difference = block->dc - symbols->previous_dc[component];
  symbols->previous_dc[component] = block->dc;
  if (!is_first) {
    symbols->counts[JPEG_CODE_DC + kind][ccodecs_jpeg_size((uint32_t)(difference < 0 ? -difference : difference))]++;
  }
  uint32_t *counts = symbols->counts[JPEG_CODE_AC + kind];
  uint32_t next = 1;
  for (uint64_t mask = block->mask; mask != 0; mask &= mask - 1) {
    const uint32_t k = (uint32_t)__builtin_ctzll(mask), run = k - next;
    next = k + 1;
    counts[0xF0] += run / 16;
    const int32_t level = block->levels[ccodecs_jpeg_transposed_zigzag[k]];
    counts[run % 16 << 4 | ccodecs_jpeg_value_tokens[level + 1024] >> 16]++;
  }
  counts[0] += next < JPEG_BLOCK;
}

/// Returns the bits of the symbols with the best codes for them, and adds the bytes of their tables to `table_bytes`.
static uint64_t bits_of(const symbol_counts *symbols, size_t *table_bytes) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < JPEG_CODES; i++) {
    jpeg_code code;
    uint64_t entries[256];
    ccodecs_jpeg_code_build(&code, entries, symbols->counts[i]);
    for (uint32_t at = 0; at < code.symbol_count; at++) {
      const uint32_t symbol = code.symbols[at];
      bits += symbols->counts[i][symbol] * (entries[symbol] & 63);
    }
    *table_bytes += code.symbol_count > 0 ? 17 + code.symbol_count : 0;
  }
  return bits;
}

/// Prepares the quantization of stored coefficients.
static void prepare(jpeg_chooser *chooser, const jpeg_encode_tables *tables, uint32_t component) {
  ccodecs_jpeg_chooser_init(chooser, tables, component);
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    chooser->inverse[i] = 1.0F / (float)(COEFFICIENT_UNIT * tables->quant[component][i % 8 * 8 + i / 8]);
  }
}

double ccodecs_jpeg_sample_estimate(const ccodecs_jpeg_sample *s, uint8_t quality, uint8_t quality_64ths) {
  const jpeg_geometry *g = &s->geometry;
  jpeg_encode_tables tables;
  jpeg_chooser choosers[3];
  ccodecs_jpeg_encode_tables_init(
      &tables, quality + (float)quality_64ths / 64, s->options.subsampling == CCODECS_SUBSAMPLING_444);
  for (uint32_t c = 0; c < g->component_count; c++) {
    prepare(&choosers[c], &tables, c);
  }
  symbol_counts symbols = {0};
  const int16_t(*coefficients)[JPEG_BLOCK] = s->coefficients;
  const uint32_t *activities = s->activities;
  for (uint32_t mcu = 0; mcu < s->mcu_count; mcu++, activities += luma_blocks(g)) {
    float chroma = 0;
    for (uint32_t i = 0; i < luma_blocks(g); i++) {
      chroma += ccodecs_jpeg_masking(tables.mask_slope[1], activities[i]);
    }
    chroma *= tables.lambda[1] / (float)luma_blocks(g);
    for (uint32_t c = 0; c < g->component_count; c++) {
      for (uint32_t i = 0; i < g->across[c] * g->down[c]; i++, coefficients++) {
        const float lambda =
            c > 0 ? chroma : tables.lambda[0] * ccodecs_jpeg_masking(tables.mask_slope[0], activities[i]);
        jpeg_block block;
        ccodecs_jpeg_choose_again(
            &choosers[c], s->kernels, *coefficients, lambda * ccodecs_jpeg_lambda_shares[c], &block);
        count_block(&symbols, c, &block, i == 0 && s->is_first[mcu]);
      }
    }
  }
  // The markers and headers other than tables.
  size_t header_bytes = 2 + 18 + 4 + 65 * g->component_count + 10 + 3 * g->component_count + 4 + 8 +
                        2 * g->component_count + 2 + ccodecs_jpeg_metadata_bytes(&s->options.metadata);
  const uint64_t bits = bits_of(&symbols, &header_bytes);
  const double share = (double)s->mcu_count / ((double)g->mcu_columns * g->mcu_rows);
  return (double)header_bytes + (double)bits / 8 / share;
}

// Encodes random images with the native JPEG encoder and reads their coefficients with libjpeg-turbo. run.sh builds and
// runs it.
//
// Each image is written as a baseline, an optimized and a progressive file. Every file must be read without a warning
// and contain the same coefficients, each of which is the nearest level to that of a transform in double precision, or
// zero. Memory must stay below the estimate, and an encoder that runs out of it must fail and release everything. With
// a directory, all files are also written there, for readers.py and browser.py.

#include "formats.h"
#include "jpeg/jpeg_encode.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

// MARK: Random numbers

static uint64_t state;

/// Returns the next number of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t next_random(void) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static uint32_t below(uint32_t bound) {
  return (uint32_t)(next_random() % bound);
}

static uint64_t defects;

static void report(uint64_t round, const char *what) {
  printf("round %" PRIu64 ": %s\n", round, what);
  defects++;
}

// MARK: Images

typedef struct image {
  ccodecs_encode_options options;
  uint32_t plane_count;
  uint32_t widths[3], heights[3]; ///< In samples; of RGB in bytes.
  uint8_t *planes[3];
} image;

static uint8_t sample(uint32_t kind, uint32_t x, uint32_t y) {
  switch (kind) {
  case 0:
    return (uint8_t)next_random();
  case 1:
    return (uint8_t)(x * 3 + y);
  case 2:
    return (uint8_t)((x ^ y) & 1 ? 255 : 0);
  case 3:
    return (uint8_t)(128 + 100 * sin(x * 0.3) * cos(y * 0.2) + below(20));
  case 4:
    return (uint8_t)((x / 5 + y / 7) % 2 ? 255 : 0);
  default:
    return (uint8_t)(kind * 37);
  }
}

/// Large images, of which some are wide, have more tokens than an encoder keeps. Flat ones have more blocks than one
/// run of ended bands.
static image random_image(bool is_large, bool is_flat) {
  static const ccodecs_pixels pixels[] = {CCODECS_PIXELS_GRAY8, CCODECS_PIXELS_RGB8, CCODECS_PIXELS_YCC8};
  image m = {0};
  ccodecs_encode_options *o = &m.options;
  o->format = CCODECS_FORMAT_JPEG;
  o->width = is_large ? (below(2) == 0 ? 900 : 9000) : 1 + below(below(4) == 0 ? 300 : 40);
  o->height = is_large ? 630000 / o->width : 1 + below(below(4) == 0 ? 300 : 40);
  o->pixels = is_large ? CCODECS_PIXELS_YCC8 : pixels[below(3)];
  o->subsampling = is_large ? CCODECS_SUBSAMPLING_444 : (ccodecs_subsampling)below(3);
  o->quality = (uint8_t)(is_large ? 100 : 1 + below(100));
  o->jpeg.restart_row_count = (uint16_t)(below(3) == 0 ? 1 + below(3) : 0);
  o->jpeg.quality_64ths = (uint8_t)(o->quality < 100 && below(2) == 0 ? below(64) : 0);
  if (is_flat) {
    o->width = 1600;
    o->height = 1400;
    o->pixels = CCODECS_PIXELS_GRAY8;
    o->jpeg.restart_row_count = 0;
  }
  m.plane_count = ccodecs_encoder_plane_count(o);
  for (uint32_t c = 0; c < m.plane_count; c++) {
    m.widths[c] = ccodecs_encoder_plane_width(o, c) * ccodecs_encoder_channels(o);
    m.heights[c] = ccodecs_encoder_plane_height(o, c);
    m.planes[c] = malloc((size_t)m.widths[c] * m.heights[c]);
    const uint32_t kind = is_large ? 0 : is_flat ? 8 : below(9);
    for (uint32_t y = 0; y < m.heights[c]; y++) {
      for (uint32_t x = 0; x < m.widths[c]; x++) {
        m.planes[c][(size_t)y * m.widths[c] + x] = sample(kind, x, y);
      }
    }
  }
  return m;
}

// MARK: Encoding

typedef struct encoded {
  uint8_t *bytes;
  size_t count;
} encoded;

static void drain(ccodecs_encoder *encoder, encoded *file) {
  const size_t pending = ccodecs_encoder_pending(encoder);
  file->bytes = realloc(file->bytes, file->count + pending + 1);
  file->count += ccodecs_encoder_read(encoder, file->bytes + file->count, pending);
}

/// Writes the next rows, with those of smaller planes in their place.
static ccodecs_status write_strip(ccodecs_encoder *encoder, const image *m, uint32_t done[3], uint32_t step) {
  ccodecs_rows rows = {0};
  const uint32_t end = m->heights[0] - done[0] < step ? m->heights[0] : done[0] + step;
  for (uint32_t c = 0; c < m->plane_count; c++) {
    const uint32_t plane_end = m->heights[c] < m->heights[0] ? (end + 1) / 2 : end;
    rows.planes[c] = m->planes[c] + (size_t)done[c] * m->widths[c];
    rows.row_strides[c] = m->widths[c];
    rows.row_counts[c] = plane_end - done[c];
    done[c] = plane_end;
  }
  return ccodecs_encoder_write(encoder, &rows);
}

/// Encodes in strips of random height, of 16 rows at most, as the estimate assumes. Returns an empty file if memory is
/// exhausted.
static encoded encode(uint64_t round, const image *m, size_t limit) {
  ccodecs_budget budget = {.limit = limit};
  encoded file = {0};
  ccodecs_encoder *encoder = ccodecs_encoder_allocate(&ccodecs_jpeg_encoder, &m->options, &budget);
  ccodecs_status status = encoder == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
  uint32_t done[3] = {0};
  while (status == CCODECS_OK && done[0] < m->heights[0]) {
    status = write_strip(encoder, m, done, 1 + below(16));
    drain(encoder, &file);
  }
  if (status == CCODECS_OK) {
    status = ccodecs_encoder_finish(encoder);
    drain(encoder, &file);
  }
  ccodecs_encoder_destroy(encoder);
  if (budget.used != 0) {
    report(round, "memory is not released");
  }
  if (budget.peak > ccodecs_jpeg_encoder.estimate(&m->options)) {
    report(round, "more memory than estimated");
  }
  if (status != CCODECS_OK) {
    if (limit == SIZE_MAX) {
      report(round, "encoding failed");
    }
    file.count = 0;
  } else if (file.count > ccodecs_encoder_max_lossy_bytes(&m->options)) {
    report(round, "the file is larger than the upper bound");
  }
  return file;
}

// MARK: Coefficients

typedef struct coefficients {
  bool is_read;
  uint32_t component_count;
  uint32_t columns[3], rows[3];
  uint16_t steps[3][JPEG_BLOCK];
  int16_t *levels[3]; ///< Of the blocks of each component in rows, in natural order.
} coefficients;

typedef struct reader {
  struct jpeg_error_mgr errors;
  jmp_buf escape;
  uint32_t warnings;
} reader;

static void on_error(j_common_ptr info) {
  longjmp(((reader *)info->err)->escape, 1);
}

static void on_message(j_common_ptr info, int level) {
  ((reader *)info->err)->warnings += level < 0;
}

static coefficients read_coefficients(encoded file) {
  coefficients k = {0};
  struct jpeg_decompress_struct info;
  reader r = {0};
  info.err = jpeg_std_error(&r.errors);
  r.errors.error_exit = on_error;
  r.errors.emit_message = on_message;
  jpeg_create_decompress(&info);
  if (setjmp(r.escape) != 0) {
    jpeg_destroy_decompress(&info);
    return (coefficients){0};
  }
  jpeg_mem_src(&info, file.bytes, (unsigned long)file.count);
  jpeg_read_header(&info, TRUE);
  jvirt_barray_ptr *arrays = jpeg_read_coefficients(&info);
  k.component_count = (uint32_t)info.num_components;
  for (uint32_t c = 0; c < k.component_count; c++) {
    const jpeg_component_info *component = &info.comp_info[c];
    k.columns[c] = component->width_in_blocks;
    k.rows[c] = component->height_in_blocks;
    k.levels[c] = malloc((size_t)k.columns[c] * k.rows[c] * sizeof(JBLOCK));
    memcpy(k.steps[c], component->quant_table->quantval, sizeof k.steps[c]);
    for (uint32_t y = 0; y < k.rows[c]; y++) {
      JBLOCKARRAY row = info.mem->access_virt_barray((j_common_ptr)&info, arrays[c], y, 1, FALSE);
      memcpy(k.levels[c] + (size_t)y * k.columns[c] * JPEG_BLOCK, row[0], k.columns[c] * sizeof(JBLOCK));
    }
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  k.is_read = r.warnings == 0;
  return k;
}

static void free_coefficients(coefficients *k) {
  for (uint32_t c = 0; c < 3; c++) {
    free(k->levels[c]);
  }
}

static bool are_same(const coefficients *a, const coefficients *b) {
  bool same = a->component_count == b->component_count;
  for (uint32_t c = 0; same && c < a->component_count; c++) {
    same = a->columns[c] == b->columns[c] && a->rows[c] == b->rows[c] &&
           memcmp(a->levels[c], b->levels[c], (size_t)a->columns[c] * a->rows[c] * sizeof(JBLOCK)) == 0;
  }
  return same;
}

/// Returns the coefficient of cycles u across and v down of the block at x0, y0, whose samples are repeated beyond the
/// plane.
static void transform(const image *m, uint32_t c, uint32_t x0, uint32_t y0, double output[JPEG_BLOCK]) {
  double rows[JPEG_BLOCK];
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    const uint32_t y = y0 + i / 8 < m->heights[c] ? y0 + i / 8 : m->heights[c] - 1;
    rows[i] = 0;
    for (uint32_t j = 0; j < 8; j++) {
      const uint32_t x = x0 + j < m->widths[c] ? x0 + j : m->widths[c] - 1;
      rows[i] += (m->planes[c][(size_t)y * m->widths[c] + x] - 128.0) * cos((2 * j + 1) * (i % 8) * M_PI / 16);
    }
  }
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    output[i] = 0;
    for (uint32_t j = 0; j < 8; j++) {
      output[i] += rows[j * 8 + i % 8] * cos((2 * j + 1) * (i / 8) * M_PI / 16);
    }
    output[i] *= (i / 8 == 0 ? sqrt(0.5) : 1) * (i % 8 == 0 ? sqrt(0.5) : 1) / 4;
  }
}

static bool are_near(const image *m, const coefficients *k) {
  for (uint32_t c = 0; c < m->plane_count; c++) {
    for (uint32_t block = 0; block < k->columns[c] * k->rows[c]; block++) {
      double exact[JPEG_BLOCK];
      transform(m, c, block % k->columns[c] * 8, block / k->columns[c] * 8, exact);
      for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
        const int16_t level = k->levels[c][(size_t)block * JPEG_BLOCK + i];
        if ((level != 0 || i == 0) && fabs(exact[i] / k->steps[c][i] - level) > 0.501) {
          return false;
        }
      }
    }
  }
  return true;
}

// MARK: Rounds

/// The directory that files are written to, or NULL.
static const char *directory;

static void save(uint64_t round, uint32_t kind, encoded file) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%" PRIu64 "-%u.jpg", directory, round, kind);
  FILE *output = fopen(path, "wb");
  if (output == NULL || fwrite(file.bytes, 1, file.count, output) != file.count || fclose(output) != 0) {
    report(round, "the file cannot be written");
  }
}

/// Checks that the estimated size of a file with optimal tables is nearly its size. Small images have no unsampled
/// blocks.
static void check_estimate(uint64_t round, const image *m, size_t byte_count) {
  ccodecs_budget budget = {.limit = SIZE_MAX};
  ccodecs_rows rows = {0};
  for (uint32_t c = 0; c < m->plane_count; c++) {
    rows.planes[c] = m->planes[c];
    rows.row_strides[c] = m->widths[c];
    rows.row_counts[c] = m->heights[c];
  }
  ccodecs_jpeg_sample *sample;
  if (ccodecs_jpeg_sample_create(&m->options, &rows, &budget, &sample) != CCODECS_OK ||
      budget.peak > ccodecs_jpeg_sample_byte_count(&m->options)) {
    report(round, "a sample takes more memory than estimated");
    return;
  }
  const double estimate = ccodecs_jpeg_sample_estimate(sample, m->options.quality, m->options.jpeg.quality_64ths);
  // Restart markers are not estimated, nor are stuffed bytes.
  const double minimum = (double)byte_count * 0.85 - 60, maximum = (double)byte_count * 1.05 + 60;
  if (m->options.jpeg.restart_row_count == 0 && (estimate < minimum || estimate > maximum)) {
    report(round, "the estimated size is not nearly the size");
  }
  ccodecs_jpeg_sample_destroy(sample);
  ccodecs_budget small = {.limit = below(20000)};
  if (ccodecs_jpeg_sample_create(&m->options, &rows, &small, &sample) == CCODECS_OK) {
    ccodecs_jpeg_sample_destroy(sample);
  }
  if (budget.used != 0 || small.used != 0) {
    report(round, "the memory of a sample is not released");
  }
}

static void check_image(uint64_t round) {
  const bool is_flat = round % 500 == 250;
  image m = random_image(round % 1000 == 999, is_flat);
  coefficients first = {0};
  for (uint32_t kind = 0; kind < 3; kind++) {
    m.options.jpeg.is_progressive = kind == 2;
    m.options.jpeg.has_optimal_tables = kind == 1;
    encoded file = encode(round, &m, SIZE_MAX);
    if (directory != NULL) {
      save(round, kind, file);
    }
    coefficients k = read_coefficients(file);
    if (!k.is_read) {
      report(round, "libjpeg-turbo does not read the file, or warns");
    } else if (kind == 0) {
      first = k;
      k = (coefficients){0};
      if (m.options.pixels != CCODECS_PIXELS_RGB8 && !is_flat && !are_near(&m, &first)) {
        report(round, "a coefficient is not the nearest level");
      }
    } else if (!are_same(&first, &k)) {
      report(round, kind == 1 ? "optimal tables change coefficients" : "a progressive file has other coefficients");
    }
    free_coefficients(&k);
    if (kind == 1) {
      check_estimate(round, &m, file.count);
    }
    encoded part = encode(round, &m, below(4) == 0 ? below(40000) : 40000 + below(300000));
    if (part.count > 0 && (part.count != file.count || memcmp(part.bytes, file.bytes, part.count) != 0)) {
      report(round, "another budget or other strips give another file");
    }
    free(part.bytes);
    free(file.bytes);
  }
  free_coefficients(&first);
  for (uint32_t c = 0; c < m.plane_count; c++) {
    free(m.planes[c]);
  }
}

/// The blocks in a row of samples that kernels are compared with, and the bytes of a row.
enum { COUNT = 9, STRIDE = COUNT * 8 + 8 };

static void check_rows(uint64_t round, const jpeg_encode_kernels *fast, const uint8_t *samples) {
  const jpeg_encode_kernels *scalar = &ccodecs_jpeg_encode_kernels_scalar;
  uint8_t a[3][STRIDE], b[3][STRIDE];
  uint32_t sums[2][COUNT];
  const uint32_t count = 1 + below(COUNT);
  scalar->activity(samples, STRIDE, count, sums[0]);
  fast->activity(samples, STRIDE, count, sums[1]);
  if (memcmp(sums[0], sums[1], count * sizeof **sums) != 0) {
    report(round, "the kernels measure different activities");
  }
  const size_t pixels = 1 + below(STRIDE);
  scalar->convert(samples, a[0], a[1], a[2], pixels);
  fast->convert(samples, b[0], b[1], b[2], pixels);
  if (memcmp(a[0], b[0], pixels) != 0 || memcmp(a[1], b[1], pixels) != 0 || memcmp(a[2], b[2], pixels) != 0) {
    report(round, "the kernels convert differently");
  }
  const uint8_t *lower = below(2) == 0 ? NULL : samples + STRIDE;
  const size_t pairs = 1 + below(STRIDE / 2);
  scalar->halve(samples, lower, a[0], pairs);
  fast->halve(samples, lower, b[0], pairs);
  if (memcmp(a[0], b[0], pairs) != 0) {
    report(round, "the kernels halve differently");
  }
}

static void check_blocks(uint64_t round, const jpeg_encode_kernels *fast, const uint8_t *samples) {
  jpeg_encode_tables tables;
  jpeg_chooser chooser;
  float x[JPEG_BLOCK], y[JPEG_BLOCK];
  jpeg_block a = {0}, b = {0};
  ccodecs_jpeg_encode_tables_init(&tables, 1 + (float)below(99 * 64 + 1) / 64, below(2) == 0);
  ccodecs_jpeg_chooser_init(&chooser, &tables, below(3));
  for (uint32_t i = 0; below(4) == 0 && i < JPEG_BLOCK; i++) {
    // Coarser and finer steps than any table has.
    chooser.inverse[i] = 1.0F / (float)(8 + below(2000));
  }
  const float lambda = below(8) == 0 ? 0 : tables.lambda[0] * (float)(1 + below(200)) / 20;
  ccodecs_jpeg_encode_kernels_scalar.quantize(&chooser, samples, STRIDE, lambda, x, &a);
  fast->quantize(&chooser, samples, STRIDE, lambda, y, &b);
  if (memcmp(x, y, sizeof x) != 0) {
    report(round, "the kernels transform differently");
  }
  if (a.mask != b.mask || a.dc != b.dc || memcmp(a.levels, b.levels, sizeof a.levels) != 0) {
    report(round, "the kernels quantize differently");
  }
  int16_t coefficients[JPEG_BLOCK];
  for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
    coefficients[i] = (int16_t)((int32_t)below(16368) - 8184) / (int16_t)(1 + below(1000));
    chooser.inverse[i] /= 8 * 8;
  }
  ccodecs_jpeg_encode_kernels_scalar.requantize(&chooser, coefficients, lambda, x, &a);
  fast->requantize(&chooser, coefficients, lambda, y, &b);
  if (memcmp(x, y, sizeof x) != 0 || a.mask != b.mask || a.dc != b.dc || memcmp(a.levels, b.levels, sizeof a.levels)) {
    report(round, "the kernels quantize stored coefficients differently");
  }
}

/// Compares all kernels that this machine has with the scalar ones.
static void check_kernels(uint64_t round) {
  const jpeg_encode_kernels *best = ccodecs_jpeg_encode_kernels();
  uint8_t samples[8 * STRIDE];
  const uint32_t kind = below(9);
  for (uint32_t i = 0; i < sizeof samples; i++) {
    samples[i] = sample(kind, i % STRIDE, i / STRIDE);
  }
  check_rows(round, best, samples);
  check_blocks(round, best, samples);
#if defined(__x86_64__)
  // A machine with AVX-512 also has AVX2.
  if (best == &ccodecs_jpeg_encode_kernels_avx512) {
    check_rows(round, &ccodecs_jpeg_encode_kernels_avx2, samples);
    check_blocks(round, &ccodecs_jpeg_encode_kernels_avx2, samples);
  }
#endif
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: run.sh COUNT [SEED [DIRECTORY]]\n");
    return 2;
  }
  directory = argc > 3 ? argv[3] : NULL;
  const uint64_t count = strtoull(argv[1], NULL, 10), seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  for (uint64_t round = 0; round < count && defects < 20; round++) {
    state = seed << 40 ^ round;
    check_kernels(round);
    check_image(round);
  }
  printf("%" PRIu64 " images, %" PRIu64 " defects\n", count, defects);
  return defects > 0;
}

// Compares the kernels for vectors with their scalar versions, on the processor that it is built for. run.sh builds it
// for AArch64 and runs it in QEMU, so that the kernels for NEON are tested on machines without it.

#include "check.h"
#include "jpeg/jpeg_encode.h"

#include <cpixels.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIXELS = 600, MAX_SIDE = 97, ROUNDS = 40 };

static uint64_t state = 1;
static int failures;

// Source: SplitMix64, Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
uint32_t next_random(void) {
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

void fill(void *bytes, size_t count) {
  const bool is_extreme = next_random() % 4 == 0;
  for (size_t i = 0; i < count; i++) {
    ((uint8_t *)bytes)[i] = is_extreme ? (uint8_t) - (next_random() & 1) : (uint8_t)next_random();
  }
}

void report(const char *kernel, bool is_good) {
  if (!is_good) {
    printf("%s: the vectors' result differs\n", kernel);
    failures++;
  }
}

// MARK: Alpha and color

static void check_alpha(void) {
  static uint8_t rgba[4 * MAX_PIXELS], bytes[2][4 * MAX_PIXELS + GUARD];
  static uint16_t premultiplied[4 * MAX_PIXELS], words[2][4 * MAX_PIXELS + GUARD];
  static const cpixels_isa sets[2] = {CPIXELS_ISA_SCALAR, CPIXELS_ISA_BEST};
  const size_t count = next_random() % MAX_PIXELS;
  const uint8_t background[3] = {(uint8_t)next_random(), (uint8_t)next_random(), 255};
  fill(rgba, sizeof rgba);
  fill(premultiplied, sizeof premultiplied);
  for (int i = 0; i < 2; i++) {
    cpixels_premultiply(rgba, words[i], count, sets[i]);
  }
  report("premultiply", memcmp(words[0], words[1], sizeof words[0]) == 0);
  for (int i = 0; i < 2; i++) {
    cpixels_unpremultiply(premultiplied, bytes[i], count, sets[i]);
  }
  report("unpremultiply", memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0);
  for (int i = 0; i < 2; i++) {
    cpixels_unpremultiply(words[0], bytes[i], count, sets[i]);
  }
  report("unpremultiply what was premultiplied", memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0);
  for (int i = 0; i < 2; i++) {
    cpixels_flatten(premultiplied, background, bytes[i], count, sets[i]);
  }
  report("flatten", memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0);
}

/// Compares the conversion of every chroma at one luma.
static void check_color(uint8_t luma) {
  static uint8_t y[256], cb[256], cr[256], rgb[2][3 * 256];
  for (uint32_t i = 0; i < 256; i++) {
    y[i] = luma;
    cb[i] = (uint8_t)i;
  }
  bool is_good = true;
  for (uint32_t red = 0; red < 256; red++) {
    memset(cr, (int)red, sizeof cr);
    const size_t count = 256 - red % 20;
    cpixels_ycc_to_rgb(y, cb, cr, rgb[0], count, CPIXELS_ISA_SCALAR);
    cpixels_ycc_to_rgb(y, cb, cr, rgb[1], count, CPIXELS_ISA_BEST);
    is_good = is_good && memcmp(rgb[0], rgb[1], 3 * count) == 0;
  }
  report("YCbCr to RGB", is_good);
}

// MARK: Resampling and filters

static void *block(size_t count) {
  return aligned_alloc(64, (count + 63) / 64 * 64);
}

/// Resamples an image, or returns false if the options are out of range.
static bool resize(cpixels_resizer_options options, cpixels_isa isa, const void *source, void *result) {
  size_t byte_count;
  options.isa = isa;
  if (!cpixels_resizer_measure(&options, &byte_count)) {
    return false;
  }
  void *memory = block(byte_count);
  cpixels_resizer *resizer = cpixels_resizer_init(&options, NULL, memory);
  const size_t size = options.channels * (options.sample == CPIXELS_SAMPLE_U8 ? 1u : 2u);
  const size_t stride = options.horizontal.source_count * size;
  const size_t result_stride = options.horizontal.destination_count * size;
  uint32_t pushed = 0, read = 0;
  while (resizer != NULL && read < options.vertical.destination_count) {
    pushed += (uint32_t)cpixels_resizer_push(
        resizer, (const uint8_t *)source + pushed * stride, stride, options.vertical.source_count - pushed);
    read += (uint32_t)cpixels_resizer_read(
        resizer, (uint8_t *)result + read * result_stride, result_stride, options.vertical.destination_count - read);
  }
  free(memory);
  return resizer != NULL;
}

static cpixels_axis_options random_axis(cpixels_kernel kernel) {
  const uint32_t source = 1 + next_random() % MAX_SIDE, destination = 1 + next_random() % MAX_SIDE;
  return (cpixels_axis_options){
      .source_count = source,
      .destination_count = destination,
      .ratio = (double)source / destination,
      .kernel = kernel,
  };
}

static uint32_t largest_difference(const void *a, const void *b, size_t count, bool is_16bit) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; i++) {
    const int32_t x = is_16bit ? ((const uint16_t *)a)[i] : ((const uint8_t *)a)[i];
    const int32_t y = is_16bit ? ((const uint16_t *)b)[i] : ((const uint8_t *)b)[i];
    const uint32_t difference = (uint32_t)abs(x - y);
    largest = difference > largest ? difference : largest;
  }
  return largest;
}

static void check_resize(void) {
  static uint16_t source[4 * MAX_SIDE * MAX_SIDE], results[2][4 * MAX_SIDE * MAX_SIDE];
  static const uint8_t channels[] = {1, 3, 4};
  fill(source, sizeof source);
  const cpixels_kernel kernel = (cpixels_kernel)(next_random() % 3);
  const cpixels_resizer_options options = {
      .horizontal = random_axis(kernel),
      .vertical = random_axis(kernel),
      .channels = channels[next_random() % 3],
      .sample = next_random() % 2 == 0 ? CPIXELS_SAMPLE_U8 : CPIXELS_SAMPLE_U16,
      .in_linear_light = next_random() % 4 == 0,
  };
  const bool is_16bit = options.sample == CPIXELS_SAMPLE_U16;
  const size_t count =
      (size_t)options.horizontal.destination_count * options.vertical.destination_count * options.channels;
  const bool is_done = resize(options, CPIXELS_ISA_SCALAR, source, results[0]);
  report("resize: options", is_done == resize(options, CPIXELS_ISA_BEST, source, results[1]));
  // Floats may be rounded differently.
  const uint32_t maximum = is_16bit || options.in_linear_light ? (is_16bit && options.in_linear_light ? 8 : 1) : 0;
  report("resize", !is_done || largest_difference(results[0], results[1], count, is_16bit) <= maximum);
}

static bool filter(cpixels_area_options options, cpixels_isa isa, const uint8_t *source, uint8_t *result) {
  size_t byte_count;
  options.isa = isa;
  if (!cpixels_area_measure(&options, &byte_count)) {
    return false;
  }
  void *memory = block(byte_count);
  cpixels_area_filter *area = cpixels_area_init(&options, memory);
  const size_t stride = (size_t)options.width * options.channels;
  uint32_t pushed = 0, read = 0;
  while (area != NULL && read < options.height) {
    pushed += (uint32_t)cpixels_area_push(area, source + pushed * stride, stride, options.height - pushed);
    read += (uint32_t)cpixels_area_read(area, result + read * stride, stride, options.height - read);
  }
  free(memory);
  return area != NULL;
}

static void check_filter(void) {
  static uint8_t source[4 * MAX_SIDE * MAX_SIDE], results[2][4 * MAX_SIDE * MAX_SIDE];
  fill(source, sizeof source);
  cpixels_area_options options = {
      .kind = (cpixels_area_kind)(next_random() % 3),
      .width = 1 + next_random() % MAX_SIDE,
      .height = 1 + next_random() % MAX_SIDE,
      .channels = next_random() % 2 == 0 ? 3 : 4,
      .radius = 0.3 + next_random() % 50 / 10.0,
      .amount = 1,
      .block = 1 + next_random() % 20,
      .first_width = 1,
      .first_height = 1,
  };
  const bool is_done = filter(options, CPIXELS_ISA_SCALAR, source, results[0]);
  report("filter: options", is_done == filter(options, CPIXELS_ISA_BEST, source, results[1]));
  const size_t count = (size_t)options.width * options.height * options.channels;
  report("filter", !is_done || largest_difference(results[0], results[1], count, false) <= 1);
}

static double similarity(cpixels_isa isa, const uint8_t *a, const uint8_t *b) {
  const cpixels_similarity_options options = {.width = MAX_SIDE, .height = MAX_SIDE, .channels = 3, .isa = isa};
  size_t byte_count;
  if (!cpixels_similarity_measure(&options, &byte_count)) {
    return NAN;
  }
  void *memory = block(byte_count);
  cpixels_similarity *s = cpixels_similarity_init(&options, memory);
  cpixels_similarity_push(s, a, (size_t)3 * MAX_SIDE, b, (size_t)3 * MAX_SIDE, MAX_SIDE);
  const double score = cpixels_similarity_score(s);
  free(memory);
  return score;
}

static void check_similarity(void) {
  static uint8_t a[3 * MAX_SIDE * MAX_SIDE], b[3 * MAX_SIDE * MAX_SIDE];
  for (size_t i = 0; i < sizeof a; i++) {
    a[i] = (uint8_t)(i / 7);
    b[i] = (uint8_t)(i / 7 + next_random() % 5);
  }
  report("similarity", fabs(similarity(CPIXELS_ISA_SCALAR, a, b) - similarity(CPIXELS_ISA_BEST, a, b)) < 0.01);
}

// MARK: JPEG encoder

static bool are_equal(const jpeg_block blocks[2]) {
  bool is_good = blocks[0].mask == blocks[1].mask && blocks[0].dc == blocks[1].dc;
  for (uint64_t mask = blocks[0].mask; mask != 0; mask &= mask - 1) {
    const uint8_t index = ccodecs_jpeg_transposed_zigzag[__builtin_ctzll(mask)];
    is_good = is_good && blocks[0].levels[index] == blocks[1].levels[index];
  }
  return is_good;
}

static void check_quantization(const jpeg_encode_kernels *const kernels[2]) {
  uint8_t samples[JPEG_BLOCK];
  int16_t coefficients[JPEG_BLOCK];
  jpeg_encode_tables tables;
  jpeg_chooser chooser;
  ccodecs_jpeg_encode_tables_init(&tables, (float)(1 + next_random() % 100), false);
  ccodecs_jpeg_chooser_init(&chooser, &tables, next_random() % 3);
  fill(samples, sizeof samples);
  for (size_t i = 0; i < JPEG_BLOCK; i++) {
    coefficients[i] = (int16_t)((int32_t)(next_random() % 1000) - 500);
  }
  const float lambda = tables.lambda[0] * (float)(next_random() % 100) / 50;
  jpeg_block blocks[2];
  float values[2][JPEG_BLOCK];
  for (int i = 0; i < 2; i++) {
    kernels[i]->quantize(&chooser, samples, 8, lambda, values[i], &blocks[i]);
  }
  report("quantization", are_equal(blocks) && memcmp(values[0], values[1], sizeof values[0]) == 0);
  for (int i = 0; i < 2; i++) {
    kernels[i]->requantize(&chooser, coefficients, lambda, values[i], &blocks[i]);
  }
  report("quantization of coefficients", are_equal(blocks) && memcmp(values[0], values[1], sizeof values[0]) == 0);
}

static void check_encoder(void) {
  static uint8_t rgb[3 * MAX_PIXELS], planes[2][3][MAX_PIXELS + GUARD];
  const jpeg_encode_kernels *kernels[2] = {&ccodecs_jpeg_encode_kernels_scalar, ccodecs_jpeg_encode_kernels()};
  const size_t count = next_random() % MAX_PIXELS;
  fill(rgb, sizeof rgb);
  for (int i = 0; i < 2; i++) {
    kernels[i]->convert(rgb, planes[i][0], planes[i][1], planes[i][2], count);
  }
  bool is_good = true;
  for (int c = 0; c < 3; c++) {
    is_good = is_good && memcmp(planes[0][c], planes[1][c], count) == 0;
  }
  report("RGB to YCbCr", is_good);
  for (int i = 0; i < 2; i++) {
    kernels[i]->halve(rgb, count % 2 == 0 ? NULL : rgb + MAX_PIXELS, planes[i][0], count / 2);
  }
  report("halves", memcmp(planes[0][0], planes[1][0], count / 2) == 0);
  enum { BLOCKS = 9, STRIDE = 8 * BLOCKS + 1 };
  static uint8_t samples[9 * STRIDE];
  uint32_t sums[2][BLOCKS];
  fill(samples, sizeof samples);
  for (int i = 0; i < 2; i++) {
    kernels[i]->activity(samples, STRIDE, BLOCKS, sums[i]);
  }
  report("activity", memcmp(sums[0], sums[1], sizeof sums[0]) == 0);
  check_quantization(kernels);
}

int main(void) {
  for (uint32_t luma = 0; luma < 256; luma += 15) {
    check_color((uint8_t)luma);
  }
  for (int round = 0; round < ROUNDS; round++) {
    check_alpha();
    check_resize();
    check_filter();
    check_transforms();
    check_unfilter();
    check_encoder();
    check_faces();
    check_overlay();
    check_filter_rows();
    check_palette();
    check_samples();
  }
  check_similarity();
  printf("kernels: %d differences\n", failures);
  return failures > 0;
}

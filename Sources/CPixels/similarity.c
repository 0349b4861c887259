// The similarity metric SSIMULACRA 2.1 (J. Sneyers, Cloudinary; https://github.com/cloudinary/ssimulacra2).
//
// Each scale keeps the rows under its blur, and passes the means of 2x2 pixels on to the next scale:
//
//   rows -> linear -> X, Y, B -> reference, difference -> ring -> vertical moments -> horizontal blur -> errors
//              \-> halve -> linear of the next scale -> ...
//
// The image is extended beyond its top and bottom by mirroring, and beyond its sides by 0, as in the package
// `ssimulacra2` 0.3.0 of PyPI, which computes in double precision and agrees with this to 0.1. The program that its
// authors published extends all sides by 0 and rounds more: scores below 40 are up to 2.5 higher there, and those above
// 85 up to 1.5 lower.
//
// The score is a polynomial of a weighted sum of the errors. Most of its weights are 0 or negligible, and planes that
// have no other weight at a scale are not computed: at full size that leaves only Y, and changes a score by less than
// 0.01.
//
// Scales with many rows add up the errors of every third row only: those of neighbors are alike. This takes half the
// time and changes scores of photographs by less than 0.1.

#include "similarity_kernels.h"

#include <math.h>
#include <string.h>

enum { MAX_SCALES = 6, MIN_SIDE = 8, MAX_SIDE = 1 << 20, NORMS = 2, MAPS = 3, PLANES = 3 };

/// The rows of a scale of which one is compared, if it has at least so many.
enum { ROW_STEP = 3, MIN_SAMPLED_ROWS = 256 };

/// The number of levels that a table for pixels with alpha has per 8-bit level, so that blending loses nothing visible.
enum { BLENDED_STEPS = 16 };

/// A plane is computed at a scale if it has a weight above this; the smallest of those is 0.28.
static const double negligible_weight = 0.01;

/// The weights of the errors: per plane, scale, norm (mean, root of fourth powers) and map (structure, ringing,
/// blurring). An image with fewer scales takes the first weights in the same order, as the published program does.
static const double weights[PLANES * MAX_SCALES][NORMS * MAPS] = {
    {0, 0.0007376606707406586, 0, 0, 0.0007793481682867309, 0},
    {0, 0.0004371155730107379, 0, 1.1041726426657346, 0.00066284834129271, 0.00015231632783718752},
    {0, 0.0016406437456599754, 0, 1.8422455520539298, 11.441172603757666, 0},
    {0.0007989109436015163, 0.000176816438078653, 0, 1.8787594979546387, 10.94906990605142, 0},
    {0.0007289346991508072, 0.9677937080626833, 0, 0.00014003424285435884, 0.9981766977854967, 0.00031949755934435053},
    {0.0004550992113792063, 0, 0, 0.0013648766163243398, 0, 0},
    {0, 0, 0, 7.466890328078848, 0, 17.445833984131262},
    {0.0006235601634041466, 0, 0, 6.683678146179332, 0.00037724407979611296, 1.027889937768264},
    {225.20515300849274, 0, 0, 19.213238186143016, 0.0011401524586618361, 0.001237755635509985},
    {176.39317598450694, 0, 0, 24.43300999870476, 0.28520802612117757, 0.0004485436923833408},
    {0, 0, 0, 34.77906344483772, 44.835625328877896, 0},
    {0, 0, 0, 0, 0, 0},
    {0, 0.0008680556573291698, 0, 0, 0, 0},
    {0, 0.0005313191874358747, 0, 0.00016533814161379112, 0, 0},
    {0, 0, 0, 0.0004179171803251336, 0.0017290828234722833, 0},
    {0.0020827005846636437, 0, 0, 8.826982764996862, 23.19243343998926, 0},
    {95.1080498811086, 0.9863978034400682, 0.9834382792465353, 0.0012286405048278493, 171.2667255897307,
     0.9807858872435379},
    {0, 0, 0, 0.0005130064588990679, 0, 0.00010854057858411537},
};

/// The rows of a plane under the blur.
typedef struct plane_rows {
  float *reference;  ///< [CPIXELS_BLUR_TAPS][stride]; NULL if the plane is not computed.
  float *difference; ///< The same.
} plane_rows;

/// One scale of both images.
typedef struct scale {
  uint32_t width;
  uint32_t height;
  uint32_t pushed;   ///< The number of rows consumed.
  uint32_t compared; ///< The number of rows whose errors were added up.
  size_t stride;     ///< The number of samples of a row with its margins.
  plane_rows planes[PLANES];
  float *linear[2][2][3]; ///< [image][row modulo 2][channel]
  double sums[PLANES][MAPS][NORMS];
} scale;

enum { REFERENCE, RESULT };

struct cpixels_similarity {
  cpixels_similarity_options options;
  const cpixels_similarity_kernels *kernels;
  uint32_t scale_count;
  scale scales[MAX_SCALES];
  cpixels_moment_rows moments;
  float *table; ///< Encoded to linear; with alpha, BLENDED_STEPS entries per level.
};

// MARK: Set-up

static const cpixels_similarity_kernels *kernels_of(cpixels_isa isa) {
#if defined(__x86_64__)
  if (cpixels_isa_resolve(isa) == CPIXELS_ISA_AVX512) {
    return &cpixels_similarity_avx512;
  }
#endif
  return CPIXELS_CHOOSE(cpixels_similarity, isa);
}

static bool options_are_valid(const cpixels_similarity_options *o) {
  return o->width >= MIN_SIDE && o->width <= MAX_SIDE && o->height >= MIN_SIDE && o->height <= MAX_SIDE &&
         (o->channels == 1 || o->channels == 3 || o->channels == 4) && o->background >= 0 && o->background <= 1;
}

/// Returns the weights of a plane at a scale.
static const double *weights_of(uint32_t scale_count, uint32_t plane, uint32_t index) {
  return weights[plane * scale_count + index];
}

static bool is_weighted(const double *first) {
  for (size_t i = 0; i < NORMS * MAPS; i++) {
    if (first[i] > negligible_weight) {
      return true;
    }
  }
  return false;
}

/// Returns a row of a block of rows, after its margin.
static float *row_at(float *rows, size_t index, size_t stride) {
  return rows == NULL ? NULL : rows + index * stride + CPIXELS_SIMILARITY_MARGIN;
}

static float *take_row(cpixels_arena *arena, size_t stride) {
  return row_at(cpixels_arena_take(arena, stride, sizeof(float)), 0, stride);
}

static void place_scale(cpixels_arena *arena, uint32_t scale_count, uint32_t index, scale *s) {
  for (uint32_t p = 0; p < PLANES; p++) {
    if (is_weighted(weights_of(scale_count, p, index))) {
      s->planes[p].reference = cpixels_arena_take(arena, CPIXELS_BLUR_TAPS * s->stride, sizeof(float));
      s->planes[p].difference = cpixels_arena_take(arena, CPIXELS_BLUR_TAPS * s->stride, sizeof(float));
    }
  }
  for (uint32_t i = 0; i < 2 * 2 * 3; i++) {
    s->linear[i / 6][i / 3 % 2][i % 3] = take_row(arena, s->stride);
  }
}

/// Computes the scales, and allocates all memory.
static void place(cpixels_arena *arena, cpixels_similarity *s) {
  uint32_t width = s->options.width;
  uint32_t height = s->options.height;
  for (s->scale_count = 0; s->scale_count < MAX_SCALES && width >= MIN_SIDE && height >= MIN_SIDE; s->scale_count++) {
    scale *next = &s->scales[s->scale_count];
    next->width = width;
    next->height = height;
    next->stride = ((size_t)width + 31) / 32 * 32 + 2 * CPIXELS_SIMILARITY_MARGIN;
    width = (width + 1) / 2;
    height = (height + 1) / 2;
  }
  for (uint32_t i = 0; i < s->scale_count; i++) {
    place_scale(arena, s->scale_count, i, &s->scales[i]);
  }
  const size_t stride = s->scales[0].stride;
  s->moments = (cpixels_moment_rows){
      take_row(arena, stride), take_row(arena, stride), take_row(arena, stride), take_row(arena, stride),
      take_row(arena, stride)};
  s->table = cpixels_arena_take(arena, 255 * (s->options.channels == 4 ? BLENDED_STEPS : 1) + 1, sizeof(float));
}

static void fill_table(cpixels_similarity *s) {
  const int count = 255 * (s->options.channels == 4 ? BLENDED_STEPS : 1);
  for (int i = 0; i <= count; i++) {
    const double level = (double)i / count;
    s->table[i] = (float)cpixels_light_of(level);
  }
}

bool cpixels_similarity_measure(const cpixels_similarity_options *options, size_t *byte_count) {
  if (!options_are_valid(options)) {
    return false;
  }
  cpixels_arena arena = {0};
  cpixels_similarity measured = {.options = *options};
  cpixels_arena_take(&arena, 1, sizeof measured);
  place(&arena, &measured);
  *byte_count = arena.used;
  return !arena.overflowed;
}

cpixels_similarity *cpixels_similarity_init(const cpixels_similarity_options *options, void *memory) {
  size_t byte_count;
  if (!cpixels_isa_is_available(options->isa) || !cpixels_similarity_measure(options, &byte_count)) {
    return NULL;
  }
  memset(memory, 0, byte_count); // margins stay 0, and kernels read whole vectors
  cpixels_arena arena = {.base = memory};
  cpixels_similarity *s = cpixels_arena_take(&arena, 1, sizeof *s);
  s->options = *options;
  s->kernels = kernels_of(options->isa);
  place(&arena, s);
  fill_table(s);
  return s;
}

// MARK: Errors

/// Clears what a blur of the moments reads after the last pixel, where a larger scale may have left its own.
static void clear_margin(const cpixels_moment_rows *moments, size_t width) {
  float *const rows[] = {moments->r, moments->d, moments->rr, moments->dd, moments->rd};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    memset(rows[i] + width, 0, CPIXELS_SIMILARITY_MARGIN * sizeof(float));
  }
}

/// Returns the row that stands for row `y`, which may be outside the image.
static size_t mirrored(int64_t y, int64_t height) {
  const int64_t below = y < 0 ? -1 - y : y;
  return (size_t)(below < height ? below : 2 * height - 1 - below);
}

/// Adds up the errors of row `y` of a plane.
static void compare_row(const cpixels_similarity *s, scale *at, uint32_t plane, uint32_t y) {
  const float *reference[CPIXELS_BLUR_TAPS];
  const float *difference[CPIXELS_BLUR_TAPS];
  for (uint32_t t = 0; t < CPIXELS_BLUR_TAPS; t++) {
    const size_t slot = mirrored((int64_t)y + t - CPIXELS_BLUR_REACH, at->height) % CPIXELS_BLUR_TAPS;
    reference[t] = row_at(at->planes[plane].reference, slot, at->stride);
    difference[t] = row_at(at->planes[plane].difference, slot, at->stride);
  }
  s->kernels->blur_down(reference, difference, at->width, &s->moments);
  clear_margin(&s->moments, at->width);
  cpixels_error_sums sums;
  s->kernels->compare(&s->moments, reference[CPIXELS_BLUR_REACH], difference[CPIXELS_BLUR_REACH], at->width, &sums);
  for (int n = 0; n < NORMS; n++) {
    at->sums[plane][0][n] += (double)sums.structure[n];
    at->sums[plane][1][n] += (double)sums.ringing[n];
    at->sums[plane][2][n] += (double)sums.blurring[n];
  }
}

static void compare_rows(const cpixels_similarity *s, scale *at, uint32_t y) {
  if (at->height >= MIN_SAMPLED_ROWS && y % ROW_STEP != 0) {
    return;
  }
  at->compared++;
  for (uint32_t p = 0; p < PLANES; p++) {
    if (at->planes[p].reference != NULL) {
      compare_row(s, at, p, y);
    }
  }
}

// MARK: Rows

/// Converts the row of a scale that has just arrived to the planes under the blur.
static void perceive_row(const cpixels_similarity *s, const scale *at) {
  const size_t slot = at->pushed % CPIXELS_BLUR_TAPS;
  float *reference[PLANES];
  float *difference[PLANES];
  for (uint32_t p = 0; p < PLANES; p++) {
    reference[p] = row_at(at->planes[p].reference, slot, at->stride);
    difference[p] = row_at(at->planes[p].difference, slot, at->stride);
  }
  const uint32_t parity = at->pushed % 2;
  s->kernels->perceive((const float *const *)at->linear[REFERENCE][parity], at->width, reference);
  s->kernels->perceive((const float *const *)at->linear[RESULT][parity], at->width, difference);
  const size_t rest = at->stride - CPIXELS_SIMILARITY_MARGIN - at->width;
  for (uint32_t p = 0; p < PLANES; p++) {
    if (reference[p] != NULL) {
      s->kernels->subtract(reference[p], at->width, difference[p]);
      memset(reference[p] + at->width, 0, rest * sizeof(float));
      memset(difference[p] + at->width, 0, rest * sizeof(float));
    }
  }
}

/// Computes a row of the next scale from the last two rows; the edge of an image of odd size is repeated.
static void halve_rows(const cpixels_similarity *s, const scale *at, const scale *next) {
  const bool is_pair = at->pushed % 2 == 0;
  for (uint32_t image = 0; image < 2; image++) {
    for (uint32_t c = 0; c < 3; c++) {
      float *upper = at->linear[image][0][c];
      float *lower = at->linear[image][is_pair ? 1 : 0][c];
      upper[at->width] = upper[at->width - 1];
      lower[at->width] = lower[at->width - 1];
      s->kernels->halve(upper, lower, next->width, next->linear[image][next->pushed % 2][c]);
    }
  }
}

/// Consumes the row that is in the linear planes of scale `index`.
static void push_scale(cpixels_similarity *s, uint32_t index) {
  scale *at = &s->scales[index];
  perceive_row(s, at);
  at->pushed++;
  const bool is_last = at->pushed == at->height;
  if (at->pushed > CPIXELS_BLUR_REACH) {
    compare_rows(s, at, at->pushed - 1 - CPIXELS_BLUR_REACH);
  }
  for (uint32_t y = at->height - CPIXELS_BLUR_REACH; is_last && y < at->height; y++) {
    compare_rows(s, at, y);
  }
  if (index + 1 < s->scale_count && (is_last || at->pushed % 2 == 0)) {
    halve_rows(s, at, &s->scales[index + 1]);
    push_scale(s, index + 1);
  }
}

/// Converts a row of RGBA over the background to linear planes.
static void blend_row(const cpixels_similarity *s, const uint8_t *row, float *const *linear) {
  const uint32_t background = (uint32_t)lround(s->options.background * 255 * BLENDED_STEPS);
  for (size_t x = 0; x < s->options.width; x++, row += 4) {
    const uint32_t alpha = row[3];
    for (uint32_t c = 0; c < 3; c++) {
      const uint32_t sum = row[c] * BLENDED_STEPS * alpha + background * (255 - alpha);
      linear[c][x] = s->table[(sum + 127) / 255];
    }
  }
}

static void linearize_row(const cpixels_similarity *s, const uint8_t *row, float *const *linear) {
  if (s->options.channels == 4) {
    blend_row(s, row, linear);
  } else {
    s->kernels->linearize(s->table, row, s->options.channels, s->options.width, linear);
  }
}

void cpixels_similarity_push(
    cpixels_similarity *s, const uint8_t *reference, size_t reference_stride, const uint8_t *result,
    size_t result_stride, size_t row_count) {
  scale *first = &s->scales[0];
  for (size_t i = 0; i < row_count && first->pushed < first->height; i++) {
    linearize_row(s, reference + i * reference_stride, first->linear[REFERENCE][first->pushed % 2]);
    linearize_row(s, result + i * result_stride, first->linear[RESULT][first->pushed % 2]);
    push_scale(s, 0);
  }
}

// MARK: Score

double cpixels_similarity_score(const cpixels_similarity *s) {
  double sum = 0;
  for (uint32_t i = 0; i < s->scale_count; i++) {
    const scale *at = &s->scales[i];
    const double pixel_count = (double)at->width * at->compared;
    for (uint32_t p = 0; p < PLANES; p++) {
      const double *first = weights_of(s->scale_count, p, i);
      for (uint32_t map = 0; map < MAPS; map++) {
        sum += first[map] * at->sums[p][map][0] / pixel_count;
        sum += first[MAPS + map] * sqrt(sqrt(at->sums[p][map][1] / pixel_count));
      }
    }
  }
  sum *= 0.9562382616834844;
  sum = 2.326765642916932 * sum - 0.020884521182843837 * sum * sum + 6.248496625763138e-05 * sum * sum * sum;
  return sum > 0 ? 100 - 10 * pow(sum, 0.6276336467831387) : 100;
}

// Compares the judgement of windows by cascades of random trees.

#include "faces.h"
#include "check.h"

enum { SIDE = 20, IMAGE = 48, TREES = 60, STAGES = 6 };

static uint32_t sums[IMAGE * CPIXELS_FACES_STRIDE];
static cpixels_cascade_tree trees[TREES];
static cpixels_cascade_stage stages[STAGES];

static void integrate(void) {
  static uint8_t row[CPIXELS_FACES_STRIDE];
  for (size_t y = 1; y < IMAGE; y++) {
    fill(row, sizeof row);
    uint32_t sum = 0;
    for (size_t x = 1; x < CPIXELS_FACES_STRIDE; x++) {
      sum += row[x];
      sums[y * CPIXELS_FACES_STRIDE + x] = sums[(y - 1) * CPIXELS_FACES_STRIDE + x] + sum;
    }
  }
}

/// A number from -1 to 1, with few bits, so that thresholds are also met exactly.
static float next_fraction(void) {
  return (float)(int32_t)(next_random() % 33) / 16 - 1;
}

static cpixels_cascade_part next_part(void) {
  const int32_t left = (int32_t)(next_random() % SIDE), top = (int32_t)(next_random() % SIDE);
  const int32_t width = 1 + (int32_t)(next_random() % (uint32_t)(SIDE - left));
  const int32_t first = top * CPIXELS_FACES_STRIDE + left;
  const int32_t down = first + (1 + (int32_t)(next_random() % (uint32_t)(SIDE - top))) * CPIXELS_FACES_STRIDE;
  return (cpixels_cascade_part){first, first + width, down, down + width, 3 * next_fraction()};
}

static cpixels_cascade_node next_node(void) {
  cpixels_cascade_node node = {.part_count = 2 + next_random() % 2, .threshold = next_fraction()};
  for (uint32_t i = 0; i < node.part_count; i++) {
    node.parts[i] = next_part();
  }
  return node;
}

static cpixels_cascade next_cascade(void) {
  for (uint32_t t = 0; t < TREES; t++) {
    trees[t] = (cpixels_cascade_tree){
        .nodes = {next_node(), next_node()},
        .node_count = 1 + next_random() % 2,
        .follows_below = next_random() % 2,
        .leaf = next_fraction(),
        .below = next_fraction(),
        .above = next_fraction(),
    };
  }
  const uint32_t count = TREES / STAGES;
  for (uint32_t s = 0; s < STAGES; s++) {
    stages[s] = (cpixels_cascade_stage){s * count, count, next_fraction() - 1.5f};
  }
  return (cpixels_cascade){SIDE, SIDE, 0, trees, stages, STAGES};
}

void check_faces(void) {
  integrate();
  const cpixels_cascade cascade = next_cascade();
  bool is_good = true;
  for (size_t place = 0; place + SIDE + CPIXELS_FACES_LANES < CPIXELS_FACES_STRIDE; place += 1 + next_random() % 3) {
    float deviations[CPIXELS_FACES_LANES];
    for (size_t i = 0; i < CPIXELS_FACES_LANES; i++) {
      deviations[i] = next_random() % 4 == 0 ? (float)(next_random() % 3) - 1 : (float)(next_random() % 50000);
    }
    const uint32_t *first = sums + place + next_random() % (IMAGE - 2 * SIDE) * CPIXELS_FACES_STRIDE;
    const uint32_t expected = cpixels_faces_judge_of(CPIXELS_ISA_SCALAR)(&cascade, first, deviations);
    is_good = is_good && cpixels_faces_judge_of(CPIXELS_ISA_BEST)(&cascade, first, deviations) == expected;
  }
  report("faces", is_good);
}

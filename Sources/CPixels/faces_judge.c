// Windows of a cascade, side by side in vectors, as their sums are.

#include "faces.h"
#include "kernels.h"

#include <string.h>

#pragma STDC FP_CONTRACT OFF

#pragma clang diagnostic ignored "-Wpsabi" // all functions that take vectors are inlined

typedef float lanes __attribute__((vector_size(4 * CPIXELS_FACES_LANES)));
typedef int32_t whole_lanes __attribute__((vector_size(4 * CPIXELS_FACES_LANES)));
typedef uint32_t sum_lanes __attribute__((vector_size(4 * CPIXELS_FACES_LANES)));

/// Returns a bit for each lane of a mask, the first lane's lowest.
CPIXELS_INLINE uint32_t bits_of(whole_lanes mask) {
  typedef bool bits __attribute__((ext_vector_type(CPIXELS_FACES_LANES)));
  const bits set = __builtin_convertvector(mask, bits);
  uint8_t byte;
  memcpy(&byte, &set, sizeof byte);
  return byte;
}

CPIXELS_INLINE sum_lanes load(const uint32_t *sums, int32_t offset) {
  sum_lanes x;
  memcpy(&x, sums + offset, sizeof x);
  return x;
}

CPIXELS_INLINE lanes all_lanes(float x) {
  return x - (lanes){0};
}

CPIXELS_INLINE lanes select_lanes(whole_lanes mask, lanes x, lanes otherwise) {
  return (lanes)((mask & (whole_lanes)x) | (~mask & (whole_lanes)otherwise));
}

CPIXELS_INLINE lanes weighted(const cpixels_cascade_part *part, const uint32_t *sums) {
  const sum_lanes upper = load(sums, part->first) - load(sums, part->across);
  const sum_lanes lower = load(sums, part->last) - load(sums, part->down);
  return part->weight * __builtin_convertvector((whole_lanes)(upper + lower), lanes);
}

/// Returns the lanes in which the sum of a node's feature is below its threshold.
CPIXELS_INLINE whole_lanes is_below(const cpixels_cascade_node *node, const uint32_t *sums, lanes deviations) {
  lanes value = weighted(&node->parts[0], sums) + weighted(&node->parts[1], sums);
  if (node->part_count > 2) {
    value += weighted(&node->parts[2], sums);
  }
  return value < node->threshold * deviations;
}

/// Both nodes are computed, as some of the lanes nearly always need the second one.
CPIXELS_INLINE lanes leaves_of(const cpixels_cascade_tree *tree, const uint32_t *sums, lanes deviations) {
  const cpixels_cascade_node *last = &tree->nodes[tree->node_count - 1];
  const lanes leaves = select_lanes(is_below(last, sums, deviations), all_lanes(tree->below), all_lanes(tree->above));
  if (tree->node_count == 1) {
    return leaves;
  }
  const whole_lanes is_first_below = is_below(&tree->nodes[0], sums, deviations);
  const lanes other = all_lanes(tree->leaf);
  return tree->follows_below ? select_lanes(is_first_below, leaves, other)
                             : select_lanes(is_first_below, other, leaves);
}

CPIXELS_INLINE uint32_t judge(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations) {
  lanes scales;
  memcpy(&scales, deviations, sizeof scales);
  uint32_t passing = bits_of(scales >= 0);
  for (uint32_t s = 0; s < cascade->stage_count && passing != 0; s++) {
    const cpixels_cascade_stage *stage = &cascade->stages[s];
    lanes sum = {0};
    for (uint32_t t = 0; t < stage->tree_count; t++) {
      sum += leaves_of(&cascade->trees[stage->first_tree + t], sums, scales);
    }
    passing &= bits_of(sum >= stage->threshold);
  }
  return passing;
}

CPIXELS_AVX2 static uint32_t judge_avx2(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations) {
  return judge(cascade, sums, deviations);
}

cpixels_faces_judge cpixels_faces_judge_of(cpixels_isa isa) {
  return CPIXELS_VECTORIZED(judge, isa);
}

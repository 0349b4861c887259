// Windows of a cascade, one after the other.

#include "faces.h"

#pragma STDC FP_CONTRACT OFF

static float value_of(const cpixels_cascade_node *node, const uint32_t *sums) {
  float value = 0;
  for (uint32_t i = 0; i < node->part_count; i++) {
    const cpixels_cascade_part *part = &node->parts[i];
    const uint32_t sum = sums[part->first] - sums[part->across] - sums[part->down] + sums[part->last];
    value += part->weight * (float)(int32_t)sum;
  }
  return value;
}

static bool is_below(const cpixels_cascade_node *node, const uint32_t *sums, float deviation) {
  return value_of(node, sums) < node->threshold * deviation;
}

static float leaf_of(const cpixels_cascade_tree *tree, const uint32_t *sums, float deviation) {
  const cpixels_cascade_node *last = &tree->nodes[tree->node_count - 1];
  if (tree->node_count == 2 && is_below(&tree->nodes[0], sums, deviation) != tree->follows_below) {
    return tree->leaf;
  }
  return is_below(last, sums, deviation) ? tree->below : tree->above;
}

static bool passes(const cpixels_cascade *cascade, const uint32_t *sums, float deviation) {
  for (uint32_t s = 0; s < cascade->stage_count; s++) {
    const cpixels_cascade_stage *stage = &cascade->stages[s];
    float sum = 0;
    for (uint32_t t = 0; t < stage->tree_count; t++) {
      sum += leaf_of(&cascade->trees[stage->first_tree + t], sums, deviation);
    }
    if (sum < stage->threshold) {
      return false;
    }
  }
  return true;
}

uint32_t cpixels_faces_judge_scalar(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations) {
  uint32_t passing = 0;
  for (uint32_t lane = 0; lane < CPIXELS_FACES_LANES; lane++) {
    if (deviations[lane] >= 0 && passes(cascade, sums + lane, deviations[lane])) {
      passing |= 1U << lane;
    }
  }
  return passing;
}

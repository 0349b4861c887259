// Windows of a cascade for AVX2: eight side by side, whose sums are side by side, too.

#if defined(__x86_64__)

#include "faces.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

#pragma STDC FP_CONTRACT OFF

AVX2 static inline __m256i load(const uint32_t *sums, int32_t offset) {
  return _mm256_loadu_si256((const __m256i *)(sums + offset));
}

AVX2 static inline __m256 weighted(const cpixels_cascade_part *part, const uint32_t *sums) {
  const __m256i upper = _mm256_sub_epi32(load(sums, part->first), load(sums, part->across));
  const __m256i lower = _mm256_sub_epi32(load(sums, part->last), load(sums, part->down));
  return _mm256_mul_ps(_mm256_set1_ps(part->weight), _mm256_cvtepi32_ps(_mm256_add_epi32(upper, lower)));
}

/// Returns the lanes in which the sum of a node's feature is below its threshold.
AVX2 static inline __m256 is_below(const cpixels_cascade_node *node, const uint32_t *sums, __m256 deviations) {
  __m256 value = _mm256_add_ps(weighted(&node->parts[0], sums), weighted(&node->parts[1], sums));
  if (node->part_count > 2) {
    value = _mm256_add_ps(value, weighted(&node->parts[2], sums));
  }
  return _mm256_cmp_ps(value, _mm256_mul_ps(_mm256_set1_ps(node->threshold), deviations), _CMP_LT_OQ);
}

/// Both nodes are computed, as some of the lanes nearly always need the second one.
AVX2 static inline __m256 leaves_of(const cpixels_cascade_tree *tree, const uint32_t *sums, __m256 deviations) {
  const cpixels_cascade_node *last = &tree->nodes[tree->node_count - 1];
  const __m256 leaves =
      _mm256_blendv_ps(_mm256_set1_ps(tree->above), _mm256_set1_ps(tree->below), is_below(last, sums, deviations));
  if (tree->node_count == 1) {
    return leaves;
  }
  const __m256 is_first_below = is_below(&tree->nodes[0], sums, deviations);
  const __m256 other = _mm256_set1_ps(tree->leaf);
  return tree->follows_below ? _mm256_blendv_ps(other, leaves, is_first_below)
                             : _mm256_blendv_ps(leaves, other, is_first_below);
}

AVX2 uint32_t cpixels_faces_judge_avx2(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations) {
  const __m256 scales = _mm256_loadu_ps(deviations);
  uint32_t passing = (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(scales, _mm256_setzero_ps(), _CMP_GE_OQ));
  for (uint32_t s = 0; s < cascade->stage_count && passing != 0; s++) {
    const cpixels_cascade_stage *stage = &cascade->stages[s];
    __m256 sum = _mm256_setzero_ps();
    for (uint32_t t = 0; t < stage->tree_count; t++) {
      sum = _mm256_add_ps(sum, leaves_of(&cascade->trees[stage->first_tree + t], sums, scales));
    }
    passing &= (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(sum, _mm256_set1_ps(stage->threshold), _CMP_GE_OQ));
  }
  return passing;
}

#endif

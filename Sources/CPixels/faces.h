// Faces as the parts of this module share them. Private to CPixels.
//
//   cascade.c:                     the text of a cascade -> stages of trees
//   faces.c:                       the levels of an image, their integral images, and groups of windows
//   faces_judge.c:                 which windows pass all stages

#pragma once

#include "cpixels.h"

/// The number of windows, side by side, that a kernel judges at a time.
enum { CPIXELS_FACES_LANES = 8 };

/// The number of sums in a row of an integral image, whatever the width of its image: offsets are those of all levels.
enum { CPIXELS_FACES_STRIDE = CPIXELS_FACES_MAX_SIDE + CPIXELS_FACES_LANES };

/// A rectangle of a feature: the offsets of its corners in an integral image, from that of the window, and its weight.
typedef struct cpixels_cascade_part {
  int32_t first;  ///< The upper left corner.
  int32_t across; ///< The upper right one.
  int32_t down;   ///< The lower left one.
  int32_t last;   ///< The lower right one.
  float weight;
} cpixels_cascade_part;

/// A node of a tree: it compares the weighted sum of a feature's rectangles with a threshold.
typedef struct cpixels_cascade_node {
  cpixels_cascade_part parts[3];
  uint32_t part_count;
  float threshold; ///< For windows whose pixels have the deviation 1.
} cpixels_cascade_node;

/// A tree of one or two nodes. The second one follows the first on one side; leaves are what the tree adds to its
/// stage.
typedef struct cpixels_cascade_tree {
  cpixels_cascade_node nodes[2];
  uint32_t node_count;
  uint32_t
      follows_below; ///< Whether the second node follows where the first is below its threshold, not where it is not.
  float leaf;        ///< Of the other side of the first node.
  float below;       ///< Of the last node.
  float above;
} cpixels_cascade_tree;

/// A stage: trees whose leaves add up to at least a threshold where there may be a face.
typedef struct cpixels_cascade_stage {
  uint32_t first_tree;
  uint32_t tree_count;
  float threshold;
} cpixels_cascade_stage;

struct cpixels_cascade {
  uint32_t width; ///< Of a window.
  uint32_t height;
  uint64_t identity;
  cpixels_cascade_tree *trees;
  cpixels_cascade_stage *stages;
  uint32_t stage_count;
};

/// Judges CPIXELS_FACES_LANES windows side by side, the first of which begins at `sums`.
///
/// `deviations` are those of their pixels, multiplied by the area over which they were taken; of a window to skip,
/// below 0. Returns a bit for each window that passes all stages. All versions return the same bits.
typedef uint32_t (*cpixels_faces_judge)(const cpixels_cascade *cascade, const uint32_t *sums, const float *deviations);

/// Returns the version for an instruction set.
cpixels_faces_judge cpixels_faces_judge_of(cpixels_isa isa);

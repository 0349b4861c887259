// A network that finds faces, as its parts share it. Private to CPixels.
//
//   network_reader.c: the tables of a TensorFlow Lite file, each offset of which is checked
//   network_file.c:   the operators of such a file -> layers
//   network.c:        the planes of an image through all layers, and the faces in what comes out
//   network_scalar.c, network_lanes.h with network_avx2.c: the arithmetic of a layer
//
// Values are planes of floats, one for each channel, without gaps between them. A row has at least one column more than
// values, and these are zero: they are the border right of the row, and left of the next one.

#pragma once

#include "cpixels.h"

enum {
  CPIXELS_NETWORK_MAX_LAYERS = 128,
  CPIXELS_NETWORK_MAX_CHANNELS = 512,
  CPIXELS_NETWORK_MAX_WEIGHTS = 1 << 20,
  /// The width of planes is a multiple of this.
  CPIXELS_NETWORK_COLUMN_MULTIPLE = 8,
  /// The number of halvings between the image and the smallest planes.
  CPIXELS_NETWORK_MAX_LEVEL = 5,
  CPIXELS_NETWORK_TAPS = 9,
  /// The number of values of a box in the file: its center, its size, and points of the face, which are not used.
  CPIXELS_NETWORK_BOX_VALUES = 16,
  /// The distance of two places that can be the center of a face.
  CPIXELS_NETWORK_GRID = 4,
  CPIXELS_NETWORK_NONE = UINT16_MAX,
};

/// A factor that is not zero, of one channel.
typedef struct cpixels_network_weight {
  uint32_t channel;
  float factor;
} cpixels_network_weight;

/// The planes between two layers.
typedef struct cpixels_network_value {
  uint16_t channel_count;
  uint8_t level;   ///< The number of halvings since the image.
  uint16_t writer; ///< The layer that computes it.
  uint16_t reader; ///< The last layer that reads it.
} cpixels_network_value;

typedef enum cpixels_network_kind {
  CPIXELS_NETWORK_STEM,       ///< 3x3 pixels of the image, every other one, to all channels.
  CPIXELS_NETWORK_POINTS,     ///< All channels of a pixel to all channels, after `taps` if there are any.
  CPIXELS_NETWORK_DEPTHWISE,  ///< `taps` only.
  CPIXELS_NETWORK_UPSAMPLING, ///< Twice the size, added to `addend`.
} cpixels_network_kind;

typedef struct cpixels_network_layer {
  cpixels_network_kind kind;
  uint16_t input;
  uint16_t output;
  uint16_t addend;  ///< A value that is added to the result, or CPIXELS_NETWORK_NONE.
  uint16_t columns; ///< The number of channels before the weights are applied.
  bool clips;       ///< Negative results become 0.
  // Of 3x3 pixels of each channel, if `step` is not 0.
  uint32_t step;         ///< The distance of their centers, 1 or 2.
  const float *taps;     ///< [channel][row][column].
  const float *tap_bias; ///< [channel].
  // Between channels.
  const uint32_t *starts; ///< [channel of the output + 1], in `weights`.
  const cpixels_network_weight *weights;
  const float *bias; ///< [channel of the output].
} cpixels_network_layer;

struct cpixels_network {
  uint64_t identity;
  uint32_t layer_count;
  uint32_t value_count; ///< Value 0 is the image.
  uint16_t scores;      ///< Four values for each pixel: the logits of its quarters.
  uint16_t boxes;       ///< Likewise the boxes.
  cpixels_network_layer layers[CPIXELS_NETWORK_MAX_LAYERS];
  cpixels_network_value values[CPIXELS_NETWORK_MAX_LAYERS + 1];
  float *numbers;                  ///< Taps and biases of all layers.
  cpixels_network_weight *weights; ///< Of all layers.
  uint32_t *starts;                ///< Likewise.
};

/// The arithmetic of rows. All counts of floats are multiples of CPIXELS_NETWORK_COLUMN_MULTIPLE.
typedef struct cpixels_network_kernels {
  /// Computes a row from 3x3 pixels of three rows, of which `step` times as many floats are read, and one on each side.
  void (*tap)(const float *const rows[3], const float *taps, float bias, uint32_t step, float *output, size_t count);
  /// Computes one plane from weighted planes, which start `stride` floats after each other. `addend` can be NULL.
  void (*weigh)(
      const float *planes, size_t stride, const cpixels_network_weight *weights, size_t weight_count, float bias,
      const float *addend, bool clips, float *output, size_t count);
} cpixels_network_kernels;

extern const cpixels_network_kernels cpixels_network_scalar;
extern const cpixels_network_kernels cpixels_network_avx2;

const cpixels_network_kernels *cpixels_network_kernels_of(cpixels_isa isa);

// MARK: Reading

/// A file, of which any part can be wrong.
typedef struct cpixels_network_file {
  const uint8_t *bytes;
  size_t byte_count;
  const char *error; ///< NULL as long as all is well.
} cpixels_network_file;

/// A table in a file; with position 0 an absent one, whose fields are absent.
typedef struct cpixels_network_table {
  size_t position;
} cpixels_network_table;

/// Numbers in a file, or tables.
typedef struct cpixels_network_vector {
  const uint8_t *items; ///< Not aligned.
  uint32_t count;
} cpixels_network_vector;

void cpixels_network_fail(cpixels_network_file *file, const char *message);
cpixels_network_table cpixels_network_root(cpixels_network_file *file);
/// Returns a field with a number of 1 or 4 bytes, or `otherwise` if it is absent.
int64_t cpixels_network_number(
    cpixels_network_file *, cpixels_network_table, uint32_t field, size_t size, int64_t otherwise);
cpixels_network_table cpixels_network_subtable(cpixels_network_file *file, cpixels_network_table, uint32_t field);
/// Returns the items of `size` bytes of a field; none if it is absent.
cpixels_network_vector cpixels_network_items(
    cpixels_network_file *file, cpixels_network_table, uint32_t field, size_t size);
/// Returns a table of a vector of tables.
cpixels_network_table cpixels_network_item(cpixels_network_file *file, cpixels_network_vector vector, uint32_t index);
uint32_t cpixels_network_integer(const uint8_t *bytes, size_t size);
float cpixels_network_half(const uint8_t *bytes);

// The operators of a TensorFlow Lite file -> the layers of a network.
//
// Of all operators, these count: 3x3 convolutions of an image, 3x3 convolutions of single channels (depthwise), sums of
// channels (1x1 convolutions), and bilinear interpolation to twice the size, with sums and ReLU. The shapes in the file
// count as little as possible: channels follow from weights, and sizes from steps.

#include "kernels.h"
#include "network.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_TENSORS = 1024,
  FLOAT32 = 0,
  FLOAT16 = 1,
  VALID_PADDING = 1,
  CSR = 1,
};

/// Operators, as the schema of TensorFlow Lite numbers them.
enum {
  ADD = 0,
  CONV_2D = 3,
  DEPTHWISE_CONV_2D = 4,
  DEPTH_TO_SPACE = 5,
  DEQUANTIZE = 6,
  RESHAPE = 22,
  RESIZE_BILINEAR = 23,
  PAD = 34,
  DENSIFY = 124,
};

/// The value that a tensor of the file stands for.
typedef enum meaning_kind {
  NOTHING,
  CONSTANT,  ///< The tensor `index` of the file.
  VALUE,     ///< The value `index`.
  PADDED,    ///< The value with a border of a pixel.
  TAPPED,    ///< The padded value after 3x3 taps, which no layer computes yet.
  UPSAMPLED, ///< The value at twice its size, likewise.
  SPLIT,     ///< The value, whose channels are four pixels each.
} meaning_kind;

typedef struct meaning {
  meaning_kind kind;
  uint32_t index;
  // Of TAPPED:
  uint32_t step;
  uint32_t taps;
  uint32_t bias;
} meaning;

typedef struct compiler {
  cpixels_network_file file;
  cpixels_network *network;
  cpixels_network_vector tensors;
  cpixels_network_vector buffers;
  uint32_t number_count;
  uint32_t weight_count;
  uint32_t start_count;
  meaning meanings[MAX_TENSORS];
  meaning nothing; ///< That of tensors that do not exist.
} compiler;

/// An operator.
typedef struct operation {
  uint32_t inputs[3];
  uint32_t input_count;
  uint32_t output;
  cpixels_network_table options;
} operation;

static bool has_failed(const compiler *compiler) {
  return compiler->file.error != NULL;
}

static void fail(compiler *compiler, const char *message) {
  cpixels_network_fail(&compiler->file, message);
}

static int64_t option(compiler *compiler, const operation *operation, uint32_t field, size_t size, int64_t otherwise) {
  return cpixels_network_number(&compiler->file, operation->options, field, size, otherwise);
}

// MARK: Constants

/// The numbers of a constant, of which rows can leave out zeros.
typedef struct constant {
  uint32_t shape[4];
  uint32_t total; ///< The product of the shape.
  uint32_t item_size;
  cpixels_network_vector items;
  cpixels_network_vector starts; ///< Of the rows, and the end of the last one; none if no number is left out.
  uint32_t start_size;
  cpixels_network_vector channels; ///< Of the numbers, if some are left out.
  uint32_t channel_size;
} constant;

/// Reads numbers whose size a field before them specifies: a list of type 1 (32 bits), 2 (16 bits) or 3 (8 bits).
static cpixels_network_vector read_indexes(
    compiler *compiler, cpixels_network_table table, uint32_t field, uint32_t *size) {
  const int64_t type = cpixels_network_number(&compiler->file, table, field, 1, 0);
  *size = type == 2 ? 2 : type == 3 ? 1 : 4;
  const cpixels_network_table list = cpixels_network_subtable(&compiler->file, table, field + 1);
  return cpixels_network_items(&compiler->file, list, 0, *size);
}

/// Reads which numbers of a constant were left out, if any.
static void read_sparsity(compiler *compiler, cpixels_network_table tensor, constant *constant) {
  cpixels_network_file *file = &compiler->file;
  const cpixels_network_table sparsity = cpixels_network_subtable(file, tensor, 6);
  if (sparsity.position == 0) {
    return;
  }
  const cpixels_network_vector order = cpixels_network_items(file, sparsity, 0, 4);
  const cpixels_network_vector blocks = cpixels_network_items(file, sparsity, 1, 4);
  const cpixels_network_vector dimensions = cpixels_network_items(file, sparsity, 2, 4);
  bool is_known = order.count == 4 && blocks.count == 0 && dimensions.count == 4;
  for (uint32_t i = 0; i < 4 && is_known; i++) {
    const cpixels_network_table dimension = cpixels_network_item(file, dimensions, i);
    const int64_t format = cpixels_network_number(file, dimension, 0, 1, 0);
    is_known = cpixels_network_integer(order.items + 4 * i, 4) == i && format == (i == 3 ? CSR : 0);
    if (i == 3 && is_known) {
      constant->starts = read_indexes(compiler, dimension, 2, &constant->start_size);
      constant->channels = read_indexes(compiler, dimension, 4, &constant->channel_size);
      is_known = constant->starts.count > 0;
    }
  }
  if (!is_known) {
    fail(compiler, "numbers are left out in another way than by rows");
  }
}

/// Reads a constant of one or four dimensions, and numbers of 16 or 32 bits.
static constant read_constant(compiler *compiler, uint32_t tensor_index) {
  cpixels_network_file *file = &compiler->file;
  constant constant = {.shape = {1, 1, 1, 1}, .total = 1};
  if (tensor_index >= MAX_TENSORS || compiler->meanings[tensor_index].kind != CONSTANT) {
    fail(compiler, "numbers of an operator are not in it");
    return constant;
  }
  const cpixels_network_table tensor =
      cpixels_network_item(file, compiler->tensors, compiler->meanings[tensor_index].index);
  const cpixels_network_vector shape = cpixels_network_items(file, tensor, 0, 4);
  const int64_t type = cpixels_network_number(file, tensor, 1, 1, FLOAT32);
  const uint32_t buffer = (uint32_t)cpixels_network_number(file, tensor, 2, 4, 0);
  constant.item_size = type == FLOAT16 ? 2 : 4;
  const cpixels_network_vector bytes =
      cpixels_network_items(file, cpixels_network_item(file, compiler->buffers, buffer), 0, 1);
  constant.items = (cpixels_network_vector){bytes.items, bytes.count / constant.item_size};
  read_sparsity(compiler, tensor, &constant);
  if (shape.count == 0 || shape.count > 4 || bytes.count % constant.item_size != 0) {
    fail(compiler, "a constant has no shape of one to four sides");
    return constant;
  }
  for (uint32_t i = 0; i < shape.count; i++) {
    const uint32_t side = cpixels_network_integer(shape.items + 4 * i, 4);
    constant.shape[4 - shape.count + i] = side;
    if (side == 0 || side > CPIXELS_NETWORK_MAX_WEIGHTS || constant.total > CPIXELS_NETWORK_MAX_WEIGHTS / side) {
      fail(compiler, "a constant has more than 1048576 numbers");
      return constant;
    }
    constant.total *= side;
  }
  if (constant.starts.count == 0 && constant.items.count != constant.total) {
    fail(compiler, "a constant has not as many numbers as its shape");
  }
  return constant;
}

static float float_at(const constant *constant, uint32_t index) {
  const uint8_t *item = constant->items.items + (size_t)index * constant->item_size;
  if (constant->item_size == 2) {
    return cpixels_network_half(item);
  }
  const uint32_t bits = cpixels_network_integer(item, 4);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Copies a constant of `rows` times `columns` floats without gaps, column by column.
static const float *copy_floats(compiler *compiler, uint32_t tensor_index, uint32_t rows, uint32_t columns) {
  const uint32_t count = rows * columns;
  const constant constant = read_constant(compiler, tensor_index);
  if (has_failed(compiler) || constant.starts.count > 0 || constant.total != count ||
      count > CPIXELS_NETWORK_MAX_WEIGHTS - compiler->number_count) {
    fail(compiler, "a constant has another number of numbers than its operator");
    return NULL;
  }
  float *copy = compiler->network->numbers + compiler->number_count;
  compiler->number_count += count;
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = float_at(&constant, i % rows * columns + i / rows);
  }
  return copy;
}

// MARK: Weights

static void add_weight(compiler *compiler, uint32_t channel, float factor) {
  if (compiler->weight_count == CPIXELS_NETWORK_MAX_WEIGHTS) {
    fail(compiler, "it has more than 1048576 weights");
  } else if (factor != 0) {
    compiler->network->weights[compiler->weight_count++] = (cpixels_network_weight){channel, factor};
  }
}

/// Adds the weights of one channel of the output.
static void add_row(compiler *compiler, const constant *constant, uint32_t row, uint32_t columns) {
  if (constant->starts.count == 0) {
    for (uint32_t i = 0; i < columns; i++) {
      add_weight(compiler, i, float_at(constant, row * columns + i));
    }
    return;
  }
  const uint32_t size = constant->start_size;
  const uint32_t start = cpixels_network_integer(constant->starts.items + (size_t)size * row, size);
  const uint32_t end = cpixels_network_integer(constant->starts.items + (size_t)size * (row + 1), size);
  if (start > end || end > constant->items.count || end > constant->channels.count) {
    fail(compiler, "a row of weights is longer than all of them");
    return;
  }
  for (uint32_t i = start; i < end && !has_failed(compiler); i++) {
    const uint32_t channel =
        cpixels_network_integer(constant->channels.items + (size_t)i * constant->channel_size, constant->channel_size);
    if (channel >= columns) {
      fail(compiler, "a weight is for a channel that does not exist");
      return;
    }
    add_weight(compiler, channel, float_at(constant, i));
  }
}

/// Adds the weights of a layer. Returns the number of channels of its output.
static uint32_t add_weights(compiler *compiler, cpixels_network_layer *layer, const operation *operation) {
  const constant constant = read_constant(compiler, operation->inputs[1]);
  const uint32_t rows = constant.shape[0];
  const uint32_t columns = layer->columns;
  if (!has_failed(compiler) &&
      (rows > CPIXELS_NETWORK_MAX_CHANNELS || constant.total != rows * columns ||
       (constant.starts.count > 0 && (constant.starts.count != rows + 1 || constant.shape[3] != columns)))) {
    fail(compiler, "weights have another shape than what they are applied to");
  }
  uint32_t *starts = compiler->network->starts + compiler->start_count;
  layer->starts = starts;
  layer->weights = compiler->network->weights;
  for (uint32_t row = 0; row < rows && !has_failed(compiler); row++) {
    starts[row] = compiler->weight_count;
    add_row(compiler, &constant, row, columns);
    starts[row + 1] = compiler->weight_count;
  }
  if (!has_failed(compiler)) {
    compiler->start_count += rows + 1;
  }
  layer->bias = copy_floats(compiler, operation->inputs[2], 1, rows);
  return rows;
}

// MARK: Layers

static meaning *meaning_of(compiler *compiler, uint32_t tensor) {
  return tensor < MAX_TENSORS && tensor < compiler->tensors.count ? &compiler->meanings[tensor] : &compiler->nothing;
}

static const cpixels_network_value *value_of(const compiler *compiler, const meaning *meaning) {
  return &compiler->network->values[meaning->kind == NOTHING || meaning->kind == CONSTANT ? 0 : meaning->index];
}

static void mean(compiler *compiler, uint32_t tensor, meaning new) {
  if (tensor >= MAX_TENSORS || tensor >= compiler->tensors.count || compiler->meanings[tensor].kind != NOTHING) {
    fail(compiler, "a result is computed twice, or is none");
    return;
  }
  compiler->meanings[tensor] = new;
}

/// Adds a layer whose result is a new value.
static cpixels_network_layer *add_layer(compiler *compiler, cpixels_network_layer layer) {
  cpixels_network *network = compiler->network;
  if (network->layer_count == CPIXELS_NETWORK_MAX_LAYERS) {
    fail(compiler, "it has more than 128 layers");
    return NULL;
  }
  layer.output = (uint16_t)network->value_count;
  network->layers[network->layer_count] = layer;
  network->values[network->value_count++].writer = (uint16_t)network->layer_count;
  return &network->layers[network->layer_count++];
}

static void set_shape(compiler *compiler, uint16_t value, uint32_t channel_count, int level) {
  if (channel_count == 0 || channel_count > CPIXELS_NETWORK_MAX_CHANNELS || level < 1 ||
      level > CPIXELS_NETWORK_MAX_LEVEL) {
    fail(compiler, "a layer has more than 512 channels, or more than five times half the size");
    return;
  }
  compiler->network->values[value].channel_count = (uint16_t)channel_count;
  compiler->network->values[value].level = (uint8_t)level;
}

/// Sets the taps of a layer from its input.
static void set_taps(compiler *compiler, cpixels_network_layer *layer, const meaning *tapped) {
  layer->step = tapped->step;
  layer->taps = copy_floats(compiler, tapped->taps, CPIXELS_NETWORK_TAPS, layer->columns);
  layer->tap_bias = copy_floats(compiler, tapped->bias, 1, layer->columns);
}

/// Reads the activation of an operator: whether negative results become 0.
static bool read_activation(compiler *compiler, const operation *operation, uint32_t field) {
  const int64_t activation = option(compiler, operation, field, 1, 0);
  if (activation > 1) {
    fail(compiler, "it has another activation than ReLU");
  }
  return activation == 1;
}

static void add_convolution(compiler *compiler, const operation *operation) {
  const meaning *input = meaning_of(compiler, operation->inputs[0]);
  const cpixels_network_value *value = value_of(compiler, input);
  const uint32_t step = (uint32_t)option(compiler, operation, 1, 4, 0);
  const bool is_stem = input->kind == PADDED && input->index == 0 && step == 2;
  const bool is_undilated = option(compiler, operation, 4, 4, 1) == 1 && option(compiler, operation, 5, 4, 1) == 1;
  if (!(is_stem || ((input->kind == VALUE || input->kind == TAPPED) && input->index != 0 && step == 1)) ||
      option(compiler, operation, 2, 4, 0) != step || !is_undilated || operation->input_count != 3 ||
      (is_stem && option(compiler, operation, 0, 1, 0) != VALID_PADDING)) {
    fail(compiler, "a convolution is neither one of 3x3 pixels of the image nor one of single pixels");
    return;
  }
  cpixels_network_layer *layer = add_layer(
      compiler, (cpixels_network_layer){
                    .kind = is_stem ? CPIXELS_NETWORK_STEM : CPIXELS_NETWORK_POINTS,
                    .input = (uint16_t)input->index,
                    .addend = CPIXELS_NETWORK_NONE,
                    .columns = is_stem ? 3 * CPIXELS_NETWORK_TAPS : value->channel_count,
                    .clips = read_activation(compiler, operation, 3)});
  if (layer == NULL) {
    return;
  }
  if (input->kind == TAPPED) {
    set_taps(compiler, layer, input);
  }
  const uint32_t channel_count = add_weights(compiler, layer, operation);
  set_shape(compiler, layer->output, channel_count, value->level + (is_stem || layer->step == 2));
  mean(compiler, operation->output, (meaning){VALUE, .index = layer->output});
}

static void add_taps(compiler *compiler, const operation *operation) {
  const meaning *input = meaning_of(compiler, operation->inputs[0]);
  const uint32_t step = (uint32_t)option(compiler, operation, 1, 4, 0);
  if (input->kind != PADDED || input->index == 0 || (step != 1 && step != 2) || operation->input_count != 3 ||
      option(compiler, operation, 2, 4, 0) != step || option(compiler, operation, 0, 1, 0) != VALID_PADDING ||
      option(compiler, operation, 3, 4, 0) != 1 || read_activation(compiler, operation, 4) ||
      option(compiler, operation, 5, 4, 1) != 1 || option(compiler, operation, 6, 4, 1) != 1) {
    fail(compiler, "a convolution of single channels is not one of 3x3 pixels with a border");
    return;
  }
  mean(
      compiler, operation->output,
      (meaning){
          TAPPED, .index = input->index, .step = step, .taps = operation->inputs[1], .bias = operation->inputs[2]});
}

/// Adds a value to the result of the last layer, which is used nowhere else.
static void add_to_last(compiler *compiler, const operation *operation, uint32_t last, uint32_t other) {
  cpixels_network *network = compiler->network;
  meaning *result = meaning_of(compiler, operation->inputs[last]);
  const meaning *addend = meaning_of(compiler, operation->inputs[other]);
  cpixels_network_layer *layer = &network->layers[network->layer_count - 1];
  const cpixels_network_value *a = value_of(compiler, result);
  const cpixels_network_value *b = value_of(compiler, addend);
  if (layer->kind != CPIXELS_NETWORK_POINTS || layer->addend != CPIXELS_NETWORK_NONE || layer->clips ||
      a->channel_count != b->channel_count || a->level != b->level || addend->index == result->index) {
    fail(compiler, "a sum is not of a convolution and a result with its shape");
    return;
  }
  layer->addend = (uint16_t)addend->index;
  layer->clips = read_activation(compiler, operation, 0);
  *result = (meaning){.kind = NOTHING};
  for (uint32_t i = 0; i < MAX_TENSORS; i++) {
    if (compiler->meanings[i].kind > CONSTANT && compiler->meanings[i].index == layer->output) {
      fail(compiler, "a result is used before it is added to another one");
    }
  }
  mean(compiler, operation->output, (meaning){VALUE, .index = layer->output});
}

static void add_upsampling(compiler *compiler, const operation *operation, uint32_t small, uint32_t other) {
  const meaning *input = meaning_of(compiler, operation->inputs[small]);
  const meaning *addend = meaning_of(compiler, operation->inputs[other]);
  const cpixels_network_value *from = value_of(compiler, input);
  const cpixels_network_value *to = value_of(compiler, addend);
  if (addend->kind != VALUE || addend->index == 0 || from->channel_count != to->channel_count ||
      from->level != to->level + 1 || read_activation(compiler, operation, 0)) {
    fail(compiler, "a sum is not of an enlarged result and one with its shape");
    return;
  }
  cpixels_network_layer *layer = add_layer(
      compiler,
      (cpixels_network_layer){
          .kind = CPIXELS_NETWORK_UPSAMPLING, .input = (uint16_t)input->index, .addend = (uint16_t)addend->index});
  if (layer != NULL) {
    set_shape(compiler, layer->output, to->channel_count, to->level);
    mean(compiler, operation->output, (meaning){VALUE, .index = layer->output});
  }
}

static void add_sum(compiler *compiler, const operation *operation) {
  const meaning *inputs[2] = {meaning_of(compiler, operation->inputs[0]), meaning_of(compiler, operation->inputs[1])};
  const uint32_t newest = compiler->network->value_count - 1;
  for (uint32_t i = 0; i < 2 && operation->input_count == 2; i++) {
    if (inputs[i]->kind == UPSAMPLED) {
      add_upsampling(compiler, operation, i, 1 - i);
      return;
    }
    if (inputs[i]->kind == VALUE && inputs[i]->index == newest && newest > 0 && inputs[1 - i]->kind == VALUE &&
        inputs[1 - i]->index > 0) {
      add_to_last(compiler, operation, i, 1 - i);
      return;
    }
  }
  fail(compiler, "a sum is not of two results, one of them the latest");
}

static void add_border(compiler *compiler, const operation *operation) {
  static const uint8_t one_pixel[8] = {0, 0, 1, 1, 1, 1, 0, 0};
  const meaning *input = meaning_of(compiler, operation->inputs[0]);
  const constant border = read_constant(compiler, operation->inputs[1]);
  bool is_known = !has_failed(compiler) && input->kind == VALUE && border.item_size == 4 && border.total == 8 &&
                  border.starts.count == 0;
  for (uint32_t i = 0; i < 8 && is_known; i++) {
    is_known = cpixels_network_integer(border.items.items + 4 * (size_t)i, 4) == one_pixel[i];
  }
  if (!is_known) {
    fail(compiler, "a border is not one pixel wide");
    return;
  }
  mean(compiler, operation->output, (meaning){PADDED, .index = input->index});
}

static void add_split(compiler *compiler, const operation *operation) {
  const meaning input = *meaning_of(compiler, operation->inputs[0]);
  uint32_t index = input.index;
  if (input.kind == TAPPED) {
    const cpixels_network_value *value = &compiler->network->values[index];
    cpixels_network_layer *layer = add_layer(
        compiler, (cpixels_network_layer){
                      .kind = CPIXELS_NETWORK_DEPTHWISE,
                      .input = (uint16_t)index,
                      .addend = CPIXELS_NETWORK_NONE,
                      .columns = value->channel_count});
    if (layer == NULL) {
      return;
    }
    set_taps(compiler, layer, &input);
    set_shape(compiler, layer->output, value->channel_count, value->level + (layer->step == 2));
    index = layer->output;
  }
  if ((input.kind != VALUE && input.kind != TAPPED) || index == 0 || option(compiler, operation, 0, 4, 0) != 2) {
    fail(compiler, "channels are not made four pixels");
  }
  mean(compiler, operation->output, (meaning){SPLIT, .index = index});
}

static void add_enlarged(compiler *compiler, const operation *operation) {
  const meaning *input = meaning_of(compiler, operation->inputs[0]);
  if (input->kind != VALUE || input->index == 0 || value_of(compiler, input)->level < 2 ||
      option(compiler, operation, 2, 1, 0) != 0 || option(compiler, operation, 3, 1, 0) != 1) {
    fail(compiler, "an interpolation is not to twice the size, between the centers of pixels");
  }
  mean(compiler, operation->output, (meaning){UPSAMPLED, .index = input->index});
}

/// Lets the output of an operator mean what its input means.
static void pass(compiler *compiler, const operation *operation, meaning_kind kind) {
  const meaning input = *meaning_of(compiler, operation->inputs[0]);
  if (input.kind != kind) {
    fail(compiler, "numbers are unpacked, or a shape is changed, in an unknown place");
  }
  mean(compiler, operation->output, input);
}

static void add_operation(compiler *compiler, int64_t code, const operation *operation) {
  switch (code) {
  case ADD:
    add_sum(compiler, operation);
    break;
  case CONV_2D:
    add_convolution(compiler, operation);
    break;
  case DEPTHWISE_CONV_2D:
    add_taps(compiler, operation);
    break;
  case DEPTH_TO_SPACE:
    add_split(compiler, operation);
    break;
  case DEQUANTIZE:
  case DENSIFY:
    pass(compiler, operation, CONSTANT);
    break;
  case RESHAPE:
    pass(compiler, operation, SPLIT);
    break;
  case RESIZE_BILINEAR:
    add_enlarged(compiler, operation);
    break;
  case PAD:
    add_border(compiler, operation);
    break;
  default:
    fail(compiler, "it has an operator that is not supported");
  }
}

// MARK: The network

/// Notes which tensors are constants: those with bytes of their own.
static void note_constants(compiler *compiler) {
  cpixels_network_file *file = &compiler->file;
  for (uint32_t i = 0; i < compiler->tensors.count && !has_failed(compiler); i++) {
    const cpixels_network_table tensor = cpixels_network_item(file, compiler->tensors, i);
    const uint32_t buffer = (uint32_t)cpixels_network_number(file, tensor, 2, 4, 0);
    if (buffer != 0 &&
        cpixels_network_items(file, cpixels_network_item(file, compiler->buffers, buffer), 0, 1).count > 0) {
      compiler->meanings[i] = (meaning){CONSTANT, .index = i};
    }
  }
}

static void add_operations(compiler *compiler, cpixels_network_vector operators, cpixels_network_vector codes) {
  cpixels_network_file *file = &compiler->file;
  for (uint32_t i = 0; i < operators.count && !has_failed(compiler); i++) {
    const cpixels_network_table table = cpixels_network_item(file, operators, i);
    const uint32_t index = (uint32_t)cpixels_network_number(file, table, 0, 4, 0);
    const cpixels_network_table code = cpixels_network_item(file, codes, index);
    const int64_t old_number = cpixels_network_number(file, code, 0, 1, 0);
    const int64_t number = cpixels_network_number(file, code, 3, 4, 0);
    const cpixels_network_vector inputs = cpixels_network_items(file, table, 1, 4);
    const cpixels_network_vector outputs = cpixels_network_items(file, table, 2, 4);
    operation operation = {.input_count = inputs.count, .options = cpixels_network_subtable(file, table, 4)};
    if (inputs.count == 0 || inputs.count > 3 || outputs.count != 1) {
      fail(compiler, "an operator does not have one to three inputs and one output");
      return;
    }
    for (uint32_t k = 0; k < 3; k++) {
      operation.inputs[k] = k < inputs.count ? cpixels_network_integer(inputs.items + 4 * (size_t)k, 4) : UINT32_MAX;
    }
    operation.output = cpixels_network_integer(outputs.items, 4);
    add_operation(compiler, number > old_number ? number : old_number, &operation);
  }
}

/// Finds the scores and boxes among the outputs.
static void note_outputs(compiler *compiler, cpixels_network_vector outputs) {
  cpixels_network *network = compiler->network;
  for (uint32_t i = 0; i < outputs.count && i < 2; i++) {
    const meaning *output = meaning_of(compiler, cpixels_network_integer(outputs.items + 4 * (size_t)i, 4));
    const cpixels_network_value *value = value_of(compiler, output);
    if (output->kind != SPLIT || value->level != 3) {
      continue;
    }
    if (value->channel_count == 4) {
      network->scores = (uint16_t)output->index;
    } else if (value->channel_count == 4 * CPIXELS_NETWORK_BOX_VALUES) {
      network->boxes = (uint16_t)output->index;
    }
  }
  if (outputs.count != 2 || network->scores == 0 || network->boxes == 0) {
    fail(compiler, "its results are not scores and boxes of faces, four pixels apart");
  }
}

static void note_readers(cpixels_network *network) {
  for (uint32_t i = 0; i < network->value_count; i++) {
    network->values[i].reader = network->values[i].writer;
  }
  for (uint32_t i = 0; i < network->layer_count; i++) {
    const cpixels_network_layer *layer = &network->layers[i];
    network->values[layer->input].reader = (uint16_t)i;
    if (layer->addend != CPIXELS_NETWORK_NONE) {
      network->values[layer->addend].reader = (uint16_t)i;
    }
  }
  network->values[network->scores].reader = network->values[network->boxes].reader = (uint16_t)network->layer_count;
}

static void compile(compiler *compiler) {
  cpixels_network_file *file = &compiler->file;
  cpixels_network *network = compiler->network;
  const cpixels_network_table model = cpixels_network_root(file);
  const cpixels_network_vector codes = cpixels_network_items(file, model, 1, 4);
  const cpixels_network_vector graphs = cpixels_network_items(file, model, 2, 4);
  compiler->buffers = cpixels_network_items(file, model, 4, 4);
  if (graphs.count != 1) {
    fail(compiler, "it is not one graph");
    return;
  }
  const cpixels_network_table graph = cpixels_network_item(file, graphs, 0);
  compiler->tensors = cpixels_network_items(file, graph, 0, 4);
  const cpixels_network_vector inputs = cpixels_network_items(file, graph, 1, 4);
  const cpixels_network_vector outputs = cpixels_network_items(file, graph, 2, 4);
  if (compiler->tensors.count > MAX_TENSORS || inputs.count != 1) {
    fail(compiler, "it has more than 1024 tensors, or not one input");
    return;
  }
  note_constants(compiler);
  network->value_count = 1;
  network->values[0] = (cpixels_network_value){.channel_count = 3};
  mean(compiler, cpixels_network_integer(inputs.items, 4), (meaning){VALUE, .index = 0});
  add_operations(compiler, cpixels_network_items(file, graph, 3, 4), codes);
  note_outputs(compiler, outputs);
  note_readers(network);
}

bool cpixels_network_is_file(const uint8_t *bytes, size_t byte_count) {
  return byte_count >= 8 && memcmp(bytes + 4, "TFL3", 4) == 0;
}

cpixels_network *cpixels_network_create(const uint8_t *bytes, size_t byte_count, const char **error) {
  compiler *compiler = calloc(1, sizeof *compiler);
  cpixels_network *network = calloc(1, sizeof *network);
  if (compiler != NULL && network != NULL) {
    compiler->file = (cpixels_network_file){.bytes = bytes, .byte_count = byte_count};
    compiler->network = network;
    network->identity = cpixels_identity_of(bytes, byte_count);
    // Only what is written becomes memory.
    network->numbers = malloc(CPIXELS_NETWORK_MAX_WEIGHTS * sizeof *network->numbers);
    network->weights = malloc(CPIXELS_NETWORK_MAX_WEIGHTS * sizeof *network->weights);
    network->starts = malloc(CPIXELS_NETWORK_MAX_LAYERS * (CPIXELS_NETWORK_MAX_CHANNELS + 1) * sizeof *network->starts);
  }
  if (network == NULL || compiler == NULL || network->numbers == NULL || network->weights == NULL ||
      network->starts == NULL) {
    *error = "there is no memory for it";
  } else {
    compile(compiler);
    *error = compiler->file.error;
  }
  free(compiler);
  if (*error != NULL) {
    cpixels_network_destroy(network);
    return NULL;
  }
  return network;
}

void cpixels_network_destroy(cpixels_network *network) {
  if (network != NULL) {
    free(network->numbers);
    free(network->weights);
    free(network->starts);
    free(network);
  }
}

uint64_t cpixels_network_identity(const cpixels_network *network) {
  return network->identity;
}

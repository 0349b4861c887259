// Cascades of Haar features, as OpenCV stores them in XML, and its package of data contains them.
//
// Of the file, only these elements count, in their order: `featureType`, `width` and `height` of a window; for each
// stage `stageThreshold`, and for each of its trees `internalNodes` (below, above, feature, threshold of each node) and
// `leafValues`; for each feature `rects` with up to three rectangles (x, y, width, height, weight), and `tilted`.

#include "faces.h"
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_WINDOW_SIDE = 64,
  MIN_WINDOW_SIDE = 8,
  MAX_STAGES = 256,
  MAX_ITEMS = 1 << 16,
  MAX_NUMBERS = 8, ///< Of one element.
};

/// A rectangle as the file has it.
typedef struct rectangle {
  double x, y, width, height, weight;
} rectangle;

typedef struct feature {
  rectangle rectangles[3];
  uint32_t count;
} feature;

/// The indexes of the features of a tree's nodes.
typedef struct tree_features {
  uint32_t indexes[2];
} tree_features;

/// An array that grows.
typedef struct list {
  void *items;
  uint32_t count;
  uint32_t capacity;
} list;

typedef struct parser {
  const char *next;
  const char *end;
  const char *error; ///< NULL as long as all is well.
  cpixels_cascade *cascade;
  list trees;
  list tree_features; ///< The indexes of the features of each tree's nodes.
  list stages;
  list features;
  bool is_haar;
  bool lacks_leaves; ///< The last tree has no leaves yet.
} parser;

static void fail(parser *parser, const char *message) {
  if (parser->error == NULL) {
    parser->error = message;
  }
}

/// Returns room for one more item, which is zero; NULL after an error.
static void *append(parser *parser, list *list, size_t size) {
  if (list->count == MAX_ITEMS) {
    fail(parser, "it has more than 65536 trees or features");
  }
  if (parser->error != NULL) {
    return NULL;
  }
  if (list->count == list->capacity) {
    const uint32_t capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
    void *items = realloc(list->items, capacity * size);
    if (items == NULL) {
      fail(parser, "there is no memory for it");
      return NULL;
    }
    list->items = items;
    list->capacity = capacity;
  }
  void *item = (char *)list->items + list->count * size;
  memset(item, 0, size);
  list->count++;
  return item;
}

// MARK: Text

static bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Reads a decimal number such as `-1.5e-03`. Unlike strtod it depends on no locale, and ends with the text.
static bool read_number(const char **next, const char *end, double *number) {
  const char *at = *next;
  const bool is_negative = at < end && *at == '-';
  at += is_negative || (at < end && *at == '+');
  double value = 0;
  int exponent = 0;
  bool has_digits = false;
  bool is_fraction = false;
  for (; at < end && (is_digit(*at) || (*at == '.' && !is_fraction)); at++) {
    if (*at == '.') {
      is_fraction = true;
      continue;
    }
    has_digits = true;
    value = value < 1e17 ? 10 * value + (*at - '0') : value;
    exponent += value < 1e17 ? -is_fraction : !is_fraction;
  }
  if (!has_digits) {
    return false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    const bool is_reduced = at < end && *at == '-';
    at += is_reduced || (at < end && *at == '+');
    int written = 0;
    for (; at < end && is_digit(*at); at++) {
      written = written < 1000 ? 10 * written + (*at - '0') : written;
    }
    exponent += is_reduced ? -written : written;
  }
  for (; exponent > 0 && value < 1e30; exponent--) {
    value *= 10;
  }
  for (; exponent < 0 && value > 1e-30; exponent++) {
    value /= 10;
  }
  if (value >= 1e30 || (at < end && !is_space(*at))) {
    return false;
  }
  *number = is_negative ? -value : value;
  *next = at;
  return true;
}

/// Reads the numbers of an element, up to its end.
static size_t read_numbers(parser *parser, const char *text, const char *end, double numbers[MAX_NUMBERS]) {
  size_t count = 0;
  for (;;) {
    while (text < end && is_space(*text)) {
      text++;
    }
    if (text == end || parser->error != NULL) {
      return count;
    }
    if (count == MAX_NUMBERS || !read_number(&text, end, &numbers[count])) {
      fail(parser, "an element has too many numbers, or one that cannot be read");
      return 0;
    }
    count++;
  }
}

static double read_single(parser *parser, const char *text, const char *end) {
  double numbers[MAX_NUMBERS];
  if (read_numbers(parser, text, end, numbers) != 1) {
    fail(parser, "an element does not have one number");
    return 0;
  }
  return numbers[0];
}

// MARK: Elements

static bool is_whole(double number, double minimum, double maximum) {
  return number >= minimum && number <= maximum && number == (double)(int64_t)number;
}

static uint32_t read_side(parser *parser, const char *text, const char *end) {
  const double side = read_single(parser, text, end);
  if (parser->features.count > 0) { // which were compared with the sides that they follow
    fail(parser, "its window follows its features");
  }
  if (!is_whole(side, MIN_WINDOW_SIDE, MAX_WINDOW_SIDE)) {
    fail(parser, "the sides of its window are not 8 to 64");
    return 0;
  }
  return (uint32_t)side;
}

static void add_stage(parser *parser, const char *text, const char *end) {
  const double threshold = read_single(parser, text, end);
  if (parser->stages.count == MAX_STAGES) {
    fail(parser, "it has more than 256 stages");
  }
  cpixels_cascade_stage *stage = append(parser, &parser->stages, sizeof *stage);
  if (stage != NULL) {
    stage->first_tree = parser->trees.count;
    // Sums are rounded.
    stage->threshold = (float)(threshold - 1e-5);
  }
}

static void add_tree(parser *parser, const char *text, const char *end) {
  double numbers[MAX_NUMBERS];
  const size_t count = read_numbers(parser, text, end, numbers);
  const double *n = numbers;
  const bool is_single = count == 4 && n[0] == 0 && n[1] == -1;
  const bool is_double =
      count == 8 && ((n[0] == 1 && n[1] == 0) || (n[0] == 0 && n[1] == 1)) && n[4] == -1 && n[5] == -2;
  if (parser->stages.count == 0 || parser->lacks_leaves || !(is_single || is_double)) {
    fail(parser, "a tree is out of place, or does not have one or two nodes in their usual order");
    return;
  }
  cpixels_cascade_tree *tree = append(parser, &parser->trees, sizeof *tree);
  tree_features *features = append(parser, &parser->tree_features, sizeof *features);
  if (tree == NULL || features == NULL) {
    return;
  }
  tree->node_count = (uint32_t)(count / 4);
  tree->follows_below = is_double && n[0] == 1;
  for (uint32_t i = 0; i < tree->node_count; i++) {
    if (!is_whole(n[4 * i + 2], 0, MAX_ITEMS - 1)) {
      fail(parser, "a node has no feature");
      return;
    }
    features->indexes[i] = (uint32_t)n[4 * i + 2];
    tree->nodes[i].threshold = (float)n[4 * i + 3];
  }
  ((cpixels_cascade_stage *)parser->stages.items)[parser->stages.count - 1].tree_count++;
  parser->lacks_leaves = true;
}

static void add_leaves(parser *parser, const char *text, const char *end) {
  double numbers[MAX_NUMBERS];
  const size_t count = read_numbers(parser, text, end, numbers);
  cpixels_cascade_tree *tree =
      parser->lacks_leaves ? (cpixels_cascade_tree *)parser->trees.items + parser->trees.count - 1 : NULL;
  if (tree == NULL || count != tree->node_count + 1) {
    fail(parser, "leaves are out of place, or not one more than nodes");
    return;
  }
  parser->lacks_leaves = false;
  tree->leaf = (float)numbers[0];
  tree->below = (float)numbers[count - 2];
  tree->above = (float)numbers[count - 1];
}

static void add_rectangle(parser *parser, const char *text, const char *end) {
  double numbers[MAX_NUMBERS];
  const size_t count = read_numbers(parser, text, end, numbers);
  feature *feature = (struct feature *)parser->features.items + parser->features.count - 1;
  const double width = parser->cascade->width;
  const double height = parser->cascade->height;
  const double *n = numbers;
  if (count != 5 || feature->count == 3 || !is_whole(n[0], 0, width - 1) || !is_whole(n[1], 0, height - 1) ||
      !is_whole(n[2], 1, width - n[0]) || !is_whole(n[3], 1, height - n[1]) || !(n[4] >= -1000 && n[4] <= 1000)) {
    fail(parser, "a feature does not have two or three weighted rectangles in the window");
    return;
  }
  feature->rectangles[feature->count++] = (rectangle){n[0], n[1], n[2], n[3], n[4]};
}

/// Whether an element's name, the bytes before `end`, is `name`.
static bool is_named(const char *text, const char *end, const char *name) {
  const size_t length = strlen(name);
  return (size_t)(end - text) == length && memcmp(text, name, length) == 0;
}

/// Reads the tag at `<`, and moves behind it. Returns false for a comment or declaration.
static bool read_tag(parser *parser, const char **name, const char **name_end) {
  const char *at = parser->next + 1;
  const bool is_comment = parser->end - at >= 3 && memcmp(at, "!--", 3) == 0;
  const char *close = at;
  while (close < parser->end &&
         (*close != '>' || (is_comment && (close - at < 5 || memcmp(close - 2, "--", 2) != 0)))) {
    close++;
  }
  if (close == parser->end) {
    fail(parser, "it ends in a tag");
    parser->next = parser->end;
    return false;
  }
  parser->next = close + 1;
  *name = at;
  while (at < close && !is_space(*at)) {
    at++;
  }
  *name_end = at;
  return !is_comment && **name != '?' && **name != '!';
}

/// Handles the text of an element, or that before its first child.
static void handle(
    parser *parser, const char *name, const char *name_end, const char *text, const char *end, bool *in_rectangles) {
  if (is_named(name, name_end, "/rects")) {
    *in_rectangles = false;
  } else if (is_named(name, name_end, "rects")) {
    *in_rectangles = append(parser, &parser->features, sizeof(feature)) != NULL;
  } else if (*in_rectangles && is_named(name, name_end, "_")) {
    add_rectangle(parser, text, end);
  } else if (is_named(name, name_end, "featureType")) {
    parser->is_haar = is_named(text, end, "HAAR");
    if (!parser->is_haar) {
      fail(parser, "its features are not of the type HAAR");
    }
  } else if (is_named(name, name_end, "width")) {
    parser->cascade->width = read_side(parser, text, end);
  } else if (is_named(name, name_end, "height")) {
    parser->cascade->height = read_side(parser, text, end);
  } else if (is_named(name, name_end, "stageThreshold")) {
    add_stage(parser, text, end);
  } else if (is_named(name, name_end, "internalNodes")) {
    add_tree(parser, text, end);
  } else if (is_named(name, name_end, "leafValues")) {
    add_leaves(parser, text, end);
  } else if (is_named(name, name_end, "tilted") && read_single(parser, text, end) != 0) {
    fail(parser, "it has tilted features, which are not supported");
  }
}

static void parse(parser *parser) {
  bool in_rectangles = false;
  while (parser->error == NULL && parser->next < parser->end) {
    if (*parser->next != '<') {
      parser->next++;
      continue;
    }
    const char *name;
    const char *name_end;
    if (!read_tag(parser, &name, &name_end)) {
      continue;
    }
    const char *text = parser->next;
    const char *end = text;
    while (end < parser->end && *end != '<') {
      end++;
    }
    handle(parser, name, name_end, text, end, &in_rectangles);
  }
}

// MARK: The cascade

/// Gives a node the rectangles of its feature, as offsets in an integral image.
static void resolve(parser *parser, cpixels_cascade_node *node, uint32_t index) {
  const feature *feature = index < parser->features.count ? (struct feature *)parser->features.items + index : NULL;
  if (feature == NULL || feature->count < 2) {
    fail(parser, "a node has no feature of two or three rectangles");
    return;
  }
  node->part_count = feature->count;
  for (uint32_t i = 0; i < feature->count; i++) {
    const rectangle *from = &feature->rectangles[i];
    const int32_t first = (int32_t)from->y * CPIXELS_FACES_STRIDE + (int32_t)from->x;
    const int32_t rows = (int32_t)from->height * CPIXELS_FACES_STRIDE;
    const int32_t columns = (int32_t)from->width;
    node->parts[i] =
        (cpixels_cascade_part){first, first + columns, first + rows, first + rows + columns, (float)from->weight};
  }
}

static void complete(parser *parser) {
  if (!parser->is_haar || parser->cascade->width == 0 || parser->cascade->height == 0 || parser->stages.count == 0) {
    fail(parser, "it is not a cascade of OpenCV, an XML file with stages and features");
  }
  if (parser->lacks_leaves) {
    fail(parser, "a tree has no leaves");
  }
  for (uint32_t i = 0; i < parser->trees.count && parser->error == NULL; i++) {
    cpixels_cascade_tree *tree = (cpixels_cascade_tree *)parser->trees.items + i;
    for (uint32_t n = 0; n < tree->node_count; n++) {
      resolve(parser, &tree->nodes[n], ((tree_features *)parser->tree_features.items)[i].indexes[n]);
    }
  }
  for (uint32_t i = 0; i < parser->stages.count; i++) {
    if (((cpixels_cascade_stage *)parser->stages.items)[i].tree_count == 0) {
      fail(parser, "a stage has no trees");
    }
  }
}

cpixels_cascade *cpixels_cascade_create(const char *text, size_t byte_count, const char **error) {
  cpixels_cascade *cascade = calloc(1, sizeof *cascade);
  if (cascade == NULL) {
    *error = "there is no memory for it";
    return NULL;
  }
  parser parser = {.next = text, .end = text + byte_count, .cascade = cascade};
  parse(&parser);
  complete(&parser);
  free(parser.tree_features.items);
  free(parser.features.items);
  cascade->identity = cpixels_identity_of((const uint8_t *)text, byte_count);
  cascade->trees = parser.trees.items;
  cascade->stages = parser.stages.items;
  cascade->stage_count = parser.stages.count;
  if (parser.error != NULL) {
    cpixels_cascade_destroy(cascade);
    *error = parser.error;
    return NULL;
  }
  return cascade;
}

void cpixels_cascade_destroy(cpixels_cascade *cascade) {
  if (cascade != NULL) {
    free(cascade->trees);
    free(cascade->stages);
    free(cascade);
  }
}

uint64_t cpixels_cascade_identity(const cpixels_cascade *cascade) {
  return cascade->identity;
}

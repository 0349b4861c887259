// The tables of a TensorFlow Lite file, which is a FlatBuffer. Source: the FlatBuffers internals document.

#include "network.h"

#include <string.h>

void cpixels_network_fail(cpixels_network_file *file, const char *message) {
  if (file->error == NULL) {
    file->error = message;
  }
}

/// Whether `size` bytes follow a position.
static bool contains(const cpixels_network_file *file, size_t position, size_t size) {
  return position <= file->byte_count && size <= file->byte_count - position;
}

uint32_t cpixels_network_integer(const uint8_t *bytes, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; i++) {
    value |= (uint32_t)bytes[i] << 8 * i;
  }
  return value;
}

float cpixels_network_half(const uint8_t *bytes) {
  const uint32_t half = cpixels_network_integer(bytes, 2);
  const uint32_t exponent = half >> 10 & 31;
  const uint32_t fraction = half & 1023;
  float value = exponent == 0 ? (float)fraction / (1 << 24) : 0;
  if (exponent > 0) { // Infinity and NaN become large numbers.
    const uint32_t bits = (exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
  }
  return half >> 15 ? -value : value;
}

/// Returns the position that an offset points to; 0 after an error.
static size_t follow(cpixels_network_file *file, size_t position) {
  if (file->error == NULL && contains(file, position, 4)) {
    const uint32_t offset = cpixels_network_integer(file->bytes + position, 4);
    if (offset > 0 && contains(file, position + offset, 4)) {
      return position + offset;
    }
  }
  cpixels_network_fail(file, "an offset points outside the file");
  return 0;
}

/// Returns the position of a field of `size` bytes; 0 if it is absent.
static size_t find(cpixels_network_file *file, cpixels_network_table table, uint32_t field, size_t size) {
  if (table.position == 0 || file->error != NULL) {
    return 0;
  }
  const int64_t back = (int32_t)cpixels_network_integer(file->bytes + table.position, 4);
  const int64_t fields = (int64_t)table.position - back;
  if (fields < 0 || !contains(file, (size_t)fields, 4)) {
    cpixels_network_fail(file, "a table has no list of fields");
    return 0;
  }
  const uint8_t *list = file->bytes + fields;
  const uint32_t list_size = cpixels_network_integer(list, 2);
  if (!contains(file, (size_t)fields, list_size)) {
    cpixels_network_fail(file, "a table has no list of fields");
    return 0;
  }
  if (list_size < 6 + 2 * field) {
    return 0;
  }
  const uint32_t offset = cpixels_network_integer(list + 4 + 2 * field, 2);
  if (offset > 0 && !contains(file, table.position + offset, size)) {
    cpixels_network_fail(file, "a field lies outside the file");
    return 0;
  }
  return offset > 0 ? table.position + offset : 0;
}

cpixels_network_table cpixels_network_root(cpixels_network_file *file) {
  if (file->byte_count < 8 || memcmp(file->bytes + 4, "TFL3", 4) != 0) {
    cpixels_network_fail(file, "it is not a TensorFlow Lite file");
  }
  return (cpixels_network_table){follow(file, 0)};
}

int64_t cpixels_network_number(
    cpixels_network_file *file, cpixels_network_table table, uint32_t field, size_t size, int64_t otherwise) {
  const size_t position = find(file, table, field, size);
  if (position == 0) {
    return otherwise;
  }
  const uint32_t value = cpixels_network_integer(file->bytes + position, size);
  return size == 4 ? (int32_t)value : (int64_t)value;
}

cpixels_network_table cpixels_network_subtable(
    cpixels_network_file *file, cpixels_network_table table, uint32_t field) {
  const size_t position = find(file, table, field, 4);
  return (cpixels_network_table){position == 0 ? 0 : follow(file, position)};
}

cpixels_network_vector cpixels_network_items(
    cpixels_network_file *file, cpixels_network_table table, uint32_t field, size_t size) {
  const size_t start = cpixels_network_subtable(file, table, field).position;
  if (start == 0) {
    return (cpixels_network_vector){NULL, 0};
  }
  const uint32_t count = cpixels_network_integer(file->bytes + start, 4);
  if (!contains(file, start + 4, (uint64_t)count * size)) {
    cpixels_network_fail(file, "a list ends beyond the file");
    return (cpixels_network_vector){NULL, 0};
  }
  return (cpixels_network_vector){file->bytes + start + 4, count};
}

cpixels_network_table cpixels_network_item(cpixels_network_file *file, cpixels_network_vector vector, uint32_t index) {
  if (index >= vector.count) {
    cpixels_network_fail(file, "an index is larger than its list");
    return (cpixels_network_table){0};
  }
  return (cpixels_network_table){follow(file, (size_t)(vector.items - file->bytes) + 4 * (size_t)index)};
}

#include "bytes.h"

#include <string.h>

bool ccodecs_bytes_reserve(ccodecs_bytes *bytes, size_t extra, ccodecs_budget *budget) {
  if (bytes->capacity - bytes->first - bytes->count >= extra) {
    return true;
  }
  size_t needed;
  if (__builtin_add_overflow(bytes->count, extra, &needed)) {
    return false;
  }
  if (needed <= bytes->capacity) {
    memmove(bytes->block, ccodecs_bytes_start(bytes), bytes->count);
    bytes->first = 0;
    return true;
  }
  size_t capacity = bytes->capacity + bytes->capacity / 2;
  capacity = capacity < needed ? needed : capacity;
  uint8_t *block = ccodecs_allocate(budget, capacity);
  if (block == NULL) {
    return false;
  }
  if (bytes->count > 0) {
    memcpy(block, ccodecs_bytes_start(bytes), bytes->count);
  }
  ccodecs_free(budget, bytes->block);
  bytes->block = block;
  bytes->first = 0;
  bytes->capacity = capacity;
  return true;
}

bool ccodecs_bytes_append(ccodecs_bytes *bytes, const uint8_t *source, size_t count, ccodecs_budget *budget) {
  if (count == 0) {
    return true;
  }
  if (!ccodecs_bytes_reserve(bytes, count, budget)) {
    return false;
  }
  memcpy(ccodecs_bytes_start(bytes) + bytes->count, source, count);
  bytes->count += count;
  return true;
}

bool ccodecs_bytes_gather(ccodecs_bytes *bytes, ccodecs_input *input, size_t wanted, ccodecs_budget *budget) {
  const size_t missing = bytes->count < wanted ? wanted - bytes->count : 0;
  const size_t count = input->count < missing ? input->count : missing;
  if (!ccodecs_bytes_append(bytes, input->bytes, count, budget)) {
    return false;
  }
  ccodecs_input_advance(input, count);
  return true;
}

void ccodecs_bytes_take(ccodecs_bytes *bytes, size_t count) {
  bytes->first += count;
  bytes->count -= count;
  if (bytes->count == 0) {
    bytes->first = 0;
  }
}

void ccodecs_bytes_free(ccodecs_bytes *bytes, ccodecs_budget *budget) {
  ccodecs_free(budget, bytes->block);
  *bytes = (ccodecs_bytes){0};
}

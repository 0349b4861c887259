// Growing byte blocks, windows and unaligned reads. Private to CCodecs.

#pragma once

#include "ccodecs.h"

#include <string.h>

/// Returns from the calling function with the status of `call`, unless it is CCODECS_OK.
#define CCODECS_TRY(call)                                                                                              \
  do {                                                                                                                 \
    const ccodecs_status tried_status = (call);                                                                        \
    if (tried_status != CCODECS_OK) {                                                                                  \
      return tried_status;                                                                                             \
    }                                                                                                                  \
  } while (0)

/// A byte queue in one charged block: bytes are appended at the end and consumed from the front.
typedef struct ccodecs_bytes {
  uint8_t *block;
  size_t first;    ///< Offset of the first unconsumed byte.
  size_t count;    ///< Number of unconsumed bytes.
  size_t capacity; ///< Size of the block in bytes.
} ccodecs_bytes;

/// Returns a pointer to the first unconsumed byte.
static inline uint8_t *ccodecs_bytes_start(const ccodecs_bytes *bytes) {
  return bytes->block + bytes->first;
}

/// Makes room for `extra` bytes at the end. Moves the bytes to the front of the block, or grows the block by at least
/// half. Returns false if the budget is exhausted.
bool ccodecs_bytes_reserve(ccodecs_bytes *bytes, size_t extra, ccodecs_budget *budget);

/// Appends a copy of `count` bytes. Returns false if the budget is exhausted.
bool ccodecs_bytes_append(ccodecs_bytes *bytes, const uint8_t *source, size_t count, ccodecs_budget *budget);

/// Appends bytes from the window until there are `wanted`, and consumes them. Returns false if the budget is exhausted.
bool ccodecs_bytes_gather(ccodecs_bytes *bytes, ccodecs_input *input, size_t wanted, ccodecs_budget *budget);

/// Consumes `count` bytes from the front.
void ccodecs_bytes_take(ccodecs_bytes *bytes, size_t count);

/// Frees and refunds the block, and zeroes `bytes`.
void ccodecs_bytes_free(ccodecs_bytes *bytes, ccodecs_budget *budget);

/// Moves a window past `count` consumed bytes.
static inline void ccodecs_input_advance(ccodecs_input *input, size_t count) {
  input->bytes += count;
  input->count -= count;
}

/// Appends bytes from the window to the `*count` bytes in `token` until there are `wanted` bytes. Returns true once the
/// token is complete.
static inline bool ccodecs_input_collect(ccodecs_input *input, uint8_t *token, size_t *count, size_t wanted) {
  const size_t missing = *count < wanted ? wanted - *count : 0;
  const size_t taken = input->count < missing ? input->count : missing;
  if (taken > 0) {
    memcpy(token + *count, input->bytes, taken);
    ccodecs_input_advance(input, taken);
    *count += taken;
  }
  return *count >= wanted;
}

/// Skips up to `*left` bytes of the window and subtracts them from `*left`. Returns true once none is left.
static inline bool ccodecs_input_skip(ccodecs_input *input, uint64_t *left) {
  const size_t taken = input->count < *left ? input->count : (size_t)*left;
  ccodecs_input_advance(input, taken);
  *left -= taken;
  return *left == 0;
}

static inline uint32_t ccodecs_be32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t ccodecs_be64(const uint8_t *p) {
  return (uint64_t)ccodecs_be32(p) << 32 | ccodecs_be32(p + 4);
}

static inline uint32_t ccodecs_be16(const uint8_t *p) {
  return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t ccodecs_le32(const uint8_t *p) {
  return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint64_t ccodecs_le64(const uint8_t *p) {
  return (uint64_t)ccodecs_le32(p + 4) << 32 | ccodecs_le32(p);
}

static inline uint32_t ccodecs_le24(const uint8_t *p) {
  return (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint16_t ccodecs_le16(const uint8_t *p) {
  return (uint16_t)(p[1] << 8 | p[0]);
}

static inline void ccodecs_put_be32(uint8_t *p, uint32_t value) {
  p[0] = (uint8_t)(value >> 24);
  p[1] = (uint8_t)(value >> 16);
  p[2] = (uint8_t)(value >> 8);
  p[3] = (uint8_t)value;
}

static inline void ccodecs_put_be64(uint8_t *p, uint64_t value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  memcpy(p, &value, sizeof value);
}

static inline void ccodecs_put_le16(uint8_t *p, uint32_t value) {
  p[0] = (uint8_t)value;
  p[1] = (uint8_t)(value >> 8);
}

static inline void ccodecs_put_le24(uint8_t *p, uint32_t value) {
  ccodecs_put_le16(p, value);
  p[2] = (uint8_t)(value >> 16);
}

static inline void ccodecs_put_le32(uint8_t *p, uint32_t value) {
  ccodecs_put_le24(p, value);
  p[3] = (uint8_t)(value >> 24);
}

static inline void ccodecs_put_le64(uint8_t *p, uint64_t value) {
  ccodecs_put_le32(p, (uint32_t)value);
  ccodecs_put_le32(p + 4, (uint32_t)(value >> 32));
}

#include "gif_lzw.h"

#include <string.h>

enum { MAX_CODE_BITS = 12, MAX_CODES = 1 << MAX_CODE_BITS, BLOCK_BYTES = 255 };

static const uint32_t no_code = UINT32_MAX;

static void flush_block(gif_lzw *z) {
  if (z->block_count > 0) {
    z->block[0] = (uint8_t)z->block_count;
    z->has_failed |= !ccodecs_bytes_append(z->output, z->block, 1 + z->block_count, z->budget);
    z->block_count = 0;
  }
}

static void put_byte(gif_lzw *z, uint8_t byte) {
  z->block[1 + z->block_count++] = byte;
  if (z->block_count == BLOCK_BYTES) {
    flush_block(z);
  }
}

static void put_code(gif_lzw *z, uint32_t code) {
  z->bits |= (uint64_t)code << z->bit_count;
  for (z->bit_count += z->code_bits; z->bit_count >= 8; z->bit_count -= 8) {
    put_byte(z, (uint8_t)z->bits);
    z->bits >>= 8;
  }
}

/// Writes a clear code, and forgets all strings.
static void clear(gif_lzw *z) {
  put_code(z, 1u << z->least_bits);
  memset(z->strings, 0, sizeof z->strings);
  z->code_bits = z->least_bits + 1;
  z->next_code = (1u << z->least_bits) + 2;
}

void ccodecs_gif_lzw_begin(gif_lzw *z, uint32_t least_bits, ccodecs_bytes *output, ccodecs_budget *budget) {
  z->output = output;
  z->budget = budget;
  z->least_bits = least_bits;
  z->code_bits = least_bits + 1;
  z->prefix = no_code;
  z->bits = 0;
  z->bit_count = 0;
  z->block_count = 0;
  const uint8_t size = (uint8_t)least_bits;
  z->has_failed = !ccodecs_bytes_append(output, &size, 1, budget);
  clear(z);
}

/// Adds the string at a slot. The decoder adds it one code later, and widens its codes then.
static void add(gif_lzw *z, uint32_t slot, uint32_t key) {
  if (z->next_code == MAX_CODES) {
    clear(z);
    return;
  }
  z->strings[slot] = key << MAX_CODE_BITS | z->next_code;
  if (z->next_code == 1u << z->code_bits) {
    z->code_bits++;
  }
  z->next_code++;
}

void ccodecs_gif_lzw_write(gif_lzw *z, const uint8_t *indices, size_t count) {
  size_t i = 0;
  if (z->prefix == no_code && count > 0) {
    z->prefix = indices[i++];
  }
  uint32_t prefix = z->prefix;
  for (; i < count; i++) {
    const uint32_t key = prefix << 8 | indices[i];
    uint32_t slot = (key * 2654435761u) >> 19;
    uint32_t string = z->strings[slot];
    while (string != 0 && string >> MAX_CODE_BITS != key) {
      slot = (slot + 1) % GIF_LZW_SLOTS;
      string = z->strings[slot];
    }
    if (string != 0) {
      prefix = string % MAX_CODES;
      continue;
    }
    put_code(z, prefix);
    add(z, slot, key);
    prefix = indices[i];
  }
  z->prefix = prefix;
}

bool ccodecs_gif_lzw_end(gif_lzw *z) {
  if (z->prefix != no_code) {
    put_code(z, z->prefix);
    // The decoder adds a string for this code, after which its codes may be longer.
    if (z->next_code == 1u << z->code_bits && z->code_bits < MAX_CODE_BITS) {
      z->code_bits++;
    }
  }
  put_code(z, (1u << z->least_bits) + 1);
  if (z->bit_count > 0) {
    put_byte(z, (uint8_t)z->bits);
  }
  flush_block(z);
  const uint8_t end = 0;
  return ccodecs_bytes_append(z->output, &end, 1, z->budget) && !z->has_failed;
}

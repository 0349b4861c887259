// Keeps the tokens of a scan until its Huffman tables can be computed, and writes them.

#include "jpeg_encode.h"
#include "jpeg_encode_tokens.h"

/// A token is written in at most 32 bits, each byte of which may need another.
static const size_t max_token_bytes = 8;
/// Tokens between two checks of the room in the output.
enum { TOKENS_PER_RESERVE = 1024 };

// MARK: Values

#define SIZE_OF(m)                                                                                                     \
  ((m) < 1      ? 0                                                                                                    \
   : (m) < 2    ? 1                                                                                                    \
   : (m) < 4    ? 2                                                                                                    \
   : (m) < 8    ? 3                                                                                                    \
   : (m) < 16   ? 4                                                                                                    \
   : (m) < 32   ? 5                                                                                                    \
   : (m) < 64   ? 6                                                                                                    \
   : (m) < 128  ? 7                                                                                                    \
   : (m) < 256  ? 8                                                                                                    \
   : (m) < 512  ? 9                                                                                                    \
   : (m) < 1024 ? 10                                                                                                   \
                : 11)
#define MAGNITUDE(v) ((v) < 0 ? -(v) : (v))
#define TOKEN(v) (SIZE_OF(MAGNITUDE(v)) << 16 | (((v) < 0 ? (v)-1 : (v)) & ((1 << SIZE_OF(MAGNITUDE(v))) - 1)))
#define TOKENS4(v) TOKEN(v), TOKEN((v) + 1), TOKEN((v) + 2), TOKEN((v) + 3)
#define TOKENS16(v) TOKENS4(v), TOKENS4((v) + 4), TOKENS4((v) + 8), TOKENS4((v) + 12)
#define TOKENS64(v) TOKENS16(v), TOKENS16((v) + 16), TOKENS16((v) + 32), TOKENS16((v) + 48)
#define TOKENS256(v) TOKENS64(v), TOKENS64((v) + 64), TOKENS64((v) + 128), TOKENS64((v) + 192)

const uint32_t ccodecs_jpeg_value_tokens[2048] = {
    TOKENS256(-1024), TOKENS256(-768), TOKENS256(-512), TOKENS256(-256),
    TOKENS256(0),     TOKENS256(256),  TOKENS256(512),  TOKENS256(768),
};

// MARK: Bits

static uint8_t *put_byte(uint8_t *end, uint32_t byte) {
  *end++ = (uint8_t)byte;
  if ((byte & 0xFF) == 0xFF) {
    *end++ = 0;
  }
  return end;
}

/// Writes eight bytes, the highest first.
static inline uint8_t *put_word(uint8_t *end, uint64_t word) {
  if ((word & 0x8080808080808080 & ~(word + 0x0101010101010101)) == 0) {
    ccodecs_put_be64(end, word);
    return end + 8;
  }
  for (uint32_t shift = 64; shift > 0; shift -= 8) {
    end = put_byte(end, (uint32_t)(word >> (shift - 8)));
  }
  return end;
}

/// Writes `count` bits, fewer than 32.
static inline __attribute__((always_inline)) uint8_t *put_bits(
    jpeg_bit_writer *writer, uint8_t *end, uint64_t bits, uint32_t count) {
  writer->room -= (int32_t)count;
  if (writer->room > 0) {
    writer->bits = writer->bits << count | bits;
    return end;
  }
  // The word is full, and `excess` bits of the new ones are the first of the next.
  const uint32_t excess = (uint32_t)-writer->room;
  const uint64_t word = writer->bits << (count - excess) | bits >> excess;
  writer->bits = bits;
  writer->room += 64;
  return put_word(end, word);
}

/// Fills the last byte with ones.
static uint8_t *align(jpeg_bit_writer *writer, uint8_t *end) {
  const uint32_t count = (uint32_t)(64 - writer->room), missing = (8 - count % 8) % 8;
  const uint64_t bits = writer->bits << missing | ((1U << missing) - 1);
  for (uint32_t left = count + missing; left > 0; left -= 8) {
    end = put_byte(end, (uint32_t)(bits >> (left - 8)) & 0xFF);
  }
  writer->bits = 0;
  writer->room = 64;
  return end;
}

static bool reserve(jpeg_scan_writer *writer, size_t count) {
  if (!ccodecs_bytes_reserve(&writer->encoder->output, count, writer->encoder->budget)) {
    writer->has_failed = true;
  }
  return !writer->has_failed;
}

static uint8_t *output_end(const jpeg_scan_writer *writer) {
  return ccodecs_bytes_start(&writer->encoder->output) + writer->encoder->output.count;
}

static void set_output_end(jpeg_scan_writer *writer, const uint8_t *end) {
  writer->encoder->output.count = (size_t)(end - ccodecs_bytes_start(&writer->encoder->output));
}

/// Writes tokens, of which only those of a chunk with restart markers may be such.
static inline __attribute__((always_inline)) void put_tokens(
    jpeg_scan_writer *writer, const uint32_t *tokens, uint32_t count, bool has_restarts) {
  const uint64_t *entries = writer->entries;
  jpeg_bit_writer bits = writer->bits;
  uint8_t *end = output_end(writer);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t token = tokens[i];
    if (has_restarts && token >> 24 == JPEG_TOKEN_RESTART) {
      end = align(&bits, end);
      *end++ = 0xFF;
      *end++ = (uint8_t)(RST0 + (token >> 16 & 7));
      continue;
    }
    const uint64_t entry = entries[token >> 16];
    end = put_bits(&bits, end, entry >> 32 | (token & 0xFFFF), (uint32_t)entry);
  }
  writer->bits = bits;
  set_output_end(writer, end);
}

static bool write_chunk(jpeg_scan_writer *writer, const jpeg_token_chunk *chunk) {
  for (uint32_t first = 0; first < chunk->count; first += TOKENS_PER_RESERVE) {
    const uint32_t left = chunk->count - first, step = left < TOKENS_PER_RESERVE ? left : TOKENS_PER_RESERVE;
    if (!reserve(writer, step * max_token_bytes + 16)) {
      return false;
    }
    if (chunk->has_restarts) {
      put_tokens(writer, chunk->tokens + first, step, true);
    } else {
      put_tokens(writer, chunk->tokens + first, step, false);
    }
  }
  return true;
}

/// Gives back up to `count` of the bytes that are charged in advance.
static void release(jpeg_scan_writer *writer, size_t count) {
  const size_t released = count < writer->reserved ? count : writer->reserved;
  ccodecs_budget_refund(writer->encoder->budget, released);
  writer->reserved -= released;
}

// MARK: Tables

/// Writes the tables that the scan uses, and its header.
static bool write_tables(jpeg_scan_writer *writer) {
  if (!reserve(writer, JPEG_CODES * (19 + 256) + 4 + sizeof writer->header)) {
    return false;
  }
  uint8_t *end = output_end(writer);
  uint8_t *start = end;
  end += 4;
  for (uint32_t i = 0; i < JPEG_CODES; i++) {
    const jpeg_code *code = &writer->codes[i];
    if (code->symbol_count > 0) {
      *end++ = (uint8_t)(i / JPEG_CODE_AC << 4 | i % JPEG_CODE_AC);
      memcpy(end, code->counts + 1, 16);
      memcpy(end + 16, code->symbols, code->symbol_count);
      end += 16 + code->symbol_count;
    }
  }
  if (end == start + 4) {
    end = start;
  } else {
    const size_t length = (size_t)(end - start) - 2;
    start[0] = 0xFF;
    start[1] = DHT;
    start[2] = (uint8_t)(length >> 8);
    start[3] = (uint8_t)length;
  }
  memcpy(end, writer->header, writer->header_count);
  set_output_end(writer, end + writer->header_count);
  writer->has_tables = true;
  return true;
}

static bool build_tables(jpeg_scan_writer *writer) {
  for (uint32_t i = 0; i < JPEG_CODES; i++) {
    ccodecs_jpeg_code_build(&writer->codes[i], writer->entries + i * 256, writer->frequencies + i * 256);
  }
  for (uint32_t count = 1; count <= 16; count++) {
    writer->entries[JPEG_TOKEN_RAW * 256 + count] = count;
  }
  return write_tables(writer);
}

/// Gives every symbol that may still come a code, if its table is used at all.
static void allow_all_symbols(jpeg_scan_writer *writer) {
  for (uint32_t i = 0; i < JPEG_CODES; i++) {
    uint32_t used = 0;
    for (uint32_t symbol = 0; symbol < 256; symbol++) {
      used |= writer->frequencies[i * 256 + symbol];
    }
    const uint32_t sizes = i < JPEG_CODE_AC ? 12 : 11;
    for (uint32_t symbol = 0; used != 0 && symbol < (i < JPEG_CODE_AC ? 16U : 256U); symbol++) {
      // Bands end in progressive scans alone; others may have tables of at most 162 codes.
      const bool ends_band = i >= JPEG_CODE_AC && symbol % 16 == 0 && symbol != 0 && symbol != 0xF0;
      const bool is_possible = symbol % 16 < sizes && (!ends_band || writer->encoder->options.jpeg.is_progressive);
      writer->frequencies[i * 256 + symbol] += is_possible;
    }
  }
}

/// Returns an upper bound of the bytes of all tokens so far, unless they have an unusual number of bytes 0xFF.
static size_t token_bytes(const jpeg_scan_writer *writer) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < JPEG_TOKEN_RESTART * 256; i++) {
    if (writer->frequencies[i] > 0) {
      bits += writer->frequencies[i] * (writer->entries[i] & 63);
    }
  }
  return (size_t)(bits / 8 + bits / 512);
}

/// Writes all chunks, and frees all but one.
static bool flush(jpeg_scan_writer *writer) {
  if (!writer->has_tables) {
    release(writer, writer->reserved);
    // The output grows once, to its size.
    if (!build_tables(writer) || !reserve(writer, token_bytes(writer) + TOKENS_PER_RESERVE * max_token_bytes)) {
      return false;
    }
  }
  while (writer->first != NULL) {
    jpeg_token_chunk *chunk = writer->first;
    if (!write_chunk(writer, chunk)) {
      return false;
    }
    writer->first = chunk->next;
    if (writer->spare == NULL) {
      writer->spare = chunk;
    } else {
      ccodecs_free(writer->encoder->budget, chunk);
    }
  }
  writer->last = NULL;
  writer->chunk_count = 0;
  return true;
}

// MARK: Scans

uint32_t ccodecs_jpeg_begin_scan(
    jpeg_scan_writer *writer, const jpeg_geometry *geometry, const jpeg_scan *scan, uint32_t component_count,
    uint32_t restart_rows) {
  const bool is_interleaved = component_count > 1;
  const uint64_t columns = is_interleaved ? geometry->mcu_columns : geometry->columns[scan->component];
  const uint64_t wanted = columns * restart_rows;
  const uint32_t interval = wanted > 65535 ? 65535 : (uint32_t)wanted;
  uint8_t *end = writer->header;
  if (restart_rows > 0) {
    const uint8_t segment[] = {0xFF, DRI, 0, 4, (uint8_t)(interval >> 8), (uint8_t)interval};
    memcpy(end, segment, sizeof segment);
    end += sizeof segment;
  }
  *end++ = 0xFF;
  *end++ = SOS;
  *end++ = 0;
  *end++ = (uint8_t)(6 + 2 * component_count);
  *end++ = (uint8_t)component_count;
  for (uint32_t i = 0; i < component_count; i++) {
    const uint32_t component = is_interleaved ? i : scan->component;
    *end++ = (uint8_t)(component + 1);
    *end++ = component > 0 ? 0x11 : 0;
  }
  *end++ = scan->first;
  *end++ = scan->last;
  *end++ = (uint8_t)(scan->high << 4 | scan->low);
  writer->header_count = (uint32_t)(end - writer->header);
  writer->has_tables = false;
  writer->bits = (jpeg_bit_writer){.room = 64};
  memset(writer->frequencies, 0, sizeof writer->frequencies);
  return interval;
}

/// Counts the symbols of the newest chunk, if there are no tables yet.
static void count_symbols(jpeg_scan_writer *writer) {
  const jpeg_token_chunk *chunk = writer->last;
  if (writer->has_tables || chunk == NULL) {
    return;
  }
  uint32_t *frequencies = writer->frequencies;
  for (uint32_t i = 0; i < chunk->count; i++) {
    frequencies[chunk->tokens[i] >> 16]++;
  }
}

static void clear_chunk(jpeg_token_chunk *chunk) {
  chunk->count = 0;
  chunk->has_restarts = false;
}

bool ccodecs_jpeg_scan_count_end(jpeg_scan_writer *writer) {
  writer->is_counting = false;
  count_symbols(writer);
  if (writer->last != NULL) {
    clear_chunk(writer->last);
  }
  return build_tables(writer);
}

bool ccodecs_jpeg_scan_add_chunk(jpeg_scan_writer *writer) {
  count_symbols(writer);
  if (writer->is_counting && writer->last != NULL) {
    clear_chunk(writer->last);
    return true;
  }
  if (writer->has_tables || writer->chunk_count >= writer->max_chunks) {
    if (!writer->has_tables) {
      allow_all_symbols(writer);
    }
    if (!flush(writer)) {
      return false;
    }
  }
  jpeg_token_chunk *chunk = writer->spare;
  writer->spare = NULL;
  if (chunk == NULL) {
    release(writer, sizeof *chunk + JPEG_BLOCK_HEADER);
    chunk = ccodecs_allocate(writer->encoder->budget, sizeof *chunk);
  }
  if (chunk == NULL) {
    writer->has_failed = true;
    return false;
  }
  chunk->next = NULL;
  clear_chunk(chunk);
  if (writer->last != NULL) {
    writer->last->next = chunk;
  } else {
    writer->first = chunk;
  }
  writer->last = chunk;
  writer->chunk_count++;
  return true;
}

bool ccodecs_jpeg_scan_end(jpeg_scan_writer *writer) {
  count_symbols(writer);
  if (writer->has_failed || !flush(writer) || !reserve(writer, 16)) {
    return false;
  }
  set_output_end(writer, align(&writer->bits, output_end(writer)));
  return true;
}

void ccodecs_jpeg_scan_free(jpeg_scan_writer *writer) {
  release(writer, writer->reserved);
  while (writer->first != NULL) {
    jpeg_token_chunk *chunk = writer->first;
    writer->first = chunk->next;
    ccodecs_free(writer->encoder->budget, chunk);
  }
  ccodecs_free(writer->encoder->budget, writer->spare);
}

// Keeps the tokens of a scan until its Huffman tables can be computed, and writes them.

#include "jpeg_encode.h"
#include "jpeg_encode_tokens.h"

/// A token is written in at most 32 bits, each byte of which may need another.
static const size_t max_token_bytes = 8;
/// Tokens between two checks of the room in the output.
enum { TOKENS_PER_RESERVE = 1024 };

// MARK: Bits

static inline uint8_t *put_byte(uint8_t *end, uint32_t byte) {
  *end++ = (uint8_t)byte;
  if ((byte & 0xFF) == 0xFF) {
    *end++ = 0;
  }
  return end;
}

static inline uint8_t *put_bits(jpeg_bit_writer *writer, uint8_t *end, uint32_t bits, uint32_t count) {
  writer->bits = writer->bits << count | bits;
  writer->count += count;
  if (writer->count >= 32) {
    writer->count -= 32;
    const uint32_t word = (uint32_t)(writer->bits >> writer->count);
    if ((word & 0x80808080 & ~(word + 0x01010101)) == 0) {
      ccodecs_put_be32(end, word);
      return end + 4;
    }
    for (uint32_t shift = 32; shift > 0; shift -= 8) {
      end = put_byte(end, word >> (shift - 8));
    }
  }
  return end;
}

/// Fills the last byte with ones.
static uint8_t *align(jpeg_bit_writer *writer, uint8_t *end) {
  const uint32_t missing = (8 - writer->count % 8) % 8;
  const uint64_t bits = writer->bits << missing | ((1U << missing) - 1);
  for (uint32_t left = writer->count + missing; left > 0; left -= 8) {
    end = put_byte(end, (uint32_t)(bits >> (left - 8)) & 0xFF);
  }
  writer->count = 0;
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

/// Writes a token that has no code.
static uint8_t *put_special(jpeg_bit_writer *bits, uint8_t *end, uint32_t token) {
  const uint32_t symbol = token >> 16 & 0xFF;
  if (token >> 24 == JPEG_TOKEN_RAW) {
    return put_bits(bits, end, token & 0xFFFF, symbol);
  }
  end = align(bits, end);
  *end++ = 0xFF;
  *end++ = (uint8_t)(RST0 + symbol % 8);
  return end;
}

static bool write_tokens(jpeg_scan_writer *writer, const uint32_t *tokens, uint32_t count) {
  while (count > 0) {
    const uint32_t step = count < TOKENS_PER_RESERVE ? count : TOKENS_PER_RESERVE;
    if (!reserve(writer, step * max_token_bytes + 16)) {
      return false;
    }
    uint8_t *end = output_end(writer);
    jpeg_bit_writer bits = writer->bits;
    for (uint32_t i = 0; i < step; i++) {
      const uint32_t token = tokens[i];
      if (token >> 24 >= JPEG_CODES) {
        end = put_special(&bits, end, token);
        continue;
      }
      const uint32_t entry = writer->codes[token >> 24].entries[token >> 16 & 0xFF];
      const uint32_t extra = ccodecs_jpeg_token_bits(token);
      end = put_bits(&bits, end, (entry >> 5) << extra | (token & 0xFFFF), (entry & 31) + extra);
    }
    writer->bits = bits;
    set_output_end(writer, end);
    tokens += step;
    count -= step;
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
    ccodecs_jpeg_code_build(&writer->codes[i], writer->frequencies[i]);
  }
  return write_tables(writer);
}

/// Gives every symbol that may still come a code, if its table is used at all.
static void allow_all_symbols(jpeg_scan_writer *writer) {
  for (uint32_t i = 0; i < JPEG_CODES; i++) {
    uint32_t used = 0;
    for (uint32_t symbol = 0; symbol < 256; symbol++) {
      used |= writer->frequencies[i][symbol];
    }
    const uint32_t sizes = i < JPEG_CODE_AC ? 12 : 11;
    for (uint32_t symbol = 0; used != 0 && symbol < (i < JPEG_CODE_AC ? 16U : 256U); symbol++) {
      writer->frequencies[i][symbol] += symbol % 16 < sizes;
    }
  }
}

/// Returns an upper bound of the bytes of all tokens so far, unless they have an unusual number of bytes 0xFF.
static size_t token_bytes(const jpeg_scan_writer *writer) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < JPEG_CODES; i++) {
    for (uint32_t symbol = 0; symbol < 256; symbol++) {
      const uint64_t length = writer->codes[i].entries[symbol] & 31;
      bits += writer->frequencies[i][symbol] * (length + ccodecs_jpeg_token_bits(symbol << 16));
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
    if (!write_tokens(writer, chunk->tokens, chunk->count)) {
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
  memset(writer->frequencies, 0, sizeof writer->frequencies);
  return interval;
}

bool ccodecs_jpeg_scan_count_end(jpeg_scan_writer *writer) {
  writer->is_counting = false;
  if (writer->last != NULL) {
    writer->last->count = 0;
  }
  return build_tables(writer);
}

bool ccodecs_jpeg_scan_add_chunk(jpeg_scan_writer *writer) {
  if (writer->is_counting && writer->last != NULL) {
    writer->last->count = 0;
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
  chunk->count = 0;
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

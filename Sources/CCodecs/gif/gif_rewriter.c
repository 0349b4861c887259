// The GIF rewriter, which copies an animation without its comments, its text, and applications' extensions except the
// number of repeats.
//
// Of the compressed data it checks only the sizes of sub-blocks; whether all rows are there is checked by the decoder
// that the caller runs on the copy. A stray terminator between blocks is dropped, and what follows the last block is
// not read, as in the decoder (gif_decoder.c). Source: GIF89a.

#include "../core/rewriter.h"
#include "../formats.h"

enum {
  EXTENSION = 0x21,
  DESCRIPTOR = 0x2C,
  TRAILER = 0x3B,
  GRAPHIC_CONTROL = 0xF9,
  APPLICATION = 0xFF,
  SCREEN_BYTES = 13,
  DESCRIPTOR_BYTES = 10,
  APPLICATION_BYTES = 14, ///< Introducer, label, size and identifier.
  TOKEN_BYTES = DESCRIPTOR_BYTES + 256 * 3 + 1,
};

typedef enum gif_step {
  STEP_SCREEN,      ///< The screen descriptor.
  STEP_TABLE,       ///< The global color table.
  STEP_BLOCK,       ///< The type of a block.
  STEP_LABEL,       ///< An extension's label.
  STEP_APPLICATION, ///< An application extension, up to its identifier.
  STEP_DESCRIPTOR,  ///< A frame's descriptor.
  STEP_FRAME,       ///< A frame's descriptor, color table and first code size.
  STEP_SIZE,        ///< The size of a sub-block.
  STEP_BODY,        ///< The body of a sub-block.
  STEP_END,         ///< The trailer must be emitted.
  STEP_DONE,
} gif_step;

typedef struct gif_rewriter {
  ccodecs_rewriter base;
  gif_step step;
  uint8_t token[TOKEN_BYTES]; ///< An element that is emitted or dropped as a whole.
  size_t token_count;
  size_t wanted;    ///< Size of the element.
  size_t body_left; ///< Bytes of the sub-block that were not read.
  bool is_kept;     ///< The sub-blocks are emitted.
  bool has_frame;   ///< A frame's data began.
  uint32_t width, height;
} gif_rewriter;

/// Reads an element of `wanted` bytes next. The bytes of the token stay its beginning.
static void expect(gif_rewriter *g, gif_step step, size_t wanted) {
  g->step = step;
  g->wanted = wanted;
}

/// Emits the token, and reads an element of `wanted` bytes next.
static ccodecs_status give_token(gif_rewriter *g, gif_step step, size_t wanted, ccodecs_piece *piece) {
  const size_t count = g->token_count;
  g->token_count = 0;
  expect(g, step, wanted);
  return ccodecs_piece_give(g->token, count, piece);
}

static size_t table_bytes(uint8_t flags) {
  return (flags & 0x80) == 0 ? 0 : (size_t)6 << (flags & 7);
}

static ccodecs_status read_screen(gif_rewriter *g, ccodecs_piece *piece) {
  g->width = ccodecs_le16(g->token + 6);
  g->height = ccodecs_le16(g->token + 8);
  const size_t table = table_bytes(g->token[10]);
  return give_token(g, table > 0 ? STEP_TABLE : STEP_BLOCK, table > 0 ? table : 1, piece);
}

static ccodecs_status read_block(gif_rewriter *g) {
  switch (g->token[0]) {
  case EXTENSION:
    expect(g, STEP_LABEL, 2);
    return CCODECS_OK;
  case DESCRIPTOR:
    expect(g, STEP_DESCRIPTOR, DESCRIPTOR_BYTES);
    return CCODECS_OK;
  case 0: // some writers leave a stray terminator between blocks
    g->token_count = 0;
    return CCODECS_OK;
  default:
    g->step = STEP_END;
    return g->has_frame ? CCODECS_OK : ccodecs_rewriter_fail(&g->base, CCODECS_CORRUPT, "GIF data: there is no frame");
  }
}

/// Begins the sub-blocks that follow an element; emits the element if they are kept.
static ccodecs_status begin_blocks(gif_rewriter *g, bool is_kept, ccodecs_piece *piece) {
  g->is_kept = is_kept;
  if (is_kept) {
    return give_token(g, STEP_SIZE, 1, piece);
  }
  g->token_count = 0;
  expect(g, STEP_SIZE, 1);
  return CCODECS_OK;
}

static ccodecs_status read_label(gif_rewriter *g, ccodecs_piece *piece) {
  if (g->token[1] == APPLICATION) {
    expect(g, STEP_APPLICATION, 3);
    return CCODECS_OK;
  }
  return begin_blocks(g, g->token[1] == GRAPHIC_CONTROL, piece);
}

/// Reads the size of an application's identifier, then the identifier.
static ccodecs_status read_application(gif_rewriter *g, ccodecs_piece *piece) {
  if (g->wanted == 3) {
    if (g->token[2] == 11) {
      g->wanted = APPLICATION_BYTES;
      return CCODECS_OK;
    }
    // An extension of another size is dropped, from its first sub-block on.
    g->is_kept = false;
    g->body_left = g->token[2];
    g->token_count = 0;
    expect(g, g->body_left == 0 ? STEP_BLOCK : STEP_BODY, 1);
    return CCODECS_OK;
  }
  const uint8_t *name = g->token + 3;
  return begin_blocks(g, memcmp(name, "NETSCAPE2.0", 11) == 0 || memcmp(name, "ANIMEXTS1.0", 11) == 0, piece);
}

static ccodecs_status read_size(gif_rewriter *g, ccodecs_piece *piece) {
  g->body_left = g->token[0];
  g->step = g->body_left > 0 ? STEP_BODY : STEP_BLOCK;
  if (g->is_kept) {
    return give_token(g, g->step, 1, piece);
  }
  g->token_count = 0;
  return CCODECS_OK;
}

static ccodecs_status read_body(gif_rewriter *g, ccodecs_input *input, ccodecs_piece *piece) {
  const uint8_t *bytes = input->bytes;
  const size_t count = input->count < g->body_left ? input->count : g->body_left;
  ccodecs_input_advance(input, count);
  g->body_left -= count;
  if (g->body_left == 0) {
    expect(g, STEP_SIZE, 1);
  }
  return g->is_kept ? ccodecs_piece_give(bytes, count, piece) : CCODECS_OK;
}

/// Processes a complete element.
static ccodecs_status read_token(gif_rewriter *g, ccodecs_piece *piece) {
  switch (g->step) {
  case STEP_SCREEN:
    return read_screen(g, piece);
  case STEP_TABLE:
    return give_token(g, STEP_BLOCK, 1, piece);
  case STEP_BLOCK:
    return read_block(g);
  case STEP_LABEL:
    return read_label(g, piece);
  case STEP_APPLICATION:
    return read_application(g, piece);
  case STEP_DESCRIPTOR:
    expect(g, STEP_FRAME, DESCRIPTOR_BYTES + table_bytes(g->token[9]) + 1);
    return CCODECS_OK;
  case STEP_FRAME:
    g->has_frame = true;
    return begin_blocks(g, true, piece);
  case STEP_SIZE:
    return read_size(g, piece);
  case STEP_BODY: // these have no token
  case STEP_END:
  case STEP_DONE:
    break;
  }
  return CCODECS_OK;
}

static ccodecs_status step(ccodecs_rewriter *base, ccodecs_input *input, ccodecs_piece *piece) {
  static const uint8_t trailer = TRAILER;
  gif_rewriter *g = (gif_rewriter *)base;
  if (g->step == STEP_DONE) {
    return CCODECS_DONE;
  }
  if (g->step == STEP_END) {
    g->step = STEP_DONE;
    return ccodecs_piece_give(&trailer, 1, piece);
  }
  if (input->count == 0) {
    return CCODECS_NEEDS_INPUT;
  }
  if (g->step == STEP_BODY) {
    return read_body(g, input, piece);
  }
  return ccodecs_input_collect(input, g->token, &g->token_count, g->wanted) ? read_token(g, piece)
                                                                            : CCODECS_NEEDS_INPUT;
}

/// Ends a file that ends behind the data of a frame or inside them, but not before them. Whether a row is missing is
/// checked by the caller.
static bool end(ccodecs_rewriter *base, ccodecs_piece *piece) {
  gif_rewriter *g = (gif_rewriter *)base;
  if (!g->has_frame || g->step == STEP_DONE || g->step == STEP_DESCRIPTOR || g->step == STEP_FRAME) {
    return false;
  }
  const bool is_open = (g->step == STEP_SIZE || g->step == STEP_BODY) && g->is_kept;
  const size_t missing = is_open && g->step == STEP_BODY ? g->body_left : 0;
  memset(g->token, 0, missing + 1);
  g->token[missing + (is_open ? 1 : 0)] = TRAILER;
  g->step = STEP_DONE;
  return ccodecs_piece_give(g->token, missing + (is_open ? 2 : 1), piece) == CCODECS_BYTES_READY;
}

static void survey(const ccodecs_rewriter *base, const ccodecs_decoder *decoder, ccodecs_survey *survey) {
  const gif_rewriter *g = (const gif_rewriter *)base;
  // A still image is not copied, as frames may follow it. The decoder enlarges a canvas that the first frame exceeds.
  survey->can_copy = g->has_frame && ccodecs_decoder_selects_all(decoder) && decoder->header.width == g->width &&
                     decoder->header.height == g->height;
  survey->is_lossless = true;
  survey->quality = 1;
}

static void init(ccodecs_rewriter *rewriter) {
  expect((gif_rewriter *)rewriter, STEP_SCREEN, SCREEN_BYTES);
}

const ccodecs_rewriter_methods ccodecs_gif_rewriter = {
    .byte_count = sizeof(gif_rewriter), .init = init, .step = step, .end = end, .survey = survey};

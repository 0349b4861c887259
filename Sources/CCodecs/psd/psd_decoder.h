// The PSD decoder's state, shared by psd_header.c, which reads the sections before the image, and psd_decoder.c, which
// reads the image. Private to CCodecs.

#pragma once

#include "../core/decoder.h"
#include "../memory/spill.h"

enum { CCODECS_PSD_PALETTE_BYTES = 768 };
enum {
  PSD_MODE_BITMAP = 0,
  PSD_MODE_GRAY = 1,
  PSD_MODE_INDEXED = 2,
  PSD_MODE_RGB = 3,
  PSD_MODE_CMYK = 4,
  PSD_MODE_DUOTONE = 8,
};

typedef enum psd_state {
  PSD_STATE_FILE_HEADER,
  PSD_STATE_PALETTE,
  PSD_STATE_RESOURCES,
  PSD_STATE_RESOURCE, ///< Signature, ID and length of the name.
  PSD_STATE_RESOURCE_NAME,
  PSD_STATE_RESOURCE_SIZE,
  PSD_STATE_RESOURCE_KEPT, ///< The data of a resource in use.
  PSD_STATE_SKIP,          ///< Skipping `skip_left` bytes to the next resource.
  PSD_STATE_LAYERS,
  PSD_STATE_LAYER_BYTES,
  PSD_STATE_LAYER_COUNT,
  PSD_STATE_MASK,
  PSD_STATE_BLOCK, ///< The header of a block of additional information, after `skip_left` bytes.
  PSD_STATE_READY, ///< The header is complete.
  PSD_STATE_LAYERS_REST,
  PSD_STATE_COMPRESSION,
  PSD_STATE_COUNTS, ///< The byte counts of all rows, which are not needed.
  PSD_STATE_CHANNELS,
} psd_state;

typedef struct psd_decoder {
  ccodecs_decoder base;
  psd_state state;
  uint8_t token[CCODECS_PSD_PALETTE_BYTES + 8];
  size_t token_count;
  uint64_t skip_left;
  uint64_t section_left; ///< Remaining bytes of the resources, then of the layers.
  uint32_t resource;
  uint64_t resource_left;
  ccodecs_bytes resource_bytes;
  bool has_profile;
  bool is_large;          ///< PSB, with wider size fields.
  uint32_t channel_count; ///< Channels in the file.
  uint32_t mode;
  uint32_t bits;
  uint8_t palette[256][3];
  uint32_t compression;

  uint32_t colors;
  uint32_t needed;   ///< Channels to decode.
  uint32_t channels; ///< Channels of a returned pixel.
  bool keeps_cmyk;
  size_t channel_row_bytes;
  ccodecs_spill planes[3]; ///< All needed channels except the last.
  uint8_t *stored;         ///< A row of the last needed channel.
  uint32_t channel;
  uint32_t row;
  size_t stored_count; ///< Bytes of the row read so far.
  uint32_t run_left;   ///< Remaining bytes of the PackBits run.
  bool is_literal;     ///< The run consists of literal bytes.
  bool has_value;      ///< The run repeats `value`, which is already read.
  uint8_t value;
  uint8_t *strip;
  size_t row_bytes;
  uint32_t strip_rows;
} psd_decoder;

/// Collects `count` bytes in `token`. Returns true once they are complete, and resets the count.
static inline bool ccodecs_psd_collect(psd_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_input_collect(input, d->token, &d->token_count, count)) {
    return false;
  }
  d->token_count = 0;
  return true;
}

// psd_header.c

/// Records CCODECS_CORRUPT with `reason`.
ccodecs_status ccodecs_psd_corrupt(psd_decoder *d, const char *reason);

/// Records CCODECS_UNSUPPORTED for images or samples of this `kind`, a plural noun.
ccodecs_status ccodecs_psd_unsupported(psd_decoder *d, const char *kind);

/// Implements read_header; reads up to and including the number of layers.
ccodecs_status ccodecs_psd_read_header(ccodecs_decoder *base, ccodecs_input *input);

// The PSD decoder's state, shared by the reading of what stands before the image (psd_header.c) and that of the
// image (psd_decoder.c). Private to CCodecs.

#ifndef CCODECS_PSD_H
#define CCODECS_PSD_H

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
  PSD_STATE_RESOURCE, ///< Signature, number and the length of the name.
  PSD_STATE_RESOURCE_NAME,
  PSD_STATE_RESOURCE_SIZE,
  PSD_STATE_RESOURCE_KEPT, ///< The bytes of one that is looked at.
  PSD_STATE_SKIP,          ///< Past `skip_left` bytes to the next resource.
  PSD_STATE_LAYERS,
  PSD_STATE_LAYER_COUNT,
  PSD_STATE_READY, ///< The header ends here.
  PSD_STATE_LAYERS_REST,
  PSD_STATE_COMPRESSION,
  PSD_STATE_COUNTS, ///< Of the bytes of each row, which are not needed.
  PSD_STATE_CHANNELS,
} psd_state;

typedef struct psd_decoder {
  ccodecs_decoder base;
  psd_state state;
  uint8_t token[CCODECS_PSD_PALETTE_BYTES + 8];
  size_t token_count;
  uint64_t skip_left;
  uint64_t section_left; ///< Of the resources, and then of the layers.
  uint32_t resource;
  uint64_t resource_left;
  ccodecs_bytes resource_bytes;
  bool has_profile;
  bool is_large;          ///< PSB, whose counts are wider.
  uint32_t channel_count; ///< In the file.
  uint32_t mode;
  uint32_t bits;
  uint8_t palette[256][3];
  uint32_t compression;

  uint32_t colors;
  uint32_t needed;   ///< Channels that are decoded.
  uint32_t channels; ///< Of a pixel that is given.
  bool keeps_cmyk;
  size_t channel_row_bytes;
  ccodecs_spill planes[3]; ///< The channels before the last.
  uint8_t *stored;         ///< A row of the last.
  uint32_t channel;
  uint32_t row;
  size_t stored_count; ///< Bytes of the row that are there.
  uint32_t run_left;   ///< Bytes of a run that are still to come;
  bool is_literal;     ///< each of its own, or
  bool has_value;      ///< `value` again and again.
  uint8_t value;
  uint8_t *strip;
  size_t row_bytes;
  uint32_t strip_rows;
} psd_decoder;

/// Collects `count` bytes in `token`; true when they are all there, once.
static inline bool ccodecs_psd_collect(psd_decoder *d, ccodecs_input *input, size_t count) {
  if (!ccodecs_input_collect(input, d->token, &d->token_count, count)) {
    return false;
  }
  d->token_count = 0;
  return true;
}

// psd_header.c

ccodecs_status ccodecs_psd_corrupt(psd_decoder *d, const char *reason);

ccodecs_status ccodecs_psd_unsupported(psd_decoder *d, const char *kind);

/// The decoder's read_header: up to the number of layers.
ccodecs_status ccodecs_psd_read_header(ccodecs_decoder *base, ccodecs_input *input);

#endif
